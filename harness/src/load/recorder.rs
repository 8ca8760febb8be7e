//! The history as it happens: stamped under one lock, written by one thread.
//!
//! A stamp is taken and its line given its place under the same lock, so that the lines are in the order of
//! time. The thread writes several times a second; a harness that is killed loses that much and no more.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use checker::history::{BAD_VERSION, Event, EventKind, Function, HistoryWriter, NOT_SENT};
use harness_core::nemeses::Silence;

use crate::clock::{RunClock, RunNs};
use crate::judge::live::Feed;
use crate::load::life::Life;
use crate::store::folder::HistoryFile;

/// How often lines are written.
const WRITE_EVERY: Duration = Duration::from_millis(50);
/// Lines that wait to be written at most; beyond them the disk has failed us.
const MAX_WAITING: usize = 2_000_000;

/// Where clients write what they saw. Clones write to the same history.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    clock: RunClock,
    lines: Mutex<Lines>,
    stop: AtomicBool,
    overflowed: AtomicBool,
    counts: Counts,
}

#[derive(Default)]
struct Lines {
    /// Not yet written.
    waiting: Vec<Event>,
    /// What succeeded since calm began.
    calm: Calm,
    life: Life,
}

/// What was begun and succeeded since some moment.
#[derive(Debug, Default)]
pub(crate) struct Calm {
    /// Processes whose operation under way was begun since.
    begun: HashSet<u64>,
    succeeded: BTreeMap<Function, u64>,
}

impl Calm {
    /// Takes a line of the history.
    pub(crate) fn note(&mut self, event: &Event) {
        if event.kind == EventKind::Invoke {
            self.begun.insert(event.process);
        } else if self.begun.remove(&event.process) && event.kind == EventKind::Ok {
            *self.succeeded.entry(event.f).or_default() += 1;
        }
    }

    /// Whether at least `minimum` operations of each of `functions` were begun, and succeeded.
    pub(crate) fn shows(&self, functions: &[Function], minimum: u64) -> bool {
        functions.iter().all(|f| self.succeeded.get(f).is_some_and(|&count| count >= minimum))
    }
}

/// Operations so far, for the progress.
#[derive(Debug, Default)]
pub struct Counts {
    /// Succeeded.
    pub ok: AtomicU64,
    /// Compare-and-sets that found another value: definite answers too.
    pub refused: AtomicU64,
    /// Definitely failed.
    pub fail: AtomicU64,
    /// No member was ever sent them.
    pub unsent: AtomicU64,
    /// Of unknown fate.
    pub info: AtomicU64,
}

/// The thread that writes.
pub struct Writer {
    recorder: Recorder,
    thread: JoinHandle<std::io::Result<u64>>,
}

