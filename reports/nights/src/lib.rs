//! Nightly runs as data: the file that asks for them, what a night tries first, what it found, and what
//! changed since the nights before.
//!
//! Why a crate: a night is planned, decided, judged and drawn without a clock, a cluster or a browser, so
//! everything in it can be tested without them. The harness makes the runs and appends to the index;
//! `reports` draws what is derived here.
//!
//! The way goes straight down: [`suite`] -> [`plan`] -> [`scheduler`] -> runs -> [`outcome`] -> [`index`] ->
//! [`fold`] -> pages and files.
//!
//! - [`suite`]: `nightly.toml`, its cases expanded, its mistakes named.
//! - [`plan`]: what is tried first within a budget, and what is left out and why.
//! - [`scheduler`]: a night as a pure machine: what is begun, tried again, replayed, made smaller, compared,
//!   told. Its rules are golden scripts (`tests/scheduler`).
//! - [`outcome`]: a run that has ended, as a line. [`pile`]: what it is taken for. Four piles that never mix.
//! - [`index`]: `nights.jsonl`, one line for whatever happened, only ever appended to.
//! - [`measures`]: the numbers of a run by name; [`statistic`]: what of them counts;
//!   [`threshold`]: what they must be; [`machine`]: where they
//!   may be compared.
//! - [`fingerprint`] and [`findings`]: violations over many nights.
//! - [`fence`]: whether tonight stands out. [`change_points`]: since when a level has changed. [`paired`]:
//!   whether two builds differ. They share [`quantiles`] and [`student`].
//! - [`fold`]: nights as they are judged and drawn. [`trends`]: their numbers as series.
//!
//! What it deliberately does not do: open files, read a clock, start anything, know a catalogue of faults or
//! systems. A case's flags are text here; whoever runs them says whether they mean something.

pub mod change_points;
pub mod fence;
pub mod findings;
pub mod fingerprint;
pub mod fold;
pub mod index;
#[cfg(test)]
mod invented;
pub mod machine;
pub mod measures;
#[cfg(test)]
mod noise;
pub mod outcome;
pub mod paired;
pub mod pile;
pub mod plan;
pub mod quantiles;
pub mod scheduler;
pub mod statistic;
pub mod student;
pub mod suite;
pub mod threshold;
pub mod trends;
