//! Nemeses: who breaks what, when, and how it is proven.
//!
//! A fault is data. [`catalogue`] names the kinds, [`schedule`] plans them from the seed, [`target`] turns
//! "the leader" into a member at the moment of injection and a shape of [`topology`] into directions, which
//! makes an [`action`]; [`runner`] asks the cluster for it and writes down every step, and [`proof`] looks from
//! the inside whether it bit and whether it is gone. Several may act at once: [`in_force`] is what follows from
//! all of them together, and [`ledger`] the one place that knows which those are. Nothing in here knows how a
//! cluster cuts a network, stops a process or shifts a clock.

pub mod action;
pub mod catalogue;
pub mod in_force;
pub mod journal;
pub mod ledger;
pub mod proof;
pub mod runner;
pub mod schedule;
pub mod target;
pub mod topology;

pub use catalogue::Nemesis;
pub use schedule::{Plan, PlannedFault, Schedule};
