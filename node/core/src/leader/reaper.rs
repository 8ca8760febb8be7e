//! Nodes that go by themselves: containers whose children are gone, and nodes whose time to live is over.
//!
//! The leader looks for them now and then and proposes to delete each, as it would for a client. A container
//! that never had a child is left alone, because its maker is about to create one; for so long at least as
//! `znode.container.maxNeverUsedIntervalMs` says, if it says something. What is judged here is what is
//! applied, so the proposal is judged again when it is made (see [`crate::prep`]).
//!
//! There may be a million of them: the leader looks at some with each tick until it has seen all.
//!
//! A time to live counts from the last change of the node's data, on the wall clock, because that is what the
//! transaction was stamped with: every leader reads the same stamp. A clock that is set forward ends lives
//! early.

use std::time::Duration;

use bytestring::ByteString;
use node_wire::ephemeral::EphemeralType;

use super::Leader;
use crate::base::{Base, Leave};
use crate::prep::reaping;
use crate::tree::Tree;
use crate::zab::Protocol;

/// Nodes that are looked at in one go.
const LOOKED_AT: usize = 1000;

impl Leader {
    /// Deletes what is left alone, when it is time to look again.
    pub(super) fn reap<P: Protocol>(&mut self, base: &mut Base<P>) -> Result<(), Leave> {
        let behind = self.reaped_to.take();
        if behind.is_none() {
            if base.awake < self.next_reaping {
                return Ok(());
            }
            self.next_reaping = base.awake + base.config.clients.container_check;
        }
        let some: Vec<ByteString> =
            base.tree.transient_behind(behind.as_ref()).take(LOOKED_AT).cloned().collect();
        if some.len() == LOOKED_AT {
            self.reaped_to = some.last().cloned();
        }
        let never_used = base.config.clients.never_used;
        for path in left_alone(&base.tree, some, base.now.wall_ms, never_used, base.zab) {
            self.propose(base, &reaping(&path), false)?;
        }
        Ok(())
    }
}

fn left_alone<P: Protocol>(
    tree: &Tree,
    mut paths: Vec<ByteString>,
    now_ms: i64,
    never_used: Option<Duration>,
    zab: P,
) -> Vec<ByteString> {
    let never_used_ms = never_used.map(|limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
    let is_over = |path: &ByteString| {
        let Some(node) = tree.node(path).filter(|node| node.children.is_empty()) else { return false };
        match EphemeralType::of(node.stat.ephemeral_owner) {
            EphemeralType::Container if node.stat.cversion > 0 => true,
            EphemeralType::Container => {
                never_used_ms.is_some_and(|limit_ms| now_ms.saturating_sub(node.stat.mtime) > limit_ms)
            }
            EphemeralType::Ttl { ttl_ms } => {
                let since = zab.lives_since(&node.stat);
                now_ms.saturating_sub(since) > ttl_ms
            }
            EphemeralType::Void | EphemeralType::Normal(_) => false,
        }
    };
    paths.retain(is_over);
    paths
}

#[cfg(test)]
mod tests {
    use node_wire::ids::{SessionId, Zxid};
    use node_wire::txn::{Entry, Txn, TxnHeader};

    use super::*;
    use crate::zab::Zab;

    #[test]
    fn a_container_that_is_never_used_goes_only_where_a_time_is_said() {
        let mut tree = Tree::default();
        let path = ByteString::from_static("/c");
        let txn =
            Txn::CreateContainer { path: path.clone(), data: None, acl: Vec::new(), parent_cversion: 1 };
        let (session, kind) = (SessionId(1), txn.kind());
        let header = TxnHeader { session, cxid: 1, zxid: Zxid(1), time_ms: 1_000, kind };
        tree.apply(&Entry::new(header, txn, None));
        let limit = Some(Duration::from_millis(500));
        let of = |now_ms, limit| left_alone(&tree, vec![path.clone()], now_ms, limit, Zab);
        assert!(of(i64::MAX, None).is_empty());
        assert!(of(1_500, limit).is_empty());
        assert_eq!(of(1_501, limit).as_slice(), std::slice::from_ref(&path));
    }
}
