//! The seed of a run for which nobody typed one.

/// A new one: short enough to be typed again.
pub fn fresh() -> u64 {
    u64::from(rand::random::<u32>())
}
