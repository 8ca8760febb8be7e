//! Linearizability of one register with read, write and compare-and-set.
//!
//! A history of one key is linearizable when its operations can be put in one order that agrees with real
//! time (what returned before another was called comes first) and in which every answer is the right one.
//! Deciding that is NP-complete in general and easy in the cases that matter, hence a portfolio, from cheap
//! to dear:
//!
//! | algorithm | decides | cost |
//! |---|---|---|
//! | [`blocks`] | histories whose written values all differ | n log n |
//! | [`witness`] | proves, by an order from the versions that the system reported | n log n |
//! | [`blocks`] with [`order::place_refused`] | proves, by an order | n log n |
//! | the same with [`repair`] | likewise; searches where a refusal found no place | n log n, small searches |
//! | [`frontier`] | everything, breadth first over the operations open at once | exponential in those |
//! | [`dfs`] | everything, depth first | exponential |
//!
//! Blocks refute at once, and prove when no compare-and-set was refused. An order proves nothing before
//! [`order::verify`] has confirmed it.
//!
//! The ideas: blocks, after the zones of Gibbons and Korach (SICOMP 1997); the two searches of Wing and Gong
//! as Lowe improved them (2017); versions as a witness is ZooKeeper's own order, which is claimed by the
//! system under test and therefore only ever used to find an order, never believed.
//!
//! These searches stay apart from those of any object ([`crate::search`]), which judge a register as well,
//! but slower: they know that a value has to be written before it is read, which writes nobody needs, and
//! where a refusal can stand. No [`crate::model::Model`] can say that of its operations.
//!
//! Whatever refutes, the refutation is reduced to a few operations and judged again by the plain search
//! before it is called a violation.

pub mod blocks;
mod dead_ends;
pub mod dfs;
pub mod explain;
pub mod frontier;
#[cfg(test)]
pub(crate) mod fuzz;
mod mutant;
pub mod order;
mod part;
mod portfolio;
pub mod problem;
pub mod reduce;
pub mod repair;
pub mod shrink;
pub mod witness;

pub use portfolio::{Algorithm, Decision, Judgement, check, has_order, judge};
pub use problem::{Action, Entry, Problem, Val};

use crate::budget::Exhausted;

/// Everything that a complete search can tell.
#[derive(Clone, Debug)]
pub struct Searched {
    /// The answer.
    pub found: Found,
    /// With an order: the indices of its entries, if it was asked for.
    pub order: Option<Vec<usize>>,
    /// How far the search got.
    pub reached: Reached,
}

/// How far a search got before it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Operations that some order explained, of those that the search had to explain.
    pub explained: usize,
    /// Those that it had to explain.
    pub of: usize,
    /// Configurations held in memory.
    pub configurations: usize,
}

impl std::fmt::Display for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { explained, of, configurations } = self;
        write!(f, "operation {explained} of {of} reached with {configurations} configurations")
    }
}

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
