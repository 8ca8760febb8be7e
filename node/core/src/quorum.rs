//! What a quorum is: more than half of the voters, floor(n / 2) + 1 of n.
//!
//! Any two quorums share a voter. Everything that ZAB promises rests on that.
//!
//! While the ensemble changes from one membership to another, a quorum is one that is a quorum of both: it
//! shares a voter with every quorum of the old one and with every quorum of the new one (Shraer and others,
//! "Dynamic Reconfiguration of Primary/Backup Clusters", ATC 2012).

use std::collections::BTreeSet;

use node_wire::ids::{ServerId, Zxid};

/// The voters of one membership.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Majority {
    voters: BTreeSet<ServerId>,
    size: usize,
}

impl Majority {
    fn reached(&self, servers: &BTreeSet<ServerId>) -> bool {
        servers.intersection(&self.voters).count() >= self.size
    }

    fn reached_zxid(&self, positions: &[(ServerId, Zxid)]) -> Zxid {
        let own = positions.iter().filter(|(server, _)| self.voters.contains(server));
        let mut zxids: Vec<Zxid> = own.map(|(_, zxid)| *zxid).collect();
        zxids.sort_unstable_by(|a, b| b.cmp(a));
        zxids.get(self.size - 1).copied().unwrap_or(Zxid::ZERO)
    }
}

/// The voters of an ensemble, and how many of them decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// All that vote in any membership.
    voters: BTreeSet<ServerId>,
    /// Of the membership that rules.
    active: Majority,
    /// Of the one that is proposed, when one is.
    next: Option<Majority>,
}

impl Quorum {
    /// More than half of these.
    pub fn majority(voters: BTreeSet<ServerId>) -> Self {
        Self::of(voters.len() / 2 + 1, voters)
    }

    /// So many of these. Any two such quorums share a voter only where `size` is more than half of them.
    ///
    /// # Panics
    ///
    /// When there is no voter.
    pub fn of(size: usize, voters: BTreeSet<ServerId>) -> Self {
        assert!(!voters.is_empty(), "an ensemble has voters");
        Self { voters: voters.clone(), active: Majority { size, voters }, next: None }
    }

    /// A quorum of this one and of what is to come after it.
    #[must_use]
    pub fn and_next(self, next: Self) -> Self {
        let voters = self.voters.union(&next.voters).copied().collect();
        Self { voters, active: self.active, next: Some(next.active) }
    }

    pub(crate) fn voters(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.voters.iter().copied()
    }

    pub(crate) fn contains(&self, server: ServerId) -> bool {
        self.voters.contains(&server)
    }

    /// Voters of the membership that rules.
    pub(crate) fn active_voters(&self) -> usize {
        self.active.voters.len()
    }

    fn majorities(&self) -> impl Iterator<Item = &Majority> {
        std::iter::once(&self.active).chain(&self.next)
    }

    /// True when these servers, each counted once and only where it votes, are a quorum.
    pub(crate) fn reached(&self, servers: impl IntoIterator<Item = ServerId>) -> bool {
        let servers: BTreeSet<ServerId> = servers.into_iter().collect();
        self.majorities().all(|majority| majority.reached(&servers))
    }

    /// True when they are one of the old membership or of the new one. Enough to believe that an ensemble
    /// stands, and never enough to make one.
    pub(crate) fn reached_by_either(&self, servers: impl IntoIterator<Item = ServerId>) -> bool {
        let servers: BTreeSet<ServerId> = servers.into_iter().collect();
        self.majorities().any(|majority| majority.reached(&servers))
    }

    /// The highest zxid that a quorum has reached, given how far each of some servers is.
    pub(crate) fn reached_zxid(&self, positions: &[(ServerId, Zxid)]) -> Zxid {
        self.majorities().map(|majority| majority.reached_zxid(positions)).min().unwrap_or(Zxid::ZERO)
    }

    /// The same by the membership that rules alone.
    pub(crate) fn reached_zxid_of_active(&self, positions: &[(ServerId, Zxid)]) -> Zxid {
        self.active.reached_zxid(positions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quorum(n: u64) -> Quorum {
        Quorum::majority((1..=n).map(ServerId).collect())
    }

    fn of(voters: &[u64]) -> Quorum {
        Quorum::majority(ids(voters).collect())
    }

    fn ids(servers: &[u64]) -> impl Iterator<Item = ServerId> {
        servers.iter().copied().map(ServerId)
    }

    #[test]
    fn a_quorum_is_more_than_half() {
        for (n, size) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)] {
            assert_eq!(quorum(n).active.size, size, "of {n}");
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
        let at = |zxids: &[u64]| (1..).map(ServerId).zip(zxids.iter().copied().map(Zxid)).collect::<Vec<_>>();
        assert_eq!(quorum(3).reached_zxid(&at(&[5, 9, 2])), Zxid(5));
        assert_eq!(quorum(5).reached_zxid(&at(&[5, 9])), Zxid::ZERO);
    }

    #[test]
    fn while_the_ensemble_changes_a_quorum_is_one_of_both() {
        let joint = of(&[1, 2, 3]).and_next(of(&[3, 4, 5]));
        assert!(!joint.reached(ids(&[1, 2, 3])), "of the old alone");
        assert!(!joint.reached(ids(&[3, 4, 5])), "of the new alone");
        assert!(joint.reached(ids(&[2, 3, 4])));
        assert!(joint.reached_by_either(ids(&[1, 2])) && joint.reached_by_either(ids(&[4, 5])));
        let positions = [(1, 9), (2, 7), (3, 5), (4, 6), (5, 2)].map(|(id, zxid)| (ServerId(id), Zxid(zxid)));
        assert_eq!(joint.reached_zxid_of_active(&positions), Zxid(7));
        assert_eq!(joint.reached_zxid(&positions), Zxid(5));
    }
}
