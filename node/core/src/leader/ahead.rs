//! The digest that goes with a proposal.
//!
//! Apache ZooKeeper's members compare the digest of their tree after each transaction with the one that the
//! leader says, and report that they have come apart. So a leader with such members must know the tree as it
//! will be when all that is proposed is applied. It keeps that tree: one that shares with the committed one
//! whatever is not under way.
//!
//! Applying everything twice is not free, so a leader that has only members of ours leaves it.

use node_wire::digest::DIGEST_VERSION;
use node_wire::quorum::Dialect;
use node_wire::txn::{Entry, TxnDigest};

use super::Leader;
use crate::base::Base;
use crate::tree::Tree;
use crate::zab::Protocol;

impl Leader {
    /// Begins to look ahead when a Java member has come, and ends when the last of them is gone.
    pub(super) fn look_ahead<P: Protocol>(&mut self, base: &Base<P>) {
        let wanted = self.peers.values().any(|peer| peer.dialect == Dialect::Apache);
        match (&self.ahead, wanted) {
            (None, true) => {
                let mut tree = base.tree.clone();
                for entry in base.journal.after(tree.zxid()) {
                    tree.apply(entry);
                }
                self.ahead = Some(tree);
            }
            (Some(_), false) => self.ahead = None,
            (None, false) | (Some(_), true) => {}
        }
    }

    /// The proposal with its digest, if anybody wants one.
    pub(super) fn with_digest(&mut self, entry: Entry) -> Entry {
        let Some(tree) = &mut self.ahead else { return entry };
        tree.apply(&entry);
        let digest = TxnDigest { version: DIGEST_VERSION, digest: tree.digest() };
        Entry::new(entry.header, entry.txn, Some(digest))
    }

    /// When nothing is under way the two trees are one, and share all they have.
    pub(super) fn share(&mut self, committed: &Tree) {
        if let Some(ahead) = &mut self.ahead
            && ahead.zxid() == committed.zxid()
        {
            ahead.clone_from(committed);
        }
    }
}
