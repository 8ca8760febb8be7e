//! How late the harness itself was.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::nanoseconds;

/// How late operations were handed to clients, against the moment at which they were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lag {
    /// Operations handed over.
    pub operations: u64,
    /// The median, ms.
    pub p50_ms: f64,
    /// The ninety-ninth percentile, ms.
    pub p99_ms: f64,
    /// The worst, ms.
    pub max_ms: f64,
}

impl Lag {
    /// The worst, in ns.
    pub fn max_ns(&self) -> u64 {
        Duration::try_from_secs_f64(self.max_ms / 1e3).map_or(u64::MAX, nanoseconds)
    }
}
