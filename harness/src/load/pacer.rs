//! When operations fall due, and how late the harness itself was.
//!
//! The moments are drawn from the seed ([`Arrivals`]). A thread of its own keeps them, because the runtime's
//! timer knows milliseconds only. How late it hands each one over is the harness's lag: a run whose harness
//! was late itself proves little about anybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use harness_core::load::Arrivals;
use hdrhistogram::Histogram;
use rand_chacha::ChaCha8Rng;
use runs::lag::Lag;

use super::queue::Queue;
use crate::clock::{RunClock, RunNs, nanoseconds};

/// Two decimal digits are enough to tell a late harness from one in time.
const LAG_DIGITS: u8 = 2;
/// The thread looks at least this often whether it should end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running pacer.
pub struct Pacer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Lag>,
}

impl Pacer {
    /// Hands operations over from `start` to `end`.
    pub fn start(
        queue: Arc<Queue>,
        clock: RunClock,
        span: (RunNs, RunNs),
        rate: f64,
        rng: ChaCha8Rng,
    ) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("pacer".to_owned())
            .spawn(move || pace(&queue, clock, span, Arrivals::new(rng, rate), &stopped))
            .context("starting a thread")?;
        Ok(Self { stop, thread })
    }

    /// Nothing falls due any more.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends it now if it has not ended yet, and tells how late it was.
    pub fn finish(self) -> anyhow::Result<Lag> {
        self.stop();
        self.thread.join().map_err(|_| anyhow!("the pacer panicked"))
    }
}

fn pace(
    queue: &Queue,
    clock: RunClock,
    span: (RunNs, RunNs),
    mut arrivals: Arrivals,
    stop: &AtomicBool,
) -> Lag {
    let mut lag: Histogram<u64> = match Histogram::new(LAG_DIGITS) {
        Ok(histogram) => histogram,
        Err(_) => return Lag::default(),
    };
    let (mut due, end) = span;
    loop {
        due = due.saturating_add(arrivals.next().map_or(u64::MAX, nanoseconds));
        if due >= end || !sleep_until(clock.instant(due), stop) {
            break;
        }
        queue.push(due);
        lag.saturating_record(clock.now().saturating_sub(due) / 1000);
    }
    let milliseconds = |microseconds: u64| Duration::from_micros(microseconds).as_secs_f64() * 1e3;
    Lag {
        operations: lag.len(),
        p50_ms: milliseconds(lag.value_at_quantile(0.5)),
        p99_ms: milliseconds(lag.value_at_quantile(0.99)),
        max_ms: milliseconds(lag.max()),
    }
}

/// False when it was told to stop first.
fn sleep_until(moment: Instant, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness_core::seed;

    #[test]
    fn it_ends_at_the_end_of_its_span() {
        let queue = Arc::new(crate::load::queue::tests::queue(1));
        let span = (0, 20_000_000);
        let pacer =
            Pacer::start(queue, RunClock::start(), span, 2000.0, seed::stream(1, "load")).expect("started");
        let lag = pacer.thread.join().expect("no panic");
        assert!(lag.operations > 5, "{lag:?}");
    }
}
