//! The one clock of a run: monotonic nanoseconds since its start.
//!
//! Histories, faults and the members' events are all stamped with it, so that they can be laid on one axis.
//! What a member says about its own time is never used (ZOOKEEPER-3479: elections of 400 ms logged as 1 ms).

use std::time::{Duration, Instant};

pub use runs::clock::{RunNs, milliseconds, nanoseconds, whole_milliseconds};

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
