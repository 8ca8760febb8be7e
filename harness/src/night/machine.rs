//! The machine as a night finds it, before its first run.

use std::path::Path;
use std::time::{Duration, Instant};

use nights::machine::Machine;
use runs::numbers::lossy;

use crate::host::measure::median_sync;
use crate::run::describe::host;

/// Looks at it.
pub fn look(store: &Path, jobs: u32) -> Machine {
    let host = host();
    let sync = median_sync(store).ok().map(|median| median.as_secs_f64() * 1e3);
    Machine { cores: host.cores, kernel: host.kernel, fsync_ms: sync, load: load(), jobs }
}

/// For how long it is measured what else the machine does. The load average would still tell of a build that
/// ended before the night began.
const SAMPLE_TIME: Duration = Duration::from_secs(1);

/// The share of the processors that is busy while this process does nothing.
fn load() -> Option<f64> {
    let before = ticks()?;
    let until = Instant::now() + SAMPLE_TIME;
    while Instant::now() < until {
        std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
    }
    let after = ticks()?;
    let (idle, all) = (after.0.checked_sub(before.0)?, after.1.checked_sub(before.1)?);
    (all > 0).then(|| 1.0 - lossy(idle) / lossy(all))
}

/// Ticks in which the processors had nothing to do, and all ticks.
fn ticks() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // Guests' time is in users' time already.
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((idle, ticks.iter().sum()))
}
