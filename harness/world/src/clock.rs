//! The clocks that members read.

use std::time::Duration;

use crate::time::Time;

/// Wall time at the beginning of every world, in milliseconds since the Unix epoch.
const WALL_START_MS: i64 = 1_600_000_000_000;

/// The two clocks of a member: each has its own start and its own pace. The wall clock jumps both ways, the
/// monotonic one ahead alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// What the monotonic clock showed when the world began, in microseconds.
    pub mono_offset: u64,
    /// How much faster the monotonic clock runs, in parts per million. It never changes: the clock must not
    /// go back.
    pub pace_ppm: i64,
    /// How far the wall clock is off, in milliseconds.
    pub wall_offset_ms: i64,
    /// How much faster the wall clock runs, in parts per million.
    pub wall_pace_ppm: i64,
}

/// What the two clocks of a member show at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The monotonic clock.
    pub mono: Duration,
    /// The wall clock, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
}

/// Parts of a million.
const MILLION: i64 = 1_000_000;

impl Clock {
    /// What the clocks show at a moment.
    pub fn read(&self, at: Time) -> Reading {
        let elapsed_us = i64::try_from(at.0).expect("a world's age in microseconds fits i64");
        let paced_us = elapsed_us * (MILLION + self.pace_ppm) / MILLION;
        let elapsed_ms = elapsed_us / 1000;
        let drifted_ms = elapsed_ms * self.wall_pace_ppm / MILLION;
        Reading {
            mono: Duration::from_micros(self.mono_offset + paced_us.unsigned_abs()),
            wall_ms: WALL_START_MS + elapsed_ms + drifted_ms + self.wall_offset_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_runs_by_its_own_offset_and_pace() {
        let clock = Clock { mono_offset: 10, pace_ppm: 100, wall_offset_ms: -7, wall_pace_ppm: -3_000 };
        let now = clock.read(Time(1_000_000));
        assert_eq!(now.mono, Duration::from_micros(1_000_110));
        assert_eq!(now.wall_ms, WALL_START_MS + 1000 - 3 - 7);
    }

    #[test]
    fn a_monotonic_clock_that_runs_slow_never_goes_back() {
        let clock = Clock { pace_ppm: -40_000, ..Clock::default() };
        let readings: Vec<_> = (0..5000).map(|us| clock.read(Time(us * 7)).mono).collect();
        assert!(readings.is_sorted());
    }
}
