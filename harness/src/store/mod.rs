//! Where runs are kept: one folder each, and everything after the run is a function of it.
//!
//! - [`folder`]: the folder of one run, its files by name.
//! - [`journal`]: its faults, a line for every step, written the moment it happens.
//! - [`lock`]: who owns an unfinished run, and whether that process still lives.

pub mod folder;
pub mod journal;
pub mod lock;

pub use folder::RunFolder;
