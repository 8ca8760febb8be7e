//! The near-linear test by blocks, for histories whose written values all differ.
//!
//! **Blocks.** When a value is written once, the register holds it during one stretch of time: from its write
//! to the next change. A compare-and-set that happened ties two stretches together, with nothing between. So
//! the operations fall into *blocks*: a value's write, its reads, then if some compare-and-set took the value
//! away, that one, its value's reads, and so on. The operations that show one value are a *segment* of the
//! block. A linearization is an order of blocks, each in one piece, and an order within each.
//!
//! **Within a block** the segments have a fixed order, which must not contradict real time.
//!
//! **Between blocks** A must come before B when some operation of A returned before some operation of B was
//! called, that is, when `first(A) < last(B)` with `first` the earliest return and `last` the latest call
//! (`Stretch::must_precede`).
//!
//! **Theorem.** An order of blocks exists if and only if no two blocks must each come before the other
//! (`Stretch::conflicts`). *Proof.* An order exists if and only if "must come before" has no cycle. A
//! longer cycle contains such a pair: of its blocks take the one, A, with the earliest return. Every block B
//! of the cycle has a predecessor P in it with `first(P) < last(B)`, and `first(A) <= first(P)`, so A must
//! come before all of them, also before its own predecessor. ∎
//!
//! **Open operations** take part only when somebody saw their value, directly or through a chain of
//! compare-and-sets; the others may be absent.
//!
//! **Refused compare-and-sets** say "not this value now", which is a choice (before its stretch or after it)
//! and not an order, so they are left out of the blocks. One contradiction is certain all the same: a refusal
//! from v that lies wholly between two operations that both show v. When some are refused, an order found
//! here is a candidate only.
//!
//! - [`test()`] (`offline`): a history in memory; finds an order, or a [`Contradiction`].
//! - `online`: the same, call by call and return by return, in the memory of what is open; `refused` says
//!   when a refusal has a place there for certain.
//!
//! After Gibbons and Korach, "Testing shared memories" (SICOMP 1997), whose zones are blocks of one value;
//! extended by the chains.

#[cfg(test)]
pub(crate) mod fuzz;
mod offline;
pub(crate) mod online;
mod refused;
pub(crate) mod terms;
mod window;

pub use offline::{Tested, test, values_of};

/// A moment in the order of calls and returns.
pub(crate) type Moment = u64;

/// The register's beginning, before every call.
pub(crate) const BEGINNING: Moment = 0;

/// When a block must hold the register: from `first` to `last`. When `last` is the earlier one, all its
/// operations overlap, and any one moment between the two is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// The earliest return.
    pub(crate) first: Moment,
    /// The latest call.
    pub(crate) last: Moment,
}

impl Stretch {
    /// Whether an operation of this block had returned when one of the other was called.
    #[inline]
    pub(crate) fn must_precede(self, other: Self) -> bool {
        self.first < other.last
    }

    /// Whether each would have to come before the other.
    #[inline]
    pub(crate) fn conflicts(self, other: Self) -> bool {
        self.must_precede(other) && other.must_precede(self)
    }
}

/// Two ends of a block, as a contradiction names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends<O> {
    /// The operation that returned first; none is the register's beginning.
    pub first: Option<O>,
    /// The operation that was called last.
    pub last: O,
    /// The compare-and-sets that tie the values of these two together, as far as they are known.
    pub links: Vec<O>,
}

