//! Nodes that go by themselves: containers whose children are gone, and nodes whose time to live is over.
//!
//! The leader looks for them now and then and proposes to delete each, as it would for a client. A container
//! that never had a child is left alone: its maker is about to create one. What is judged here is what is
//! applied, so the proposal is judged again when it is made (see [`crate::prep`]).
//!
//! There may be a million of them: the leader looks at some with each tick until it has seen all.
//!
//! A time to live counts from the last change of the node's data, on the wall clock, because that is what the
//! transaction was stamped with: every leader reads the same stamp. A clock that is set forward ends lives
//! early.

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
        for path in left_alone(&base.tree, some, base.now.wall_ms, base.zab) {
            self.propose(base, &reaping(&path), false)?;
        }
        Ok(())
    }
}

fn left_alone<P: Protocol>(tree: &Tree, mut paths: Vec<ByteString>, now_ms: i64, zab: P) -> Vec<ByteString> {
    let is_over = |path: &ByteString| {
        let Some(node) = tree.node(path).filter(|node| node.children.is_empty()) else { return false };
        match EphemeralType::of(node.stat.ephemeral_owner) {
            EphemeralType::Container => node.stat.cversion > 0,
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
