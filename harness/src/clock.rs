//! The one clock of a run: monotonic nanoseconds since its start.
//!
//! Histories, faults and the members' events are all stamped with it, so that they can be laid on one axis.
//! What a member says about its own time is never used (ZOOKEEPER-3479: elections of 400 ms logged as 1 ms).

use std::time::{Duration, Instant};

/// Nanoseconds since the start of the run.
pub type RunNs = u64;

/// The clock of a run. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    origin: Instant,
}

impl RunClock {
    /// A clock that stands at zero now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Now.
    pub fn now(&self) -> RunNs {
        nanoseconds(self.origin.elapsed())
    }

    /// The moment when the clock stands at `ns`.
    pub fn instant(&self, ns: RunNs) -> Instant {
        self.origin + Duration::from_nanos(ns)
    }
}

/// A duration in nanoseconds; one of more than 584 years is cut there.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds in milliseconds, for people.
pub fn milliseconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e3
}

/// A duration in whole milliseconds.
pub fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
