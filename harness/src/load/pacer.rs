//! When operations fall due, and how late the harness itself was.
//!
//! The moments are a Poisson process drawn from the seed: the rate holds on average, and operations overlap
//! as those of independent clients do, where an even beat at 2 ms each would make them almost sequential.
//! A thread of its own keeps them, because the runtime's timer knows milliseconds only. How late it hands
//! each one over is the harness's lag: a run whose harness was late itself proves little about anybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use hdrhistogram::Histogram;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use runs::lag::Lag;

use super::queue::Queue;
use crate::clock::{RunClock, RunNs, nanoseconds};

/// Two decimal digits are enough to tell a late harness from one in time.
const LAG_DIGITS: u8 = 2;
/// The thread looks at least this often whether it should end.
const LOOK: Duration = Duration::from_millis(20);

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
            .spawn(move || pace(&queue, clock, span, Arrivals { rng, rate }, &stopped))
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

/// Gaps between operations.
pub(crate) struct Arrivals {
    rng: ChaCha8Rng,
    rate: f64,
}

impl Arrivals {
    /// Gaps whose mean is one in `rate` seconds.
    pub(crate) fn new(rng: ChaCha8Rng, rate: f64) -> Self {
        Self { rng, rate }
    }

    fn gap(&mut self) -> Duration {
        // In (0, 1], so that the logarithm is finite.
        let uniform: f64 = 1.0 - self.rng.random::<f64>();
        Duration::from_secs_f64(-uniform.ln() / self.rate)
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.gap())
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
        due += nanoseconds(arrivals.gap());
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
        std::thread::sleep(left.min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;

    #[test]
    fn gaps_have_the_rate_on_average_and_repeat_from_the_seed() {
        let mut arrivals = Arrivals { rng: seed::stream(1, "load"), rate: 1000.0 };
        let total: Duration = (0..10_000).map(|_| arrivals.gap()).sum();
        assert!((9.5..10.5).contains(&total.as_secs_f64()), "{total:?}");
        let gap = || Arrivals { rng: seed::stream(1, "load"), rate: 1000.0 }.gap();
        assert_eq!(gap(), gap());
    }

    #[test]
    fn it_ends_at_the_end_of_its_span() {
        let queue = Arc::new(Queue::new(Duration::from_secs(1)));
        let span = (0, 20_000_000);
        let pacer =
            Pacer::start(queue, RunClock::start(), span, 2000.0, seed::stream(1, "load")).expect("started");
        let lag = pacer.thread.join().expect("no panic");
        assert!(lag.operations > 5, "{lag:?}");
    }
}
