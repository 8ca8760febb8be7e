//! What a quorum is: more than half of the voters, floor(n / 2) + 1 of n.
//!
//! Any two quorums share a voter. Everything that ZAB promises rests on that.

use std::collections::BTreeSet;

use node_wire::ids::{ServerId, Zxid};

/// The voters of an ensemble.
#[derive(Clone, Debug)]
pub(crate) struct Quorum {
    voters: BTreeSet<ServerId>,
    size: usize,
}

impl Quorum {
    pub(crate) fn new(voters: BTreeSet<ServerId>) -> Self {
        assert!(!voters.is_empty(), "an ensemble has voters");
        Self { size: voters.len() / 2 + 1, voters }
    }

    /// As a planted bug counts: half of the voters are enough. Two such quorums of an even ensemble need not meet.
    pub(crate) fn of_half(voters: BTreeSet<ServerId>) -> Self {
        Self { size: voters.len().div_ceil(2), voters }
    }

    pub(crate) fn voters(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.voters.iter().copied()
    }

    pub(crate) fn contains(&self, server: ServerId) -> bool {
        self.voters.contains(&server)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// True when these servers, each counted once and only if it votes, are a quorum.
    pub(crate) fn reached(&self, servers: impl IntoIterator<Item = ServerId>) -> bool {
        let counted: BTreeSet<ServerId> =
            servers.into_iter().filter(|server| self.voters.contains(server)).collect();
        counted.len() >= self.size()
    }

    /// The highest zxid that a quorum has reached, given how far each of some voters is.
    pub(crate) fn reached_zxid(&self, positions: &mut [Zxid]) -> Zxid {
        positions.sort_unstable_by(|a, b| b.cmp(a));
        positions.get(self.size() - 1).copied().unwrap_or(Zxid::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quorum(n: u64) -> Quorum {
        Quorum::new((1..=n).map(ServerId).collect())
    }

    #[test]
    fn a_quorum_is_more_than_half() {
        for (n, size) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)] {
            assert_eq!(quorum(n).size(), size, "of {n}");
        }
    }

    #[test]
    fn the_planted_half_is_a_quorum_in_even_ensembles_only() {
        for (n, size) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)] {
            assert_eq!(Quorum::of_half((1..=n).map(ServerId).collect()).size(), size, "of {n}");
        }
    }

    #[test]
    fn strangers_and_repetitions_do_not_count() {
        let quorum = quorum(3);
        assert!(!quorum.reached([ServerId(1), ServerId(1), ServerId(9)]));
        assert!(quorum.reached([ServerId(1), ServerId(3)]));
    }

    #[test]
    fn the_position_of_a_quorum_is_that_of_its_slowest_member() {
        let z = Zxid;
        assert_eq!(quorum(3).reached_zxid(&mut [z(5), z(9), z(2)]), z(5));
        assert_eq!(quorum(5).reached_zxid(&mut [z(5), z(9)]), Zxid::ZERO);
    }
}
