//! Words: what people type, read and written, and what they may have meant.
//!
//! - [`span`]: durations; [`size`]: sizes of memory; [`suggest`]: the nearest known name;
//!   [`typed`]: words for a shell.

pub mod suggest;
pub mod typed;

pub use runs::{size, span};
