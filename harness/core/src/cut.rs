//! Directions of data between members, and what becomes of what is sent in them.

use runs::member::MemberId;
use serde::{Deserialize, Serialize};

/// A direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "(u64, u64)", from = "(u64, u64)")]
pub struct Pair {
    /// Who speaks.
    pub from: MemberId,
    /// Who hears.
    pub to: MemberId,
}

impl Pair {
    /// From one member to another.
    pub fn new(from: MemberId, to: MemberId) -> Self {
        Self { from, to }
    }

    /// The other direction.
    pub fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

impl From<(u64, u64)> for Pair {
    fn from((from, to): (u64, u64)) -> Self {
        Self { from: MemberId(from), to: MemberId(to) }
    }
}

impl From<Pair> for (u64, u64) {
    fn from(pair: Pair) -> Self {
        (pair.from.0, pair.to.0)
    }
}

/// What becomes of what a cut does not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severing {
    /// Nobody hears of it again while the cut holds.
    Silence,
    /// Whoever sent it is told by a reset.
    Reject,
}

/// Directions of data in which nothing passes. A direction that is not named passes, so a cut may be one-way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The directions, ascending, each once.
    pub pairs: Vec<Pair>,
    /// What becomes of it.
    pub how: Severing,
}

impl Cut {
    /// Both directions between members of different groups.
    pub fn between(groups: &[Vec<MemberId>], how: Severing) -> Self {
        let members: Vec<MemberId> = groups.concat();
        let mut pairs: Vec<Pair> = members
            .iter()
            .flat_map(|from| members.iter().map(|to| Pair::new(*from, *to)))
            .filter(|pair| is_across(groups, *pair))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        Self { pairs, how }
    }

    /// Whether it cuts this direction.
    pub fn severs(&self, pair: Pair) -> bool {
        self.pairs.binary_search(&pair).is_ok()
    }
}

/// Whether a direction leads from one group to another.
pub fn is_across(groups: &[Vec<MemberId>], pair: Pair) -> bool {
    !groups.iter().any(|group| group.contains(&pair.from) && group.contains(&pair.to))
}
