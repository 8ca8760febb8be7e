//! Linearizability of one register with read, write and compare-and-set.
//!
//! A history of one key is linearizable when its operations can be put in one order that agrees with real time
//! (what returned before another was called comes first) and in which every answer is the right one. Deciding
//! that is NP-complete in general and easy in the cases that matter, hence a portfolio, from cheap to dear:
//!
//! | algorithm | decides | cost |
//! |---|---|---|
//! | [`zones`] | histories whose written values all differ: refutes at once; proves when no compare-and-set was refused | n log n |
//! | [`witness`] | proves, from the versions that the system reported, by an order that [`order::verify`] confirms | n log n |
//! | [`zones`] with [`order::place_refused`] | proves, by an order that is confirmed likewise | n log n |
//! | [`frontier`] | everything, breadth first over the operations that are open at once | exponential in those |
//! | [`dfs`] | everything, depth first | exponential |
//!
//! The ideas: zones of Gibbons and Korach (SICOMP 1997); the two searches of Wing and Gong as Lowe improved them
//! (2017); versions as a witness is ZooKeeper's own order, which is claimed by the system under test and
//! therefore only ever used to find an order, never believed.
//!
//! Whatever refutes, the refutation is reduced to a few operations and judged again by the plain search before
//! it is called a violation.

pub mod dfs;
pub mod explain;
pub mod frontier;
#[cfg(test)]
mod fuzz;
pub mod order;
mod portfolio;
pub mod problem;
pub mod reduce;
pub mod shrink;
pub mod witness;
pub mod zones;

pub use portfolio::{Algorithm, Decision, Judgement, check};
pub use problem::{Action, Entry, Problem, Val};

use crate::budget::Exhausted;

/// What a complete search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// An order exists.
    Order,
    /// None exists; the search got stuck for good at this entry.
    NoOrder {
        /// The entry that no order can place.
        stuck_at: usize,
    },
    /// The search gave up.
    GaveUp(Exhausted),
}
