//! Nemeses at work: a fault is asked of the cluster, proven, healed, and proven to be gone.
//!
//! What a fault is, whom it hits, and what is done about it when is decided in [`harness_core`]: its
//! catalogue, its schedule and its machine ([`harness_core::nemeses`]). [`runner`] has a cluster do what the
//! machine decides, by what each [mechanism](crate::mechanisms) has for that. Nothing in here knows how a
//! cluster cuts a network, stops a process or shifts a clock.

pub mod catalogue;
pub mod runner;

pub use harness_core::fault::Nemesis;
pub use harness_core::schedule::{Plan, PlannedFault, Schedule};
