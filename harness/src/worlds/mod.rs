//! Many worlds of the simulator, on all cores.
//!
//! Each seed is one world on one thread, so the number of threads changes nothing but the time it takes: what
//! is counted here adds up in any order. One thread adds, and tells how far it is; the others live through
//! worlds.
//!
//! - `tally`: what came of many worlds, counted. `seeds`: which worlds. `scripts`: a failing world made
//!   small.

pub mod scripts;
pub mod seeds;
pub mod tally;

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use lab_sim::{Options, Outcome, simulate};

use crate::num::wide;
use seeds::Seeds;
use tally::Tally;

/// Worlds that wait to be counted.
const MAX_WAITING: usize = 64;
/// How often somebody looks at the clock.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What the threads are called in which members may panic.
const THREAD: &str = "world";

/// As many threads as there are cores to use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A member's panic is a finding, and reported as one: in the threads of worlds it is not told a second time.
pub fn expect_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(THREAD) {
                usual(panic);
            }
        }));
    });
}

/// Lives through one world, on a thread where its members may panic.
pub fn one(seed: u64, options: Options) -> anyhow::Result<Outcome> {
    in_a_world(move || simulate(seed, options))
}

/// Does something on a thread where members may panic.
pub fn in_a_world<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<T> {
    expect_panics();
    let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(work)?;
    thread.join().map_err(|_| anyhow::anyhow!("the simulator itself panicked"))
}

/// How a sweep is done.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// Which worlds.
    pub seeds: Seeds,
    /// How they are.
    pub options: Options,
    /// Worlds at a time.
    pub jobs: usize,
    /// No world is begun after so long.
    pub limit: Option<Duration>,
}

/// What came of a sweep.
#[derive(Debug, Default)]
pub struct Swept {
    /// What was counted.
    pub tally: Tally,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether somebody interrupted it.
    pub interrupted: bool,
}

impl Sweep {
    /// Lives through the worlds. `tell` is told now and then how far it is; `stop` ends it early.
    pub fn run(self, stop: impl Fn() -> bool, tell: impl Fn(&Swept)) -> anyhow::Result<Swept> {
        expect_panics();
        let begun = Instant::now();
        let next = AtomicU64::new(self.seeds.first());
        let halt = AtomicBool::new(false);
        let mut swept = Swept::default();
        std::thread::scope(|scope| {
            let (sender, outcomes) = sync_channel::<Outcome>(MAX_WAITING);
            for _ in 0..self.jobs.max(1) {
                let sender = sender.clone();
                let (next, halt) = (&next, &halt);
                let worker = move || {
                    while !halt.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        // Whoever counted is gone only when something broke, and then the scope tells it.
                        if !self.seeds.contains(seed) || sender.send(simulate(seed, self.options)).is_err() {
                            return;
                        }
                    }
                };
                std::thread::Builder::new().name(THREAD.to_owned()).spawn_scoped(scope, worker)?;
            }
            drop(sender);
            let mut looked = Duration::ZERO;
            loop {
                let outcome = outcomes.recv_timeout(LOOK_EVERY);
                swept.elapsed = begun.elapsed();
                match outcome {
                    Ok(outcome) => swept.tally.add(outcome),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return anyhow::Ok(()),
                }
                if swept.elapsed.saturating_sub(looked) >= LOOK_EVERY {
                    looked = swept.elapsed;
                    swept.interrupted |= stop();
                    let out_of_time = self.limit.is_some_and(|limit| swept.elapsed >= limit);
                    halt.fetch_or(swept.interrupted || out_of_time, Ordering::Relaxed);
                    tell(&swept);
                }
            }
        })?;
        Ok(swept)
    }
}

/// Does independent pieces of work on so many threads where members may panic. What each gives comes in the
/// order of the pieces; `done` is told of each as it ends, in any order. Pieces that are not begun when
/// `stop` says so are left out.
pub fn side_by_side<T: Sync, R: Send>(
    pieces: &[T],
    jobs: usize,
    stop: impl Fn() -> bool,
    work: impl Fn(&T, &AtomicBool) -> R + Sync,
    done: impl Fn(&R),
) -> anyhow::Result<Vec<Option<R>>> {
    expect_panics();
    let next = AtomicU64::new(0);
    let halt = AtomicBool::new(false);
    let mut results: Vec<Option<R>> = pieces.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        let (sender, ended) = sync_channel(MAX_WAITING);
        for _ in 0..jobs.max(1) {
            let sender = sender.clone();
            let (next, halt, work) = (&next, &halt, &work);
            let worker = move || {
                while !halt.load(Ordering::Relaxed) {
                    let at = crate::num::index(next.fetch_add(1, Ordering::Relaxed));
                    let Some(piece) = pieces.get(at) else { return };
                    if sender.send((at, work(piece, halt))).is_err() {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name(THREAD.to_owned()).spawn_scoped(scope, worker)?;
        }
        drop(sender);
        loop {
            match ended.recv_timeout(LOOK_EVERY) {
                Ok((at, result)) => {
                    done(&result);
                    results[at] = Some(result);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return anyhow::Ok(()),
            }
            halt.fetch_or(stop(), Ordering::Relaxed);
        }
    })?;
    Ok(results)
}

/// Seeds in a minute.
pub fn per_minute(seeds: u64, elapsed: Duration) -> u64 {
    let milliseconds = elapsed.as_millis().max(1);
    u64::try_from(u128::from(seeds) * 60_000 / milliseconds).unwrap_or(u64::MAX)
}

/// The cores that were busy, for a rate of one.
pub fn busy(jobs: usize) -> u64 {
    wide(jobs.clamp(1, cores()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept(jobs: usize) -> Swept {
        let sweep =
            Sweep { seeds: "0..24".parse().expect("seeds"), options: Options::default(), jobs, limit: None };
        sweep.run(|| false, |_| {}).expect("swept")
    }

    #[test]
    fn the_number_of_threads_changes_nothing_that_is_counted() {
        let (one, three) = (swept(1), swept(3));
        assert_eq!(one.tally.seeds, 24);
        assert_eq!(one.tally, three.tally);
    }

    #[test]
    fn work_side_by_side_comes_back_in_its_order_and_stops_when_told() {
        let squares = side_by_side(&[1, 2, 3, 4], 2, || false, |number, _| number * number, |_| {});
        assert_eq!(squares.expect("done"), [Some(1), Some(4), Some(9), Some(16)]);
        let sweep =
            Sweep { seeds: "0..".parse().expect("seeds"), options: Options::default(), jobs: 1, limit: None };
        assert!(sweep.run(|| true, |_| {}).expect("swept").interrupted);
    }
}
