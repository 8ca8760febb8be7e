//! A finished run as terminal text, HTML page, JUnit XML and JSON.
//!
//! The harness measures and judges; this crate only says what came out. Everything in it is a function from
//! data to data: no clock, no files, no sockets, so that `harness report` draws the same page from a run
//! folder years later, and tests compare strings.
//!
//! - [`results`]: the types of `run.json` and `results.json`; [`faults`]: those of `faults.jsonl`.
//! - [`operations`]: the history as pairs of call and answer, and what can be counted on them;
//!   [`outages`] and [`latency`]: what clients paid; [`elections`]: what leaders cost, by kind of fault.
//! - [`findings`]: the sentences that each part of a report opens with, drawn from the data; `broken`: what a
//!   violation means in words of promises; `held`: which members showed a value; `verdicts`: how a verdict is told.
//! - [`checked`], [`story`]: a history judged without its run, and a counterexample, as text.
//! - [`terminal`], [`html`], [`junit`]: the three renderings; `results.json` is `serde_json` on
//!   [`results::Results`].
//!
//! What it deliberately does not do: decide anything. A verdict is printed, never derived, and a number
//! that is not known is shown as not known.

mod broken;
pub mod checked;
pub mod elections;
pub mod faults;
pub mod findings;
mod held;
pub mod html;
pub mod junit;
mod labels;
pub mod latency;
pub mod numbers;
pub mod operations;
pub mod outages;
pub mod results;
pub mod story;
mod svg;
pub mod terminal;
mod verdicts;
