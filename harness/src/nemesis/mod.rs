//! Nemeses: who breaks what, when, and how it is proven.
//!
//! A fault is data. [`catalogue`] names the kinds, [`schedule`] plans them from the seed, [`target`] turns
//! "the leader" into a member at the moment of injection, [`runner`] asks the cluster for it and writes
//! down every step, and [`proof`] looks from the inside whether it bit and whether it is gone. Nothing in
//! here knows how a cluster cuts a network or stops a process.

pub mod catalogue;
pub mod journal;
pub mod proof;
pub mod runner;
pub mod schedule;
pub mod target;

pub use catalogue::Nemesis;
pub use schedule::{PlannedFault, Schedule};
