//! Words: what people type, read and written, and what they may have meant.
//!
//! - [`span`]: durations; [`size`]: sizes of memory; [`suggest`]: the nearest known name.

pub mod suggest;

pub use runs::{size, span};
