//! Moments of a run: monotonic nanoseconds since its start, on the harness's own clock.

use std::time::Duration;

/// Nanoseconds since the start of the run.
pub type RunNs = u64;

/// Nanoseconds in milliseconds, for people.
pub fn milliseconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e3
}

/// A duration in nanoseconds; one of more than 584 years is cut there.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A duration in whole milliseconds.
pub fn whole_milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
