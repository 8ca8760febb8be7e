//! Judges while the run goes on, so that a violation is told seconds after it happened.
//!
//! The history's writer hands every line on, through a channel with a bound, to a thread that judges it.
//! Nobody waits for that thread: when it falls behind, or can't go on, the live check is off, which is said,
//! and the run goes on. The verdict of the run is drawn from the whole history afterwards, by other code;
//! what is seen here only says it sooner, and with `--fail-fast` ends the run.

mod registers;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context;
use checker::history::Event;
use runs::numbers::{count, duration, moment, ns_to_ms};
use runs::results::{LiveCheck, LiveViolation};
use tokio::sync::watch;
use workloads::{Kind, Promise};

use crate::clock::{RunClock, RunNs};
use crate::progress::Progress;

/// Lines that wait to be judged at most: some seconds of a heavy load.
const MOST_WAITING: usize = 1 << 17;
/// The load and the members come first.
const NICE: i32 = 10;

/// Puts what was written of a history on the disk.
pub type Flush<'a> = &'a mut dyn FnMut() -> std::io::Result<()>;

/// Judges lines one by one.
pub trait Judge: Send {
    /// Takes the next line, in the order of the history. `flush` puts all lines so far on the disk, where
    /// they are read again at an alarm.
    ///
    /// # Errors
    /// Why nothing more can be judged.
    fn push(&mut self, event: Event, flush: Flush<'_>) -> Result<Option<Found>, String>;

    /// Operations judged for good, and operations that are kept because they may still matter.
    fn progress(&self) -> (u64, u64);
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Names the operations and says why no order exists.
    pub sentence: String,
    /// When the answer came that cannot be.
    pub happened_ns: u64,
}

impl Found {
    /// As it is kept: seen at this moment, and whether the run ends there.
    pub(crate) fn at(self, seen_ns: RunNs, ended_the_run: bool) -> LiveViolation {
        let Self { sentence, happened_ns } = self;
        LiveViolation { sentence, happened_ns, seen_ns, ended_the_run }
    }
}

/// A violation as it is told at once.
pub(crate) fn words(violation: &LiveViolation) -> String {
    let LiveViolation { sentence, happened_ns, seen_ns, ended_the_run } = violation;
    let late = duration(ns_to_ms(seen_ns.saturating_sub(*happened_ns)));
    let then = if *ended_the_run { "the run ends here (--fail-fast)" } else { "the run goes on" };
    format!(
        "violation at {} s, seen {late} later: {}; {then}",
        moment(*happened_ns),
        sentence.trim_end_matches('.')
    )
}

/// That a check can't go on, and why.
pub(crate) fn words_off(why: &str) -> String {
    format!("the live check is off: {why}; the run is judged from its history afterwards")
}

/// A live check under way.
pub struct Live {
    shared: Arc<Shared>,
    feed: Feed,
    thread: JoinHandle<()>,
}

/// What is known of it.
struct Shared {
    judged: AtomicU64,
    open: AtomicU64,
    stop: AtomicBool,
    off: Mutex<Option<String>>,
    violation: watch::Sender<Option<LiveViolation>>,
    progress: Progress,
    clock: RunClock,
    fail_fast: bool,
}

/// Where the history's writer hands lines on. Without a live check they end here.
#[derive(Clone, Default)]
pub struct Feed(Option<(SyncSender<Event>, Arc<Shared>)>);

impl Live {
    /// Begins, if there is a check for this workload that goes along with a run.
    pub fn start(
        kind: Kind,
        promise: Promise,
        history: &Path,
        fail_fast: bool,
        clock: RunClock,
        progress: &Progress,
    ) -> anyhow::Result<Option<Self>> {
        let Some(judge) = judge_of(kind, promise, history) else { return Ok(None) };
        Self::with(judge, fail_fast, clock, progress).map(Some)
    }

    fn with(
        judge: Box<dyn Judge>,
        fail_fast: bool,
        clock: RunClock,
        progress: &Progress,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            judged: AtomicU64::new(0),
            open: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            off: Mutex::default(),
            violation: watch::Sender::new(None),
            progress: progress.clone(),
            clock,
            fail_fast,
        });
        let (sender, lines) = sync_channel(MOST_WAITING);
        let judging = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("live check".to_owned())
            .spawn(move || judging.judge(judge, &lines))
            .context("starting a thread")?;
        let feed = Feed(Some((sender, Arc::clone(&shared))));
        Ok(Self { shared, feed, thread })
    }

    /// Where lines are handed on.
    pub fn feed(&self) -> Feed {
        self.feed.clone()
    }

    /// How it goes, for the progress: what matters, and the rest.
    pub fn words(&self) -> (String, String) {
        let (judged, open) =
            (self.shared.judged.load(Ordering::Relaxed), self.shared.open.load(Ordering::Relaxed));
        let rest = format!("{} open", count(open));
        let first = if self.shared.off().is_some() {
            return ("live check off".to_owned(), "the run is judged at its end".to_owned());
        } else if self.shared.violation.borrow().is_some() {
            format!("live: a violation in {} judged", count(judged))
        } else {
            format!("live: {} judged", count(judged))
        };
        (first, rest)
    }

    /// Completes when a violation was seen that is to end the run.
    pub async fn ends_the_run(&self) {
        let mut violation = self.shared.violation.subscribe();
        if !self.shared.fail_fast || violation.wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends it, and says what it saw. What still waits is left to the judgement of the whole.
    pub fn finish(self) -> LiveCheck {
        self.shared.stop.store(true, Ordering::Release);
        drop(self.feed);
        if self.thread.join().is_err() {
            self.shared.turn_off("it panicked");
        }
        LiveCheck {
            judged: self.shared.judged.load(Ordering::Relaxed),
            off: self.shared.off(),
            violation: self.shared.violation.borrow().clone(),
        }
    }
}

