//! Whether this member's tree is still that of the others.
//!
//! A leader that has members of Apache ZooKeeper to lead says with each transaction which digest the tree has
//! after it, and so do their leaders. Whoever applies it compares, and tells the operator of the first
//! difference: nothing else can be done about it here, and to stop every member at once would be no better.
//!
//! A snapshot of Apache ZooKeeper is fuzzy. It becomes the tree of one moment only by the transactions behind
//! it, so what differs before the first agreement means nothing, unless agreement never comes.
//!
//! A snapshot whose digest is not that of its tree is told in the same way and stops nobody. Its checksum
//! holds, so its writer had the same tree; to refuse it would take a member away and mend nothing.

use node_wire::digest::DIGEST_VERSION;
use node_wire::snapshot::ZxidDigest;
use node_wire::txn::Entry;

use crate::tree::Tree;

/// Differences in a row, behind a snapshot, that fuzziness may explain.
const FUZZY: u32 = 10_000;

/// Compares digests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Divergence {
    /// They agreed since the tree was loaded.
    agreed: bool,
    differed: u32,
    told: bool,
    /// What the writer of the snapshot had; of a fuzzy one at a transaction behind it.
    written: Option<ZxidDigest>,
}

impl Divergence {
    /// Of a tree whose snapshot holds a digest. Apache ZooKeeper compares it too, and goes on whatever it
    /// finds, and so does this: the file's checksum holds, so its writer's tree was as wrong as this one, and
    /// nobody has another.
    pub(crate) fn of(written: Option<ZxidDigest>) -> Self {
        Self { written: written.filter(|written| written.version == DIGEST_VERSION), ..Self::default() }
    }

    /// Looks at the tree when it stands where the snapshot's writer took its digest. Gives the digest that it
    /// should have, when it has another.
    pub(crate) fn compare_written(&mut self, tree: &Tree) -> Option<i64> {
        let written = self.written.take_if(|written| written.zxid <= tree.zxid())?;
        (written.zxid == tree.zxid() && written.digest != tree.digest()).then_some(written.digest)
    }

    /// Looks at the tree after a transaction. Gives the digest that it should have, when that is to be told.
    pub(crate) fn compare(&mut self, tree: &Tree, entry: &Entry) -> Option<i64> {
        let said = entry.digest.filter(|said| said.version == DIGEST_VERSION)?;
        if said.digest == tree.digest() {
            *self = Self { agreed: true, written: self.written, ..Self::default() };
            return None;
        }
        self.differed = self.differed.saturating_add(1);
        if self.told || !(self.agreed || self.differed > FUZZY) {
            return None;
        }
        self.told = true;
        Some(said.digest)
    }
}

#[cfg(test)]
mod tests {
    use node_wire::ids::{SessionId, Zxid};
    use node_wire::txn::{Txn, TxnHeader};

    use super::*;

    fn at(tree: &mut Tree, zxid: u64) {
        let txn = Txn::Error { code: -101 };
        let (session, zxid, kind) = (SessionId(1), Zxid(zxid), txn.kind());
        tree.apply(&Entry::new(TxnHeader { session, cxid: 1, zxid, time_ms: 0, kind }, txn, None));
    }

    fn written(zxid: u64, digest: i64) -> Divergence {
        Divergence::of(Some(ZxidDigest { zxid: Zxid(zxid), version: DIGEST_VERSION, digest }))
    }

    #[test]
    fn a_snapshot_that_is_exact_is_compared_at_once() {
        let mut tree = Tree::default();
        at(&mut tree, 5);
        let digest = tree.digest();
        assert_eq!(written(5, digest).compare_written(&tree), None);
        let mut wrong = written(5, digest ^ 1);
        assert_eq!(wrong.compare_written(&tree), Some(digest ^ 1));
        assert_eq!(wrong.compare_written(&tree), None, "told once");
    }

    #[test]
    fn a_fuzzy_one_is_compared_where_its_writer_stood() {
        let mut tree = Tree::default();
        at(&mut tree, 5);
        let digest = tree.digest();
        let (mut right, mut wrong) = (written(7, digest), written(7, digest ^ 1));
        for zxid in [6, 7, 8] {
            assert_eq!(right.compare_written(&tree), None);
            assert_eq!(wrong.compare_written(&tree), None);
            at(&mut tree, zxid);
            if zxid == 7 {
                assert_eq!(wrong.compare_written(&tree), Some(digest ^ 1));
            }
        }
        // Of another calculation nothing is known.
        let other = ZxidDigest { zxid: Zxid(8), version: 3, digest: 1 };
        assert_eq!(Divergence::of(Some(other)).compare_written(&tree), None);
    }
}
