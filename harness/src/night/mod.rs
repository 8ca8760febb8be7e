//! Nights: the runs of a file within a budget.
//!
//! A night makes each run in a process of its own, as anybody would by hand. So a run that breaks its
//! harness, takes all memory or hangs costs one attempt and not the night, and what it shows can be repeated
//! by one command. What comes next is decided by [`nights::scheduler`]; here it is done.
//!
//! - [`settings`]: the file and the flags, checked before anything starts. [`beginning`]: a new night, or one
//!   that goes on.
//! - [`driver`]: starts what is decided, says what came of it, and when.
//! - [`child`]: a run in another process, with a deadline, ended gently. [`record`]: the folder that it left.
//! - [`build`]: the executable that makes the runs, kept for comparisons in later nights.
//! - [`machine`]: where it runs.
//! - [`store`]: the folder of all nights, its index, its lock, and what is kept.
//! - [`hook`]: the command that is started for findings. [`files`]: what people and programs read.
//!
//! What it deliberately does not do: decide what a night begins, tries again or compares
//! ([`nights::scheduler`]) or what it comes to ([`nights::fold`]); judge a run (the run does); draw
//! (`reports`).

pub mod beginning;
pub mod build;
pub mod child;
mod children;
pub mod driver;
pub mod files;
pub mod hook;
pub mod machine;
pub mod record;
pub mod settings;
pub mod store;
