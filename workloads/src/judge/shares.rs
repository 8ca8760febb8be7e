//! What a few faults of a long run may lack.
//!
//! A run of ten minutes has hundreds of faults, and each may lack what it needs to show anything: a client on
//! one of its sides, for instance. If one such fault made the whole run undecided, the chance of a verdict
//! would fall with the run's length. So a small share of faults may be left out of what is claimed, and is
//! named. Of each kind some must be left: what was tried in vain every time was not tried.
//!
//! A run of half a minute has seven faults, of which one is more than such a share. A side without clients
//! says nothing of the system: which member a client asks is drawn. So one fault of a few may lack those. One
//! that lacks successes may not: that they are missing may be the system's doing.

use std::collections::BTreeMap;

/// One of so many may be left out.
const ONE_OF: u64 = 20;
/// Of at least so many one may be left out that lacks nothing but clients on one of its sides.
const FEW: u64 = 5;

/// How many faults of a run there are, and how many of them lack something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    all: u64,
    lacking: u64,
    /// By kind: whether one of them lacks nothing.
    kinds: BTreeMap<String, bool>,
}

impl Shares {
    /// Counts a fault of this kind; of several that acted at once, the kinds with `+` between them.
    pub fn add(&mut self, kind: &str, lacks: bool) {
        self.all += 1;
        self.lacking += u64::from(lacks);
        for kind in kind.split('+') {
            *self.kinds.entry(kind.to_owned()).or_default() |= !lacks;
        }
    }

    /// Whether those that lack something are so few that they may be left out, and leave some of their kind.
    #[must_use]
    pub fn may_be_left_out(&self) -> bool {
        self.lacking.saturating_mul(ONE_OF) <= self.all && self.leaves_every_kind()
    }

    /// The same where nothing is lacking but clients on sides: then it may also be one of a few.
    #[must_use]
    pub fn may_be_left_out_for_clients(&self) -> bool {
        self.may_be_left_out() || self.lacking <= 1 && self.all >= FEW && self.leaves_every_kind()
    }

    fn leaves_every_kind(&self) -> bool {
        self.kinds.values().all(|is_left| *is_left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of faults by kind, how many there are and how many of them lack something: whether those may be left
    /// out, and whether they may where nothing is lacking but clients.
    fn told(kinds: &[(&str, u64, u64)]) -> (bool, bool) {
        let mut shares = Shares::default();
        for (kind, all, lacking) in kinds {
            (0..*all).for_each(|at| shares.add(kind, at < *lacking));
        }
        (shares.may_be_left_out(), shares.may_be_left_out_for_clients())
    }

    #[test]
    fn one_of_a_few_may_lack_clients_and_no_whole_kind() {
        assert_eq!(told(&[("cut", 9, 1)]), (false, true));
        assert_eq!(told(&[("cut", 5, 1)]), (false, true));
        assert_eq!(told(&[("cut", 4, 1)]), (false, false), "a fifth at most");
        assert_eq!(told(&[("cut", 9, 2)]), (false, false), "one of a few");
        assert_eq!(told(&[("cut", 8, 0), ("pause", 1, 1)]), (false, false), "nothing is left of one kind");
    }

    #[test]
    fn a_twentieth_may_be_left_out_and_no_whole_kind() {
        let (may, may_not) = ((true, true), (false, false));
        for (kinds, expected) in [
            (&[("kill", 20, 1)][..], may),
            (&[("kill", 447, 22)], may),
            (&[], may),
            (&[("kill", 19, 1)], (false, true)),
            (&[("kill", 447, 23)], may_not),
            (&[("cut", 40, 2)], may),
            (&[("kill", 38, 1), ("pause", 2, 1)], may),
            // Nothing is left of one kind.
            (&[("kill", 39, 0), ("pause", 1, 1)], may_not),
            // Each kind by itself.
            (&[("kill", 39, 0), ("pause", 1, 0), ("pause+kill", 1, 1)], may),
        ] {
            assert_eq!(told(kinds), expected, "{kinds:?}");
        }
    }
}
