//! Digests of the committed tree at zxids of the past, for operators who compare members with each other.
//!
//! Nothing is decided by them.

use std::collections::VecDeque;

use node_wire::ids::Zxid;

/// The tree's digest is remembered for one transaction in so many, as in ZooKeeper (`hash` tells them).
const DIGEST_EVERY: u32 = 128;

/// How many digests are remembered.
const MAX_DIGESTS: usize = 1024;

/// Digests of the committed tree at zxids that every member remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct DigestLog(VecDeque<(Zxid, i64)>);

impl DigestLog {
    /// The tree after a transaction.
    pub(crate) fn note(&mut self, zxid: Zxid, digest: i64) {
        if !zxid.counter().is_multiple_of(DIGEST_EVERY) {
            return;
        }
        if self.0.len() == MAX_DIGESTS {
            self.0.pop_front();
        }
        self.0.push_back((zxid, digest));
    }

    /// Those that are kept, oldest first.
    pub(crate) fn kept(&self) -> Vec<(Zxid, i64)> {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use node_wire::ids::Epoch;

    use super::*;

    #[test]
    fn digests_are_remembered_at_the_same_zxids_everywhere_and_not_for_ever() {
        let mut log = DigestLog::default();
        for counter in 0..=300 {
            log.note(Zxid::new(Epoch(1), counter), i64::from(counter));
        }
        let kept: Vec<i64> = log.kept().into_iter().map(|(_, digest)| digest).collect();
        assert_eq!(kept, [0, 128, 256]);
        for epoch in 0..2000 {
            log.note(Zxid::new(Epoch(epoch), 128), 0);
        }
        assert_eq!(log.kept().len(), MAX_DIGESTS);
    }
}
