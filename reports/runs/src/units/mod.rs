//! Units: moments of a run, and durations, sizes and numbers as people type and read them.

pub mod clock;
pub mod numbers;
pub mod size;
pub mod span;