impl Recorder {
    /// Begins a history. Every line is handed to `feed` once it is in the file.
    pub fn create(file: HistoryFile, clock: RunClock, feed: Feed) -> anyhow::Result<(Self, Writer)> {
        let inner = Inner {
            clock,
            lines: Mutex::default(),
            stop: AtomicBool::new(false),
            overflowed: AtomicBool::new(false),
            counts: Counts::default(),
        };
        let recorder = Self { inner: Arc::new(inner) };
        let writing = recorder.clone();
        let thread = std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || writing.write(file, &feed))
            .context("starting a thread")?;
        Ok((recorder.clone(), Writer { recorder, thread }))
    }

    /// Notes an event at this moment.
    pub fn record(&self, make: impl FnOnce(RunNs) -> Event) {
        let mut lines = self.lines();
        let event = make(self.inner.clock.now());
        let count = match event.kind {
            EventKind::Invoke => None,
            EventKind::Ok => Some(&self.inner.counts.ok),
            EventKind::Fail if event.error.as_deref() == Some(BAD_VERSION) => {
                Some(&self.inner.counts.refused)
            }
            EventKind::Fail if event.error.as_deref().is_some_and(|error| error.starts_with(NOT_SENT)) => {
                Some(&self.inner.counts.unsent)
            }
            EventKind::Fail => Some(&self.inner.counts.fail),
            EventKind::Info => Some(&self.inner.counts.info),
        };
        if let Some(count) = count {
            count.fetch_add(1, Ordering::Relaxed);
        }
        lines.calm.note(&event);
        lines.life.note(&event);
        if lines.waiting.len() < MAX_WAITING {
            lines.waiting.push(event);
        } else {
            self.inner.overflowed.store(true, Ordering::Relaxed);
        }
    }

    /// From now on counts anew what is begun and succeeds: a fault has gone.
    pub fn calm_begins(&self) {
        self.lines().calm = Calm::default();
    }

    /// Whether at least `minimum` operations of each of `functions` were begun, and succeeded, since calm
    /// began.
    pub fn succeeded_in_calm(&self, functions: &[Function], minimum: u64) -> bool {
        self.lines().calm.shows(functions, minimum)
    }

    /// What is silent now, if anything is.
    pub fn silence(&self) -> Option<Silence> {
        self.lines().life.silence(self.inner.clock.now())
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.inner.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Operations so far.
    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    fn write(&self, file: HistoryFile, feed: &Feed) -> std::io::Result<u64> {
        let mut history = HistoryWriter::new(file);
        loop {
            // Read before the lines are taken, so that the last ones are never missed.
            let last = self.inner.stop.load(Ordering::Acquire);
            let mut lines = std::mem::take(&mut self.lines().waiting);
            for event in &mut lines {
                history.write(event)?;
            }
            history.flush()?;
            // Whoever judges meanwhile may read the file.
            lines.into_iter().for_each(|event| feed.pass(event));
            if last {
                return Ok(history.finish()?.count);
            }
            std::thread::park_timeout(WRITE_EVERY);
        }
    }
}

impl Writer {
    /// Seals the history. Nothing may be recorded any more.
    pub fn finish(self) -> anyhow::Result<u64> {
        self.recorder.inner.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let written = self.thread.join().map_err(|_| anyhow!("the history's writer panicked"))?;
        let count = written.context("writing the history")?;
        if self.recorder.inner.overflowed.load(Ordering::Relaxed) {
            return Err(anyhow!("the history could not be written as fast as it happened; lower --rate"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RunFolder;
    use checker::history::{Function, Value, load};
    use std::fs::File;

    #[test]
    fn a_sealed_history_is_complete_and_in_the_order_of_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, file) = RunFolder::at(folder.path()).begin_history(true).expect("a file");
        let (recorder, writer) = Recorder::create(file, RunClock::start(), Feed::default()).expect("begun");
        std::thread::scope(|scope| {
            for process in 0..4 {
                let recorder = recorder.clone();
                scope.spawn(move || {
                    for value in 0..100 {
                        let line = |kind| {
                            recorder.record(|now| {
                                let value = Value::One(process * 1000 + value);
                                Event::new(process.unsigned_abs(), kind, Function::WRITE, 0, value, now)
                            });
                        };
                        line(EventKind::Invoke);
                        line(EventKind::Ok);
                    }
                });
            }
        });
        assert_eq!(recorder.counts().ok.load(Ordering::Relaxed), 400);
        assert!(recorder.succeeded_in_calm(&[Function::WRITE], 400));
        assert!(!recorder.succeeded_in_calm(&[Function::WRITE, Function::READ], 1));
        recorder.calm_begins();
        assert!(!recorder.succeeded_in_calm(&[Function::WRITE], 1));
        assert_eq!(writer.finish().expect("sealed"), 800);
        let loaded = load(std::io::BufReader::new(File::open(&path).expect("there"))).expect("sound");
        assert!(loaded.extent.is_whole());
        assert!(loaded.history.ops().windows(2).all(|pair| pair[0].invoke_ns <= pair[1].invoke_ns));
    }
}
