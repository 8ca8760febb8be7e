//! Nemeses at work: a fault is asked of the cluster, proven, healed, and proven to be gone.
//!
//! What a fault is, whom it hits and when is decided in [`harness_core::fault`] and [`harness_core::schedule`]. [`runner`]
//! asks the cluster for it and writes down every step, and [`proof`] looks from the inside whether it bit and whether it is
//! gone. Several may act at once: [`ledger`] is the one place that knows which those are. Nothing in here knows how a
//! cluster cuts a network, stops a process or shifts a clock.

pub mod catalogue;
pub mod journal;
pub mod ledger;
pub mod proof;
pub mod runner;

pub use harness_core::fault::Nemesis;
pub use harness_core::schedule::{Plan, PlannedFault, Schedule};
