//! Linearizability of one register with read, write and compare-and-set.
//!
//! A history of one key is linearizable when its operations can be put in one order that agrees with real
//! time (what returned before another was called comes first) and in which every answer is the right one.
//! Deciding that is NP-complete in general and easy in the cases that matter. What a register knows of its
//! own, from cheap to dear:
//!
//! | algorithm | decides | cost |
//! |---|---|---|
//! | [`blocks`] | histories whose written values all differ | n log n |
//! | [`witness`] | proves, by an order from the versions that the system reported | n log n |
//! | [`blocks`] with [`order::place_refused`] | proves, by an order | n log n |
//! | the same with [`repair`] | likewise; searches where a refusal found no place | n log n, small searches |
//!
//! Blocks refute at once, and prove when no compare-and-set was refused. An order proves nothing before
//! [`order::verify`] has confirmed it. All else is left to the searches of any object ([`crate::search`]),
//! and so is making a violation small and judging it again.
//!
//! The ideas: blocks, after the zones of Gibbons and Korach (SICOMP 1997); versions as a witness is
//! ZooKeeper's own order, which is claimed by the system under test and therefore only ever used to find an
//! order, never believed.

pub mod blocks;
pub mod explain;
#[cfg(test)]
pub(crate) mod fuzz;
pub mod order;
pub(crate) mod part;
mod portfolio;
pub mod problem;
pub mod repair;
mod spares;
pub mod witness;

pub use portfolio::{Decision, Judgement, check, judge};
pub use problem::{Action, Entry, Problem, Val};
