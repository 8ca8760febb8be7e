//! The ACL cache: znodes name their access-control list by a number, as in ZooKeeper's snapshots.
//!
//! Lists are stored and given back; enforcing them is not this module's work.

use std::sync::Arc;

use imbl::OrdMap;
use node_wire::client::Acl;

/// The number of the list that lets everybody do everything. It is never stored.
const OPEN: i64 = -1;

/// Access-control lists by number.
#[derive(Clone, Debug, Default)]
pub struct AclCache {
    lists: OrdMap<i64, Arc<Vec<Acl>>>,
}

impl AclCache {
    /// The number of a list, new if it was never seen. Numbers follow from the order of transactions alone, so
    /// that all members give the same ones.
    pub fn intern(&mut self, acl: &[Acl]) -> i64 {
        if acl.len() == 1 && acl[0] == Acl::world_anyone() {
            return OPEN;
        }
        if let Some((number, _)) = self.lists.iter().find(|(_, list)| list.as_slice() == acl) {
            return *number;
        }
        let number = self.lists.get_max().map_or(1, |(highest, _)| highest.saturating_add(1));
        self.lists.insert(number, Arc::new(acl.to_vec()));
        number
    }

    /// All lists, for a snapshot.
    pub fn lists(&self) -> Vec<(i64, Vec<Acl>)> {
        self.lists.iter().map(|(number, list)| (*number, list.as_ref().clone())).collect()
    }

    /// The cache that a snapshot holds.
    pub fn from_lists(lists: Vec<(i64, Vec<Acl>)>) -> Self {
        Self { lists: lists.into_iter().map(|(number, list)| (number, Arc::new(list))).collect() }
    }
}
