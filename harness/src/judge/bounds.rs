//! Bounds on the time and the memory of a judgement, held by a thread that watches this process.
//!
//! The checker has no clock and knows only its own searches. The watch looks every few milliseconds, and at
//! the bound it rings: a search that hears it ends and says how far it got. What does not listen (reading,
//! sorting) may take a moment longer, and memory may still grow meanwhile; past the bound itself the watch
//! therefore ends the command on the spot, in the words of whoever started it. So a bound is kept whatever
//! the rest does: the machine never swaps for a history.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use checker::verdict::CheckResult;
use checker::{Budget, Interrupt};

use crate::exit::Failure;
use crate::text::{size, span};

/// Between two looks. A process that grows by a few gibibytes a second grows by some mebibytes meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long whoever was rung may take to come to an end by itself.
const GRACE: Duration = Duration::from_secs(1);
/// This part of the memory is left to whoever was rung: enough to say how far it got.
const MARGIN_PART: u64 = 8;
/// What a judgement needs besides what the process holds already.
const LEAST_ROOM: u64 = 16 << 20;
/// Without a bound this part of what the machine has available is taken.
const USUAL_PART: (u64, u64) = (3, 4);
/// Searches remember no more than this, however much there is: what they can't decide with it, more would not
/// help.
const MOST_SEARCHED_BYTES: u64 = 1 << 30;
/// Where the machine does not say what is available.
const USUAL_MEMORY: u64 = 2 << 30;

/// What a judgement may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From the start of the watch to the last word.
    pub time: Option<Duration>,
    /// Resident memory of the whole process.
    pub memory_bytes: u64,
}

impl Bounds {
    /// What the flags say. Without them there is no bound on time, and memory is bounded by what the machine
    /// has.
    pub fn parse(timeout: Option<&str>, memory: Option<&str>) -> Result<Self, Failure> {
        let time = timeout
            .map(|text| span::parse(text).map_err(|why| Failure::usage(format!("--timeout: {why}"))))
            .transpose()?;
        if time.is_some_and(|time| time.is_zero()) {
            return Err(Failure::usage("--timeout 0s: write how long the check may take, such as `60s`"));
        }
        let Some(memory) = memory else { return Ok(Self { time, ..Self::usual() }) };
        let memory_bytes = memory_beside(memory, resident_bytes().unwrap_or_default())?;
        Ok(Self { time, memory_bytes })
    }

    /// No bound on time, and most of the memory that is available.
    pub fn usual() -> Self {
        let (part, of) = USUAL_PART;
        let memory_bytes = available_bytes().map_or(USUAL_MEMORY, |bytes| bytes / of * part);
        Self { time: None, memory_bytes: memory_bytes.saturating_add(resident_bytes().unwrap_or_default()) }
    }
}

/// The bytes that `--memory` says, for a process that holds `resident` bytes already.
fn memory_beside(text: &str, resident: u64) -> Result<u64, Failure> {
    let memory_bytes = size::parse(text).map_err(|why| Failure::usage(format!("--memory: {why}")))?;
    let needed = resident + LEAST_ROOM;
    if margin_below(memory_bytes) < needed {
        let least = needed + needed / (MARGIN_PART - 1) + 1;
        return Err(Failure::usage(format!(
            "--memory {text}: the harness itself takes part of it; write at least {}",
            flag(least)
        )));
    }
    Ok(memory_bytes)
}

/// The threads that are meant.
pub fn threads(asked: Option<usize>) -> Result<NonZeroUsize, Failure> {
    match asked {
        Some(threads) => NonZeroUsize::new(threads)
            .ok_or_else(|| Failure::usage("--threads 0: somebody has to judge; write 1 or more")),
        None => Ok(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
    }
}

/// Runs a check and notes how long it took.
pub fn timed(run: &mut dyn FnMut() -> CheckResult) -> CheckResult {
    let begun = Instant::now();
    let mut result = run();
    result.took_ms = Some(begun.elapsed().as_secs_f64() * 1e3);
    result
}

/// A size as it is typed.
fn flag(bytes: u64) -> String {
    size::show(bytes).replace(' ', "")
}

/// Where it rings.
fn margin_below(memory_bytes: u64) -> u64 {
    memory_bytes - memory_bytes / MARGIN_PART
}

/// Which bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The time.
    Time(Duration),
    /// The memory, in bytes.
    Memory(u64),
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(limit) => write!(f, "the time ran out (--timeout {})", span::show(*limit)),
            Self::Memory(limit) => write!(f, "memory reached its bound (--memory {})", flag(*limit)),
        }
    }
}

/// The thread that watches. Dropped, it ends.
#[derive(Debug)]
pub struct Watch {
    bounds: Bounds,
    interrupt: Interrupt,
    peak: Arc<AtomicU64>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch, from now on. `past` is called when ringing did not help: it is expected to end the
    /// process.
    pub fn start(bounds: Bounds, past: impl FnOnce(Reached) + Send + 'static) -> anyhow::Result<Self> {
        let interrupt = Interrupt::armed();
        let peak = Arc::<AtomicU64>::default();
        let (stop, stopped) = mpsc::channel();
        let watching = Watching { bounds, interrupt: interrupt.clone(), peak: Arc::clone(&peak), stopped };
        let thread = std::thread::Builder::new()
            .name("bounds".to_owned())
            .spawn(move || watching.until_stopped(past))
            .context("starting a thread")?;
        Ok(Self { bounds, interrupt, peak, stop: Some(stop), thread: Some(thread) })
    }

    /// What a search may take. With a bound on time, that rules and not the steps.
    pub fn budget(&self) -> Budget {
        let usual = Budget::default();
        let left = self.bounds.memory_bytes.saturating_sub(resident_bytes().unwrap_or_default());
        Budget {
            steps: if self.bounds.time.is_some() { u64::MAX } else { usual.steps },
            memory_bytes: crate::num::index(left.min(MOST_SEARCHED_BYTES)),
            interrupt: self.interrupt(),
        }
    }

