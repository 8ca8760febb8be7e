//! Notes when the machine stood still: a thread that only sleeps, and wakes late.
//!
//! A virtual machine that is suspended, a host that swaps, a container that has spent its share of the
//! processor: in all of them time passes in which nobody could do anything. The judges of progress leave such
//! time out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};

use crate::clock::{RunClock, RunNs, nanoseconds};

/// How long it sleeps.
const SLEEP: Duration = Duration::from_millis(20);
/// Waking later than this is standing still.
const LATE: Duration = Duration::from_millis(200);
/// Stalls that are noted at most: a machine with more is hopeless anyway.
const MOST: usize = 10_000;

/// A running watch.
pub(super) struct Stalls {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(RunNs, RunNs)>>,
}

impl Stalls {
    /// Begins to watch.
    pub(super) fn watch(clock: RunClock) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("stalls".to_owned())
            .spawn(move || watch(clock, &stopped))
            .context("starting a thread")?;
        Ok(Self { stop, thread })
    }

    /// Ends it, and gives from when to when the machine stood still.
    pub(super) fn finish(self) -> anyhow::Result<Vec<(RunNs, RunNs)>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| anyhow!("the thread that notes stalls panicked"))
    }
}

fn watch(clock: RunClock, stop: &AtomicBool) -> Vec<(RunNs, RunNs)> {
    let mut stalls = Vec::new();
    let mut before = clock.now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(SLEEP);
        let now = clock.now();
        if now - before > nanoseconds(LATE) && stalls.len() < MOST {
            stalls.push((before, now));
        }
        before = now;
    }
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_goes_on_has_no_stalls_of_seconds() {
        let watch = Stalls::watch(RunClock::start()).expect("a thread");
        let stalls = watch.finish().expect("joined");
        assert!(stalls.iter().all(|(from, to)| from < to));
    }
}
