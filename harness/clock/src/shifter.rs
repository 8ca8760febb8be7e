//! The thread that traces, and the handle to it.
//!
//! A thread is traced by a thread, not by a process, and only that one may ask anything of it. So all ptrace
//! calls are made by one thread; whoever has a [`Shifter`] hands it jobs and waits.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::error::ClockError;
use crate::trace::Stragglers;
use crate::{MAX_OFFSET_NS, Reading, Shift, patch, reading, target};

/// How often stragglers are looked for while there are any.
const STRAGGLERS_EVERY: Duration = Duration::from_micros(500);
/// How long the thread that traces waits for the last stragglers before it ends, in rounds.
const LAST_ROUNDS: u32 = 1_000;

/// What the thread that traces knows.
#[derive(Debug, Default)]
struct Tracer {
    /// The processes that were shifted, and when each started.
    shifted: BTreeMap<u32, u64>,
    stragglers: Stragglers,
}

type Job = Box<dyn FnOnce(&mut Tracer) + Send>;

impl Tracer {
    /// Refuses what can't be; returns when the process started.
    fn check(pid: u32) -> Result<u64, ClockError> {
        if !target::proc_is_ours() {
            let reason = "the /proc that is mounted here belongs to another PID namespace";
            return Err(ClockError::Unsupported { pid, reason });
        }
        if pid == std::process::id() {
            return Err(ClockError::Unsupported { pid, reason: "it is this process itself" });
        }
        target::start_ticks(pid).ok_or(ClockError::Gone { pid })
    }

    fn shift(&mut self, pid: u32, offset_ns: i64) -> Result<Shift, ClockError> {
        if offset_ns.unsigned_abs() > MAX_OFFSET_NS.unsigned_abs() {
            return Err(ClockError::TooFar { offset_ns });
        }
        let start = Self::check(pid)?;
        if offset_ns != 0 {
            // Before it is done: whatever comes of it has to be undone.
            self.shifted.insert(pid, start);
        }
        let stopped = patch::shift(pid, offset_ns, &self.stragglers)?;
        if offset_ns == 0 {
            self.shifted.remove(&pid);
        }
        Ok(Shift { stopped })
    }

    fn read(&self, pid: u32) -> Result<Reading, ClockError> {
        Self::check(pid)?;
        reading::read(pid, &self.stragglers)
    }

    fn restore_all(&mut self) {
        for (pid, start) in std::mem::take(&mut self.shifted) {
            // The number may be another process's by now.
            if target::start_ticks(pid) == Some(start) && patch::shift(pid, 0, &self.stragglers).is_err() {
                self.shifted.insert(pid, start);
            }
        }
    }

    fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let job = if self.stragglers.collect() {
                jobs.recv_timeout(STRAGGLERS_EVERY)
            } else {
                jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match job {
                Ok(job) => job(&mut self),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.restore_all();
        for _ in 0..LAST_ROUNDS {
            if !self.stragglers.collect() {
                break;
            }
            std::thread::sleep(STRAGGLERS_EVERY);
        }
    }
}

/// Shifts the wall clocks of other processes, and remembers which.
///
/// Dropping it restores them, as [`Shifter::restore_all`] does. What a Shifter that was killed left shifted
/// can be restored by any other one: `shift(pid, 0)` recognises it.
///
/// Its methods block for as long as it takes: below a millisecond mostly, some hundred when a target does not
/// let itself be held. Two Shifters must not work on one process at the same time.
#[derive(Debug)]
pub struct Shifter {
    /// None when the thread could not be started, and at the end.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Default for Shifter {
    fn default() -> Self {
        Self::new()
    }
}

impl Shifter {
    /// Starts the thread that traces. Changes nothing.
    #[must_use]
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        let thread =
            Builder::new().name("clock".to_owned()).spawn(move || Tracer::default().run(&receiver)).ok();
        Self { jobs: thread.is_some().then_some(sender), thread }
    }

    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Tracer) -> T + Send + 'static,
    ) -> Result<T, ClockError> {
        let (answer, answered) = channel();
        let job: Job = Box::new(move |tracer| drop(answer.send(job(tracer))));
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or(ClockError::NoThread)?;
        answered.recv().map_err(|_| ClockError::NoThread)
    }

    /// Shifts the wall clock of `pid`, of all its threads, by `offset_ns` against the true one, whatever it
    /// was before; zero puts the original code back.
    ///
    /// A change from one offset to another stops nobody. What is forked from the process later inherits the
    /// offset of that moment as its own; what is executed does not.
    ///
    /// # Errors
    ///
    /// See [`ClockError`]. When it fails, nothing was changed, except that the process may have been killed
    /// while it was held.
    pub fn shift(&mut self, pid: u32, offset_ns: i64) -> Result<Shift, ClockError> {
        self.ask(move |tracer| tracer.shift(pid, offset_ns))?
    }

    /// Lets a thread of `pid` ask its own vDSO for the wall clock, between two readings of ours that are not
    /// shifted.
    ///
    /// # Errors
    ///
    /// See [`ClockError`].
    pub fn read(&mut self, pid: u32) -> Result<Reading, ClockError> {
        self.ask(move |tracer| tracer.read(pid))?
    }

    /// Restores every living process that this Shifter shifted. One that could not be held is kept in mind,
    /// for the next time.
    pub fn restore_all(&mut self) {
        // Without the thread nothing was shifted.
        let _ = self.ask(Tracer::restore_all);
    }
}

impl Drop for Shifter {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported when it happened.
            let _ = thread.join();
        }
    }
}
