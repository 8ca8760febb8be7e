//! The machine and the process on which a run is made.
//!
//! - [`descriptors`]: how many files may be open.
//! - [`measure`]: how long the disk takes to sync.

pub mod descriptors;
pub mod measure;
