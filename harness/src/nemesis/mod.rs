//! Nemeses at work: a fault is asked of the cluster, proven, healed, and proven to be gone.
//!
//! What a fault is, whom it hits, and what is done about it when is decided in [`harness_core`]: its
//! catalogue, its schedule and its machine ([`harness_core::nemeses`]). [`runner`] has a cluster do what the
//! machine decides, and [`proof`] looks from the inside whether a fault bit and whether it is gone. Faults of
//! the user's own are brought and proven by commands ([`own`]).
//! Nothing in here knows how a cluster cuts a network, stops a process or shifts a clock.

pub mod catalogue;
pub mod own;
pub mod proof;
pub mod runner;

pub use harness_core::fault::Nemesis;
pub use harness_core::schedule::{Plan, PlannedFault, Schedule};
