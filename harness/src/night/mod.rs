//! Nights: the runs of a file within a budget.
//!
//! A night makes each run in a process of its own, as anybody would by hand. So a run that breaks its
//! harness, takes all memory or hangs costs one attempt and not the night, and what it shows can be repeated
//! by one command. The night itself only decides what comes next, waits, reads folders and appends to the
//! index.
//!
//! - [`child`]: a run in another process, with a deadline, ended gently.
//! - [`store`]: the folder of all nights, its index, its lock, and what is kept.
//! - [`build`]: the executable that makes the runs, kept for comparisons in later nights.
//! - [`machine`]: where it runs.
//! - [`outcome`]: a run folder as a line of the index.
//! - [`settings`]: the file and the flags, checked before anything starts.
//! - [`runner`]: the night itself, from its [`beginning`]; [`violation`]: runs a violation again and makes it
//!   smaller; [`alarm`]: compares builds; [`worlds`]: fills idle budget.
//! - [`files`]: what comes out of it for people and programs.
//!
//! What it deliberately does not do: judge a run (the run does), decide what a night comes to
//! ([`nights::fold`]), draw (`reports`).

pub mod alarm;
pub mod beginning;
pub mod build;
pub mod child;
pub mod files;
pub mod machine;
pub mod outcome;
pub mod runner;
pub mod settings;
pub mod store;
pub mod violation;
pub mod worlds;
