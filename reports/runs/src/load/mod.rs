//! What clients asked, what it cost them, and what the bench itself did not send.
//!
//! - [`operations`]: counted, not judged. [`latency`]: from when each was due.
//! - [`unsent`] in figures, [`idleness`] with its reasons, [`advice`]: which flags make a load strong enough.

pub mod advice;
pub mod idleness;
pub mod latency;
pub mod operations;
pub mod unsent;
