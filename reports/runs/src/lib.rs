//! A run folder as data: the formats of its files, and everything that follows from them.
//!
//! Why a crate: a run is judged, drawn, compared with others and looked at by nights from its folder alone,
//! years later and without the system that was tested. Whatever follows from the files is derived here, once.
//! The harness writes what is defined here, and the reports draw what is derived here.
//!
//! The way goes straight down: files -> [`faults`] folded -> [`episodes`] -> [`checks`] -> [`findings`] ->
//! [`results`].
//!
//! - Formats: [`results`] (`run.json`, `results.json`), [`schedule`], [`faults`] (`faults.jsonl`),
//!   [`observed`] with [`events`], [`notices`] and [`lag`] (`observed.json`), [`template`] (`tests.jsonl`)
//!   and [`assertions`]. The history is `checker`'s.
//! - Words of the files: [`member`], [`clock`], [`cluster_kind`], [`kinds`] and [`mechanism`] of faults.
//!   Words that people type: [`mod@span`] of time, [`size`] of memory.
//! - What each member was: [`views`], [`spans`]. What faults did: [`episodes`], [`absences`], [`stalls`],
//!   [`causes`].
//! - What the bench did not send, and what helps: [`unsent`], [`idleness`], [`advice`].
//! - What clients paid: [`operations`], [`outages`] and [`key_outages`] as [`outage`] keeps them,
//!   [`silence`], [`latency`]. What is promised of its end: [`comes_back`]. What leaders cost: [`elections`]
//!   by phase, [`election_kinds`] by kind of fault.
//! - What holders cost: [`terms`].
//! - [`checks`] and [`judge`]: the verdict. [`blame`]: which operation of a counterexample.
//!   [`findings`], [`broken`], [`held`], [`verdicts`], [`numbers`]:
//!   the same in words.
//!
//! What it deliberately does not do: open files, read a clock, know a catalogue. Kinds of faults and systems
//! are identifiers here. Each run describes them in its own folder, so an old folder is judged and drawn as
//! it was meant. What a workload promises is in `workloads`; one that is not known is not judged.

pub mod absences;
pub mod advice;
pub mod assertions;
pub mod blame;
pub mod broken;
pub mod causes;
pub mod checks;
pub mod clock;
pub mod cluster_kind;
pub mod comes_back;
pub mod cut_off;
pub mod election_kinds;
pub mod elections;
pub mod episodes;
pub mod events;
pub mod faults;
pub mod findings;
pub mod held;
pub mod idleness;
pub mod judge;
pub mod key_outages;
pub mod kinds;
pub mod lag;
pub mod latency;
pub mod mechanism;
pub mod member;
pub mod notices;
pub mod numbers;
pub mod observed;
pub mod operations;
pub mod outage;
pub mod outages;
pub mod results;
pub mod schedule;
pub mod silence;
pub mod size;
pub mod span;
pub mod spans;
pub mod stalls;
pub mod standing;
pub mod template;
pub mod terms;
pub mod unsent;
pub mod verdicts;
pub mod views;