/// Why no order exists. Operations are named by `O`: an index in a list, or the record of an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction<O = usize> {
    /// A value was seen, or taken by a compare-and-set, that nobody had written, or that can't be there any
    /// more.
    Gone {
        /// The operation that saw it.
        seen_by: O,
        /// Operations on another value that replaced it, if it ever was there.
        replaced_by: Vec<O>,
    },
    /// A change was denied, and its value was seen.
    Denied {
        /// The change.
        change: O,
        /// The operation that saw its value.
        seen_by: O,
    },
    /// Two compare-and-sets took the same value away.
    TakenTwice {
        /// One of them.
        first: O,
        /// The other.
        second: O,
    },
    /// Compare-and-sets that each need the value of another one, in a cycle.
    Cycle {
        /// All of them.
        members: Vec<O>,
    },
    /// The values decide that `earlier` comes first, but it was called only after `later` had returned.
    Inverted {
        /// What must come first.
        earlier: O,
        /// What had returned before.
        later: O,
    },
    /// Two blocks that would each have to come before the other: the first of either returned before the last
    /// of the other was called.
    Entangled {
        /// One of them, which may be the beginning.
        one: Ends<O>,
        /// The other.
        other: Ends<O>,
    },
    /// A refusal from a value that the register held all the time.
    Held {
        /// An operation that shows the value and returned before the refused one was called; none is the
        /// register's beginning.
        before: Option<O>,
        /// The refused compare-and-set.
        refused: O,
        /// An operation that needs the value and was called after the refused one had returned.
        after: O,
    },
}

impl<O: Copy + Ord> Contradiction<O> {
    /// The operations that it names, ascending.
    #[must_use]
    pub fn operations(&self) -> Vec<O> {
        let ends = |ends: &Ends<O>| -> Vec<O> {
            ends.first.iter().chain([&ends.last]).chain(&ends.links).copied().collect()
        };
        let mut named: Vec<O> = match self {
            Self::Gone { seen_by, replaced_by } => replaced_by.iter().chain([seen_by]).copied().collect(),
            Self::Denied { change: one, seen_by: other }
            | Self::TakenTwice { first: one, second: other }
            | Self::Inverted { earlier: one, later: other } => vec![*one, *other],
            Self::Cycle { members } => members.clone(),
            Self::Entangled { one, other } => [ends(one), ends(other)].concat(),
            Self::Held { before, refused, after } => before.iter().chain([refused, after]).copied().collect(),
        };
        named.sort_unstable();
        named.dedup();
        named
    }

    /// What is wrong, without naming operations.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Gone { .. } => "a value was seen that can't be there any more, or that nobody wrote",
            Self::Denied { .. } => "the value of a change that was denied was seen",
            Self::TakenTwice { .. } => "two compare-and-sets replaced the same value",
            Self::Cycle { .. } => "compare-and-sets need each other's values in a cycle",
            Self::Inverted { .. } => "values were seen in another order than they were made in",
            Self::Entangled { .. } => "two values would each have to come before the other",
            Self::Held { .. } => "a compare-and-set was refused although its value was there throughout",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    /// Whether some order keeps every block before those that it must precede, by trying all of them.
    fn has_order(blocks: &mut Vec<Stretch>) -> bool {
        if blocks.is_empty() {
            return true;
        }
        (0..blocks.len()).any(|at| {
            let first = blocks.remove(at);
            let fits = blocks.iter().all(|&later| !later.must_precede(first)) && has_order(blocks);
            blocks.insert(at, first);
            fits
        })
    }

    #[test]
    fn blocks_have_an_order_unless_two_of_them_must_each_precede_the_other() {
        let (mut with, mut without) = (0, 0);
        for seed in 0..5_000 {
            let mut chance = Chance(seed);
            let width = 2 + chance.below(12_u64);
            let count = 2 + chance.below(5_usize);
            let mut blocks: Vec<Stretch> = (0..count)
                .map(|_| {
                    let first = 1 + 2 * chance.below(20_u64);
                    Stretch { first, last: 2 * chance.below(width) + first.saturating_sub(width) / 2 * 2 }
                })
                .collect();
            let pairs = |at: usize| (at + 1..count).map(move |other| (at, other));
            let conflict = (0..count).flat_map(pairs).any(|(a, b)| blocks[a].conflicts(blocks[b]));
            assert_eq!(has_order(&mut blocks), !conflict, "seed {seed}: {blocks:?}");
            if conflict { without += 1 } else { with += 1 }
        }
        assert!(with > 500 && without > 500, "{with} {without}");
    }
}
