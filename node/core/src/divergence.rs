//! Whether this member's tree is still that of the others.
//!
//! A leader that has members of Apache ZooKeeper to lead says with each transaction which digest the tree has after it,
//! and so do their leaders. Whoever applies it compares, and tells the operator of the first difference: nothing else
//! can be done about it here, and to stop every member at once would be no better.
//!
//! A snapshot of Apache ZooKeeper is fuzzy. It becomes the tree of one moment only by the transactions behind it, so
//! what differs before the first agreement means nothing, unless agreement never comes.

use node_wire::digest::DIGEST_VERSION;
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
}

impl Divergence {
    /// Looks at the tree after a transaction. Gives the digest that it should have, when that is to be told.
    pub(crate) fn compare(&mut self, tree: &Tree, entry: &Entry) -> Option<i64> {
        let said = entry.digest.filter(|said| said.version == DIGEST_VERSION)?;
        if said.digest == tree.digest() {
            *self = Self { agreed: true, ..Self::default() };
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
