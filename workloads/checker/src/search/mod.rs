//! Linearizability of any object, by searches that know nothing of it but its [`Model`].
//!
//! A history is linearizable when its operations can be put in one order that agrees with real time (what
//! returned before another was called comes first) and in which every answer is the right one. Independent
//! parts of the object are judged by themselves ([`judge`]), and each part by a portfolio, from cheap to
//! dear:
//!
//! | member | decides | cost |
//! |---|---|---|
//! | [`Model::shortcut`] | what the object knows of its own | near-linear |
//! | [`frontier`] | everything, breadth first over the operations open at once | exponential in those |
//! | [`depth_first`] | everything, depth first | exponential |
//!
//! What an object knows of its own are patterns that refute, and an order that [`crate::confirm::object`]
//! confirms.
//!
//! The searches go through the object as the history can see it ([`Model::as_seen_by`]): what no answer tells
//! apart is one state. What they find is confirmed and explained by the object itself.
//!
//! The two searches take turns of growing length, and go on where they were, because each is quick where the
//! other is lost: the answer takes at most a few times what the quicker one takes. Parts take turns too,
//! because one part that is refuted decides about the whole. [`plain`] is the referee: slow, simple, and what
//! a counterexample is judged again by. The ideas are Wing and Gong's (1993) and Lowe's (2017); locality and
//! prefix closure are Herlihy and Wing's (1990).

pub mod depth_first;
pub(crate) mod explain;
pub mod frontier;
#[cfg(test)]
mod fuzz;
mod judge;
pub mod plain;
pub(crate) mod sabotage;
pub mod shrink;
mod window;

pub use judge::{Algorithm, NAME, judge};
pub(crate) use judge::{Decision, How, decide};

use crate::budget::Exhausted;

#[cfg(doc)]
use crate::model::Model;

/// What a complete search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An order exists: this one, by places in the list of calls, if the search keeps it. Operations of
    /// unknown fate that are not in it never happened.
    Order(Option<Vec<usize>>),
    /// None exists. Of all returns this one's is the first by which it is certain: the history up to there
    /// has no order, and up to the return before it has one.
    NoOrder {
        /// The operation that returns there, by its place in the list of calls.
        stuck_at: usize,
    },
    /// The search gave up.
    GaveUp {
        /// Why.
        why: Exhausted,
        /// How many operations some order explains, at least.
        reached: usize,
    },
}
