//! A finished run as terminal text, HTML page, JUnit XML and JSON.
//!
//! The harness measures, and [`runs`] derives everything that follows from a run's folder; this crate only
//! draws it. Everything in it is a function from data to data: no clock, no files, no sockets, so that
//! `harness report` draws the same page from a run folder years later, and tests compare strings.
//!
//! - [`checked`], [`story`]: a history judged without its run, and a counterexample, as text.
//! - [`terminal`], [`html`], [`junit`]: the three renderings; `results.json` is `serde_json` on
//!   [`runs::results::Results`].
//! - [`nights`]: the same for nights of runs.
//! - [`store`]: a folder of runs, as a page that lists them.
//!
//! What it deliberately does not do: decide anything. A verdict is printed, never derived, and a number
//! that is not known is shown as not known.

pub mod checked;
pub mod html;
pub mod junit;
mod labels;
pub mod nights;
pub mod store;
pub mod story;
mod svg;
pub mod terminal;
