//! The machine and the process on which a run is made.
//!
//! - [`descriptors`]: how many files may be open.
//! - [`measure`]: how long the disk takes to sync.
//! - [`procfs`]: other processes, told apart by more than their numbers.
//! - [`spawner`]: the thread that starts children, and lives as long as they may.

pub mod descriptors;
pub mod measure;
pub mod procfs;
pub mod spawner;
