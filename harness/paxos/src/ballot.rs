//! The number of a proposal.

use std::fmt;

use harness_protocols::Id;

/// The number of a proposal: no two have the same, and of any two one is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// Counted up by every proposer beyond all rounds that it has heard of.
    pub round: u32,
    /// Whose it is. 0 is the ballot below all others, which is nobody's.
    pub proposer: u8,
}

impl Ballot {
    /// The ballot of a proposer in a round.
    #[must_use]
    pub fn of(round: u32, proposer: Id) -> Self {
        Self { round, proposer: proposer.0 }
    }

    /// The same as one number, in the same order: the round in thousands, and whose it is. `2.5` is 2005.
    #[must_use]
    pub fn as_term(self) -> u64 {
        u64::from(self.round) * 1000 + u64::from(self.proposer)
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.round, self.proposer)
    }
}
