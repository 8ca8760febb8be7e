//! The two clocks, read here and nowhere else.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use node_core::io::Now;

/// Counts from the start of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Read anew for every step: a process can be stopped between any two of its instructions, and a step
    /// that was given an older time would trust a lease that ran out meanwhile.
    pub(crate) fn now(&self) -> Now {
        Now { mono: self.start.elapsed(), wall_ms: wall_ms() }
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn wall_ms() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(wall.as_millis()).unwrap_or(i64::MAX)
}
