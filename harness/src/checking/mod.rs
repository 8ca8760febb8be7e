//! A history from anywhere, judged within bounds.
//!
//! - [`bounds`]: a thread that watches the clock and the memory, rings the searches' bell, and keeps the bound
//!   whatever they do.
//! - [`source`]: where a history comes from, what kind it seems to be, and how much of it was read.
//! - [`judging`]: from the flags to what is printed.
//! - [`streamed`]: registers from a file of any length.
//! - [`witness`]: the order that proves a valid verdict, written and confirmed.
//!
//! What a verdict is, is decided in `checker`; what is printed, in `reports`.

pub mod bounds;
pub mod judging;
pub mod source;
pub mod streamed;
pub mod witness;
