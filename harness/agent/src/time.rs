//! The monotonic clock, in nanoseconds: the one clock that all agents on a machine share and nobody sets.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;

/// Nanoseconds since the machine booted.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}
