//! Words: what people type, read and written, and what they may have meant.
//!
//! - [`span`]: durations; [`size`]: sizes of memory; [`suggest`]: the nearest known name.

pub mod size;
pub mod span;
pub mod suggest;
