//! The ACL cache: znodes name their access-control list by a number, as in ZooKeeper's snapshots.
//!
//! Lists are counted, and go with the last znode that names them: otherwise whoever sets many different ones
//! would fill every member's memory for ever. What a list permits is `access`'s business.
//!
//! A snapshot may lack a list that a znode of it names (ZOOKEEPER-4689). Apache ZooKeeper then fails every
//! read of the znode with an exception; here such a list lets nobody in but the superuser.

use std::sync::Arc;

use imbl::OrdMap;
use node_wire::client::Acl;
use node_wire::snapshot::OPEN_ACL;

/// A list, shared by whoever looks at it.
pub type SharedAcl = Arc<Vec<Acl>>;

#[derive(Clone, Debug)]
struct Listed {
    acl: SharedAcl,
    /// Znodes that name it.
    uses: u64,
}

/// Access-control lists by number, and numbers by list.
#[derive(Clone, Debug)]
pub struct AclCache {
    lists: OrdMap<i64, Listed>,
    numbers: OrdMap<SharedAcl, i64>,
    /// The list of almost every znode, which is never stored.
    open: SharedAcl,
}

impl Default for AclCache {
    fn default() -> Self {
        let open = Arc::new(vec![Acl::world_anyone()]);
        Self { lists: OrdMap::new(), numbers: OrdMap::new(), open }
    }
}

impl AclCache {
    /// The number of a list for one more znode, new if no znode has the list. Numbers follow from the order
    /// of transactions alone, so that all members give the same ones.
    pub fn intern(&mut self, acl: &[Acl]) -> i64 {
        if acl == self.open.as_slice() {
            return OPEN_ACL;
        }
        let acl = Arc::new(acl.to_vec());
        if let Some(&number) = self.numbers.get(&acl) {
            self.hold(number);
            return number;
        }
        let number = self.lists.get_max().map_or(1, |(highest, _)| highest.saturating_add(1));
        self.numbers.insert(Arc::clone(&acl), number);
        self.lists.insert(number, Listed { acl, uses: 1 });
        number
    }

    /// One more znode names a list.
    pub(super) fn hold(&mut self, number: i64) {
        if let Some(listed) = self.lists.get_mut(&number) {
            listed.uses = listed.uses.saturating_add(1);
        }
    }

    /// One znode less names a list.
    pub(super) fn release(&mut self, number: i64) {
        let Some(listed) = self.lists.get_mut(&number) else { return };
        listed.uses = listed.uses.saturating_sub(1);
        if listed.uses == 0
            && let Some(listed) = self.lists.remove(&number)
        {
            self.numbers.remove(&listed.acl);
        }
    }

    /// The list of a number; of one that a snapshot lacked, one that lets nobody in.
    pub(crate) fn list(&self, number: i64) -> SharedAcl {
        if number == OPEN_ACL {
            return Arc::clone(&self.open);
        }
        self.lists.get(&number).map_or_else(
            || Arc::new(vec![Acl { perms: 0, ..Acl::world_anyone() }]),
            |listed| Arc::clone(&listed.acl),
        )
    }

    /// All lists, for a snapshot.
    pub fn lists(&self) -> Vec<(i64, Vec<Acl>)> {
        self.lists.iter().map(|(number, listed)| (*number, listed.acl.as_ref().clone())).collect()
    }

    /// The cache that a snapshot holds. Its uses are counted as its znodes are put into the tree.
    pub fn from_lists(lists: Vec<(i64, Vec<Acl>)>) -> Self {
        let mut cache = Self::default();
        for (number, acl) in lists {
            let acl = Arc::new(acl);
            cache.numbers.insert(Arc::clone(&acl), number);
            cache.lists.insert(number, Listed { acl, uses: 0 });
        }
        cache
    }

    /// Forgets the lists of a snapshot that no znode of it names.
    pub(super) fn forget_unused(&mut self) {
        let unused: Vec<i64> =
            self.lists.iter().filter(|(_, listed)| listed.uses == 0).map(|(number, _)| *number).collect();
        for number in unused {
            self.release(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(perms: i32) -> Vec<Acl> {
        vec![Acl { perms, ..Acl::world_anyone() }]
    }

    #[test]
    fn a_list_goes_with_its_last_znode() {
        let mut cache = AclCache::default();
        assert_eq!(cache.intern(&[Acl::world_anyone()]), OPEN_ACL);
        assert_eq!((cache.intern(&acl(1)), cache.intern(&acl(2)), cache.intern(&acl(1))), (1, 2, 1));
        cache.release(1);
        assert_eq!(*cache.list(1), acl(1));
        cache.release(1);
        assert_eq!(cache.lists(), [(2, acl(2))]);
        assert_eq!(cache.intern(&acl(1)), 3);
    }

    #[test]
    fn a_list_that_is_missing_lets_nobody_in() {
        assert!(cache_permits_nothing(&AclCache::default().list(7)));
    }

    fn cache_permits_nothing(list: &[Acl]) -> bool {
        !list.is_empty() && list.iter().all(|entry| entry.perms == 0)
    }

    #[test]
    fn what_a_snapshot_holds_and_nobody_names_is_forgotten() {
        let mut cache = AclCache::from_lists(vec![(4, acl(1)), (9, acl(2))]);
        cache.hold(9);
        cache.forget_unused();
        assert_eq!(cache.lists(), [(9, acl(2))]);
    }
}
