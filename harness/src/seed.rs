//! Seeds of runs.

pub use harness_core::seed::stream;

/// A seed for a run that was given none: short enough to be typed again.
pub fn fresh() -> u64 {
    u64::from(rand::random::<u32>())
}