    /// The bell, for whoever searches.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// The bound that was reached, if one was.
    pub fn reached(&self) -> Option<Reached> {
        reached(&self.interrupt, self.bounds)
    }

    /// The most memory that was seen.
    pub fn peak_bytes(&self) -> u64 {
        self.peak.fetch_max(resident_bytes().unwrap_or_default(), Ordering::Relaxed);
        self.peak.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing to say any more.
            let _ = thread.join();
        }
    }
}

fn reached(interrupt: &Interrupt, bounds: Bounds) -> Option<Reached> {
    use checker::budget::Exhausted;
    match interrupt.rung()? {
        Exhausted::ProcessMemory => Some(Reached::Memory(bounds.memory_bytes)),
        _ => Some(Reached::Time(bounds.time.unwrap_or_default())),
    }
}

struct Watching {
    bounds: Bounds,
    interrupt: Interrupt,
    peak: Arc<AtomicU64>,
    stopped: mpsc::Receiver<()>,
}

impl Watching {
    fn until_stopped(self, past: impl FnOnce(Reached)) {
        let begun = Instant::now();
        loop {
            match self.stopped.recv_timeout(LOOK_EVERY) {
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            let resident = resident_bytes().unwrap_or_default();
            self.peak.fetch_max(resident, Ordering::Relaxed);
            let elapsed = begun.elapsed();
            if resident >= margin_below(self.bounds.memory_bytes) {
                self.interrupt.memory_is_full();
            }
            if self.bounds.time.is_some_and(|limit| elapsed >= limit) {
                self.interrupt.time_is_over();
            }
            let too_late = self.bounds.time.is_some_and(|limit| elapsed >= limit + GRACE);
            if resident >= self.bounds.memory_bytes || too_late {
                if let Some(reached) = reached(&self.interrupt, self.bounds) {
                    past(reached);
                }
                return;
            }
        }
    }
}

/// The resident memory of this process.
pub fn resident_bytes() -> Option<u64> {
    kibibytes("/proc/self/status", "VmRSS:")
}

/// The memory that this process may still take: what the machine has available, and not more than its group
/// may.
fn available_bytes() -> Option<u64> {
    let machine = kibibytes("/proc/meminfo", "MemAvailable:")?;
    let number = |path: &str| -> Option<u64> { std::fs::read_to_string(path).ok()?.trim().parse().ok() };
    // `max` is no number, and then there is no bound.
    let left_to_group = number("/sys/fs/cgroup/memory.max")
        .map(|most| most.saturating_sub(number("/sys/fs/cgroup/memory.current").unwrap_or_default()));
    Some(left_to_group.map_or(machine, |group| group.min(machine)))
}

/// A line of a file of the kernel's that counts kibibytes, in bytes.
fn kibibytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for a condition of the watch.
    fn wait_for(condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !condition() {
            assert!(Instant::now() < deadline, "not in time");
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    #[test]
    fn the_bell_rings_at_the_deadline_and_the_word_past_it_is_only_for_who_does_not_listen() {
        let (said, heard) = mpsc::channel();
        let bounds = Bounds { time: Some(Duration::from_millis(30)), memory_bytes: u64::MAX };
        let watch =
            Watch::start(bounds, move |reached| said.send(reached).expect("heard")).expect("a thread");
        wait_for(|| watch.reached().is_some());
        assert_eq!(watch.reached(), Some(Reached::Time(Duration::from_millis(30))));
        assert!(heard.try_recv().is_err(), "whoever was rung has a moment");
        let past = heard.recv_timeout(GRACE * 20).expect("the last word");
        assert_eq!(past.to_string(), "the time ran out (--timeout 30ms)");
        assert!(watch.peak_bytes() > 0);
    }

    #[test]
    fn memory_beyond_the_bound_rings_too() {
        let (said, heard) = mpsc::channel();
        let bounds = Bounds { time: None, memory_bytes: 1 << 20 };
        let watch =
            Watch::start(bounds, move |reached| said.send(reached).expect("heard")).expect("a thread");
        assert_eq!(heard.recv_timeout(GRACE * 20).ok(), Some(Reached::Memory(1 << 20)));
        assert_eq!(watch.reached(), Some(Reached::Memory(1 << 20)));
    }

    #[test]
    fn a_watch_that_is_dropped_in_time_says_nothing() {
        let bounds = Bounds { time: Some(Duration::from_secs(3600)), memory_bytes: u64::MAX };
        drop(Watch::start(bounds, |_| panic!("there was time")).expect("a thread"));
    }

    #[test]
    fn bounds_that_leave_no_room_are_refused_with_what_is_needed() {
        let refusal = |timeout, memory| match Bounds::parse(timeout, memory) {
            Err(Failure::Usage(message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(refusal(None, Some("1MiB")).contains("write at least"));
        assert!(refusal(None, Some("17")).contains("no unit"));
        assert!(refusal(Some("0s"), None).contains("such as `60s`"));
        assert!(refusal(Some("60"), None).contains("write `60s`"));
        let usual = Bounds::usual();
        assert!(usual.memory_bytes > LEAST_ROOM && usual.time.is_none());
    }

    #[test]
    fn the_memory_that_is_advised_is_enough() {
        for resident in (0..3000).map(|step| step * 1_234_567) {
            let Err(Failure::Usage(advice)) = memory_beside("1MiB", resident) else { panic!("no advice") };
            let advised = advice.rsplit(' ').next().expect("a size");
            assert!(memory_beside(advised, resident).is_ok(), "{advised} beside {resident}");
        }
    }
}