impl Feed {
    /// Hands a line on. Never waits.
    pub fn pass(&self, event: Event) {
        let Some((sender, shared)) = &self.0 else { return };
        if shared.is_over() {
            return;
        }
        match sender.try_send(event) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                shared
                    .turn_off(&format!("it fell behind by {} lines", count(crate::num::wide(MOST_WAITING))));
            }
            Err(TrySendError::Disconnected(_)) => shared.turn_off("it ended"),
        }
    }
}

impl Shared {
    fn off(&self) -> Option<String> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there is nothing left to judge for: it is off, or has its violation.
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn turn_off(&self, why: &str) {
        let mut off = self.off.lock().unwrap_or_else(PoisonError::into_inner);
        if off.is_none() {
            *off = Some(why.to_owned());
            self.stop.store(true, Ordering::Release);
            self.progress.say(&words_off(why));
        }
    }

    fn judge(&self, mut judge: Box<dyn Judge>, lines: &Receiver<Event>) {
        // It is a favour to the load; without the right to it the check goes on all the same.
        let _ = rustix::process::nice(NICE);
        for event in lines {
            if self.is_over() {
                return;
            }
            // Lines come here when they are on the disk.
            match judge.push(event, &mut || Ok(())) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    self.tell(found);
                    self.note(judge.as_ref());
                    self.stop.store(true, Ordering::Release);
                    return;
                }
                Err(why) => return self.turn_off(&why),
            }
            self.note(judge.as_ref());
        }
    }

    fn note(&self, judge: &dyn Judge) {
        let (judged, open) = judge.progress();
        self.judged.store(judged, Ordering::Relaxed);
        self.open.store(open, Ordering::Relaxed);
    }

    /// Says it at once, and keeps it for the run folder.
    fn tell(&self, found: Found) {
        let violation = found.at(self.clock.now(), self.fail_fast);
        self.progress.say(&words(&violation));
        self.violation.send_replace(Some(violation));
    }
}

/// The check that goes along with a run of this workload; none where there is none.
pub(crate) fn judge_of(kind: Kind, promise: Promise, history: &Path) -> Option<Box<dyn Judge>> {
    let may_be_stale = match promise {
        Promise::LinearizableUpdates | Promise::OrderedSequential => true,
        Promise::Linearizable => false,
        // Orders that keep no real time are judged when all is there.
        _ => return None,
    };
    kind.goes_along()
        .then(|| -> Box<dyn Judge> { Box::new(registers::Registers::new(may_be_stale, history.to_owned())) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::{EventKind, Function, Value};
    use std::time::{Duration, Instant};

    /// Refuses the value that it is told to.
    struct Fake {
        impossible: i64,
        judged: u64,
        gate: Option<Receiver<()>>,
    }

    impl Judge for Fake {
        fn push(&mut self, event: Event, _: Flush<'_>) -> Result<Option<Found>, String> {
            if let Some(gate) = &self.gate {
                let _ = gate.recv();
            }
            self.judged += 1;
            let happened_ns = event.time.unwrap_or_default();
            match event.value {
                Value::One(value) if value == self.impossible => {
                    Ok(Some(Found { sentence: "p0 read 7 that nobody wrote".to_owned(), happened_ns }))
                }
                Value::One(value) if value < 0 => Err("it can't count below zero".to_owned()),
                _ => Ok(None),
            }
        }

        fn progress(&self) -> (u64, u64) {
            (self.judged, 1)
        }
    }

    fn live(fail_fast: bool, gate: Option<Receiver<()>>) -> Live {
        let fake = Fake { impossible: 7, judged: 0, gate };
        Live::with(Box::new(fake), fail_fast, RunClock::start(), &Progress::silent()).expect("started")
    }

    fn event(value: i64) -> Event {
        Event::new(0, EventKind::Ok, Function::READ, 0, Value::One(value), 5)
    }

    fn wait_for(condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !condition() {
            assert!(Instant::now() < deadline, "not in time");
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_violation_is_kept_with_when_it_happened_and_when_it_was_seen() {
        let live = live(true, None);
        let feed = live.feed();
        for value in [1, 2, 7, 3] {
            feed.pass(event(value));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(live.ends_the_run());
        wait_for(|| live.words().0 == "live: a violation in 3 judged");
        drop(feed);
        let seen = live.finish();
        let violation = seen.violation.expect("a violation");
        assert!(violation.ended_the_run && violation.happened_ns == 5 && violation.seen_ns >= 5);
        assert_eq!((seen.judged, seen.off), (3, None));
    }

    #[test]
    fn who_falls_behind_is_switched_off_and_nobody_waits_for_it() {
        let (gate, closed) = sync_channel(0);
        let live = live(false, Some(closed));
        let feed = live.feed();
        for _ in 0..MOST_WAITING + 2 {
            feed.pass(event(1));
        }
        assert_eq!(live.words().0, "live check off");
        drop((gate, feed));
        assert!(live.finish().off.is_some_and(|why| why.contains("fell behind by 131,072 lines")));
    }

    #[test]
    fn who_can_not_go_on_says_why() {
        let live = live(false, None);
        live.feed().pass(event(-1));
        wait_for(|| live.words().0 == "live check off");
        assert_eq!(live.finish().off.as_deref(), Some("it can't count below zero"));
    }

    #[test]
    fn a_run_without_live_check_drops_its_lines() {
        Feed::default().pass(event(1));
    }
}
