//! A history from anywhere, judged within bounds.
//!
//! - [`bounds`]: a thread that watches the clock and the memory, rings the searches' bell, and keeps the
//!   bound whatever they do.
//! - [`source`]: where a history comes from, what kind it seems to be, and how much of it was read.
//! - [`streamed`]: registers from a file of any length.
//!
//! What a verdict is, is decided in `checker`; what is printed, in `reports`; the command is in
//! `commands/check`.

pub mod bounds;
pub mod source;
pub mod streamed;
