//! A run folder as data: the formats of its files, and everything that follows from them.
//!
//! Why a crate: a run is judged, drawn, compared with others and looked at by nights from its folder alone,
//! years later and without the system that was tested. Whatever follows from the files is derived here, once.
//! The harness writes what is defined here, and the reports draw what is derived here.
//!
//! The way goes straight down: files -> [`faults`] folded -> [`episodes`] -> [`checks`] -> [`findings`] ->
//! [`results`].
//!
//! A folder is one idea; the crate hands its files on by their own names.
//!
//! - [`units`]: time, sizes and numbers.
//! - [`evidence`]: what was seen of members and bench. The history is `checker`'s.
//! - [`faults`]: planned, injected, proven, gone; whom they hit and what acts at once.
//! - [`load`]: what clients asked and paid, and what the bench did not send.
//! - [`outages`], [`elections`]: what faults cost.
//! - [`checks`], [`verdict`]: what is judged, and how it is said.
//! - [`results`]: `run.json` and `results.json`.
//!
//! What it deliberately does not do: open files, read a clock, know a catalogue. Kinds of faults and systems
//! are identifiers here. Each run describes them in its own folder, so an old folder is judged and drawn as
//! it was meant. What a workload promises is in `workloads`; one that is not known is not judged.

pub mod checks;
pub mod elections;
pub mod evidence;
pub mod faults;
pub mod load;
pub mod outages;
pub mod results;
pub mod units;
pub mod verdict;

pub use elections::{election_kinds, terms};
pub use evidence::{
    assertions, cluster_kind, events, lag, member, notices, observed, spans, stalls, template, views,
};
pub use faults::{absences, causes, consequence, cut_off, episodes, kinds, schedule};
pub use load::{advice, idleness, latency, operations, unsent};
pub use outages::{comes_back, key_outages, outage, silence};
pub use units::{clock, numbers, size, span};
pub use verdict::{blame, broken, findings, held, judge, standing, verdicts};
