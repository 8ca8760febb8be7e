//! The member's wall clock, shifted and read by a thread of its own.
//!
//! Patching waits for the processes that it stops; a lease does not wait. So the clock's thread is asked
//! through a bounded queue and answers the harness itself; the main thread never waits for it. It is started
//! at the first request: most runs never touch a clock.
//!
//! **Tracing and reaping.** While this thread is at work it holds [`ClockThread::burials`], and the main
//! thread reaps nobody (it tries again when the work is done, and is nudged for that). So the end of a
//! process that is traced, or that was started for a trial, is seen by who waits for it, and its id is not
//! given away meanwhile. Stops of tracees are never taken by the main thread at all: it waits for the dead
//! only, each by its id (see [`crate::signals`]). That matters because a tracee that is an orphan is a child
//! of process 1 as well.

use std::ffi::OsString;
use std::io::{self, Read};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use harness_clock::{Reading, Shifter};

use crate::output::Output;
use crate::processes::{OwnNamespace, ProcessError, main_process};
use crate::protocol::{ClockReading, Outcome, Shifted};
use crate::threads::Wake;

/// Requests that may wait.
const QUEUE: usize = 16;
/// What the thread needs: it starts processes and calls the patcher.
const STACK: usize = 512 * 1024;

/// What can be done with the wall clocks of other processes. Errors are texts for people.
pub trait Clocks: Send {
    /// Tries on a process that this command starts, which waits until its standard input is closed.
    ///
    /// # Errors
    /// Why clocks can't be shifted here, and what to do.
    fn attempt(&mut self, command: Command) -> Result<(), String>;

    /// Shifts a process's clock, by nanoseconds against the true one; zero restores it. How long it was
    /// stopped.
    ///
    /// # Errors
    /// Why not.
    fn shift(&mut self, pid: u32, offset_ns: i64) -> Result<Duration, String>;

    /// Lets a process read its own clock.
    ///
    /// # Errors
    /// Why not.
    fn read(&mut self, pid: u32) -> Result<ClockReading, String>;

    /// Restores the clock of every process that was shifted.
    fn restore_all(&mut self);
}

/// Makes the clocks when they are first needed.
pub type ClockMaker = Box<dyn FnOnce() -> Box<dyn Clocks> + Send>;

/// The clocks of this machine.
#[derive(Debug, Default)]
pub(crate) struct RealClocks(Shifter);

impl Clocks for RealClocks {
    fn attempt(&mut self, command: Command) -> Result<(), String> {
        harness_clock::available_with(command).map_err(|unavailable| unavailable.to_string())
    }

    fn shift(&mut self, pid: u32, offset_ns: i64) -> Result<Duration, String> {
        self.0.shift(pid, offset_ns).map(|shift| shift.stopped).map_err(|error| with_causes(&error))
    }

    fn read(&mut self, pid: u32) -> Result<ClockReading, String> {
        let Reading { offset_ns, error_ns } = self.0.read(pid).map_err(|error| with_causes(&error))?;
        Ok(ClockReading { offset_ns, error_ns })
    }

    fn restore_all(&mut self) {
        self.0.restore_all();
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Waits until standard input is closed: what the process does that `TryClock` is tried on. The caller's
/// hidden subcommand for it has to do nothing else.
pub fn idle_on_stdio() {
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
}

#[derive(Debug)]
enum Job {
    Shift { id: u64, offset_ns: i64 },
    Read { id: u64 },
    Try { id: u64 },
    Restore,
}

/// Where the main thread hands in what concerns clocks.
pub(crate) struct ClockThread {
    output: Output,
    wake: Wake,
    burials: Arc<Mutex<()>>,
    waiting: Arc<AtomicUsize>,
    state: State,
}

enum State {
    Closed(Option<(ClockMaker, Vec<OsString>)>),
    Open(Sender<Job>),
}

impl ClockThread {
    /// A thread that has nothing to do yet. `idle` are the arguments with which the agent's own executable
    /// waits until its standard input is closed.
    pub(crate) fn new(output: Output, wake: Wake, maker: ClockMaker, idle: Vec<OsString>) -> Self {
        let state = State::Closed(Some((maker, idle)));
        Self { output, wake, burials: Arc::default(), waiting: Arc::default(), state }
    }

    /// Shifts every process's clock, in its turn.
    pub(crate) fn shift(&mut self, id: u64, offset_ns: i64) {
        self.ask(id, Job::Shift { id, offset_ns });
    }

    /// Lets the member's main process read its clock, in its turn.
    pub(crate) fn read(&mut self, id: u64) {
        self.ask(id, Job::Read { id });
    }

    /// Tries whether clocks can be shifted, in its turn.
    pub(crate) fn attempt(&mut self, id: u64) {
        self.ask(id, Job::Try { id });
    }

    /// Restores all clocks behind whatever was asked before.
    pub(crate) fn restore_all(&self) {
        if let State::Open(jobs) = &self.state {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            // A thread that has ended has panicked; its tracees were let go by the kernel.
            let _ = jobs.send(Job::Restore);
        }
    }

    /// Does something that must not happen while clocks are at work: reaping. False when they are.
    pub(crate) fn undisturbed(&self, work: impl FnOnce()) -> bool {
        match self.burials.try_lock() {
            Ok(_held) => work(),
            Err(TryLockError::Poisoned(_)) => work(),
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }

    fn ask(&mut self, id: u64, job: Job) {
        if self.waiting.load(Ordering::SeqCst) >= QUEUE {
            let busy = format!("{QUEUE} clock requests are waiting: ask again when some are answered");
            self.output.answer(id, Outcome::Failed(busy));
            return;
        }
        if let Err(error) = self.open() {
            let failed = format!("failed to start a thread for clocks: {error}");
            self.output.answer(id, Outcome::Failed(failed));
            return;
        }
        if let State::Open(jobs) = &self.state {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            if jobs.send(job).is_err() {
                let ended = "the thread for clocks has ended: start the agent again".to_owned();
                self.output.answer(id, Outcome::Failed(ended));
            }
        }
    }

    fn open(&mut self) -> io::Result<()> {
        let State::Closed(parts) = &mut self.state else { return Ok(()) };
        let Some((maker, idle)) = parts.take() else {
            return Err(io::Error::other("it could not be started before"));
        };
        let (jobs, waiting_jobs) = mpsc::channel();
        let (output, wake) = (self.output.clone(), self.wake.clone());
        let (burials, waiting) = (Arc::clone(&self.burials), Arc::clone(&self.waiting));
        thread::Builder::new().name("clocks".to_owned()).stack_size(STACK).spawn(move || {
            let mut worker = Worker { clocks: maker(), idle, output, touched: false };
            worker.work(&waiting_jobs, &burials, &waiting, &wake);
        })?;
        self.state = State::Open(jobs);
        Ok(())
    }
}

/// Who works there.
struct Worker {
    clocks: Box<dyn Clocks>,
    idle: Vec<OsString>,
    output: Output,
    /// Whether any clock was shifted and not restored.
    touched: bool,
}

impl Worker {
    fn work(&mut self, jobs: &Receiver<Job>, burials: &Mutex<()>, waiting: &AtomicUsize, wake: &Wake) {
        while let Ok(job) = jobs.recv() {
            {
                let _held = burials.lock().unwrap_or_else(PoisonError::into_inner);
                self.serve(&job);
            }
            waiting.fetch_sub(1, Ordering::SeqCst);
            // Somebody may have died meanwhile.
            wake.nudge();
        }
    }

    fn serve(&mut self, job: &Job) {
        match *job {
            Job::Shift { id, offset_ns } => {
                let outcome = self.shift(offset_ns).map_or_else(Outcome::Failed, Outcome::Shifted);
                self.output.answer(id, outcome);
            }
            Job::Read { id } => {
                let outcome = self.read().map_or_else(Outcome::Failed, Outcome::Clock);
                self.output.answer(id, outcome);
            }
            Job::Try { id } => {
                let mut command = Command::new("/proc/self/exe");
                command.args(&self.idle);
                let outcome = self.clocks.attempt(command);
                self.output.answer(id, outcome.map_or_else(Outcome::Failed, |()| Outcome::Done(Vec::new())));
            }
            Job::Restore => self.restore(),
        }
    }

    /// All or none: when one process can't be shifted, all are restored.
    fn shift(&mut self, offset_ns: i64) -> Result<Shifted, String> {
        let within = OwnNamespace::of_this_process().map_err(in_words)?;
        let mut shifted = Shifted::default();
        for process in within.processes().map_err(in_words)?.iter().filter(|process| !process.is_dead()) {
            let pid = process.line.pid;
            match self.clocks.shift(pid, offset_ns) {
                Ok(stopped) => {
                    self.touched |= offset_ns != 0;
                    shifted.processes += 1;
                    let stopped_us = u64::try_from(stopped.as_micros()).unwrap_or(u64::MAX);
                    shifted.stopped_us = shifted.stopped_us.max(stopped_us);
                }
                // A process that has ended has no clock.
                Err(_) if !is_there(within, pid, process.line.start_ticks) => {}
                Err(error) => {
                    self.restore();
                    let name = &process.line.name;
                    let undone = "no clock is shifted now";
                    return Err(format!(
                        "failed to shift the clock of {name} (process {pid}): {error}; {undone}"
                    ));
                }
            }
        }
        self.touched &= offset_ns != 0;
        Ok(shifted)
    }

    fn read(&mut self) -> Result<ClockReading, String> {
        let within = OwnNamespace::of_this_process().map_err(in_words)?;
        let processes = within.processes().map_err(in_words)?;
        let main = main_process(&processes)
            .ok_or("failed to read a clock: no process runs here; start the member first")?;
        self.clocks
            .read(main.line.pid)
            .map_err(|error| format!("failed to read the clock of process {}: {error}", main.line.pid))
    }

    /// Restores what was shifted, and also what inherited a shifted clock when it was forked.
    fn restore(&mut self) {
        self.clocks.restore_all();
        if !std::mem::take(&mut self.touched) {
            return;
        }
        let Ok(within) = OwnNamespace::of_this_process() else { return };
        for process in within.processes().unwrap_or_default() {
            if !process.is_dead() && self.clocks.shift(process.line.pid, 0).is_err() {
                let still_there = is_there(within, process.line.pid, process.line.start_ticks);
                // Whoever is still there may still be shifted: another restoration tries again.
                self.touched |= still_there;
            }
        }
        if self.touched {
            self.output.notice("some clocks could not be restored: restart the member");
        }
    }
}

fn in_words(error: ProcessError) -> String {
    format!("failed to {error}")
}

fn is_there(within: OwnNamespace, pid: u32, start_ticks: u64) -> bool {
    let processes = within.processes().unwrap_or_default();
    let same = |line: &crate::protocol::ProcessLine| line.pid == pid && line.start_ticks == start_ticks;
    processes.iter().any(|process| same(&process.line) && !process.is_dead())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, PipeReader, pipe};
    use std::sync::mpsc::SyncSender;

    use super::*;
    use crate::protocol::Line;

    /// Waits to be let go at each attempt, and then fails with what it was to start.
    struct Fake {
        begun: SyncSender<()>,
        let_go: Receiver<()>,
    }

    impl Clocks for Fake {
        fn attempt(&mut self, command: Command) -> Result<(), String> {
            self.begun.send(()).expect("the test listens");
            self.let_go.recv().expect("the test lets go");
            let arguments: Vec<_> =
                command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
            Err(format!("{} {}", command.get_program().to_string_lossy(), arguments.join(" ")))
        }

        fn shift(&mut self, _pid: u32, _offset_ns: i64) -> Result<Duration, String> {
            Ok(Duration::ZERO)
        }

        fn read(&mut self, _pid: u32) -> Result<ClockReading, String> {
            Ok(ClockReading { offset_ns: 0, error_ns: 0 })
        }

        fn restore_all(&mut self) {}
    }

    struct Bench {
        clocks: ClockThread,
        answers: BufReader<PipeReader>,
        begun: Receiver<()>,
        let_go: SyncSender<()>,
    }

    fn bench() -> Bench {
        let (reader, writer) = pipe().expect("a pipe");
        let (output, _) = Output::start(writer).expect("a thread");
        let (begin, begun) = mpsc::sync_channel(100);
        let (let_go, wait) = mpsc::sync_channel(100);
        let maker: ClockMaker = Box::new(|| Box::new(Fake { begun: begin, let_go: wait }));
        let idle = vec!["wait".into(), "there".into()];
        let clocks = ClockThread::new(output, Wake::new().expect("an eventfd"), maker, idle);
        Bench { clocks, answers: BufReader::new(reader), begun, let_go }
    }

    fn answer(answers: &mut BufReader<PipeReader>) -> (u64, String) {
        let mut line = String::new();
        answers.read_line(&mut line).expect("a line");
        match serde_json::from_str(&line).expect("an answer") {
            Line::Answer { id, outcome: Outcome::Failed(why) } => (id, why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_trial_is_made_with_the_agents_own_executable() {
        let mut bench = bench();
        bench.let_go.send(()).expect("it waits");
        bench.clocks.attempt(4);
        assert_eq!(answer(&mut bench.answers), (4, "/proc/self/exe wait there".to_owned()));
    }

    #[test]
    fn nobody_is_reaped_while_clocks_are_at_work() {
        let mut bench = bench();
        assert!(bench.clocks.undisturbed(|| ()), "before");
        bench.clocks.attempt(1);
        bench.begun.recv().expect("it begins");
        assert!(!bench.clocks.undisturbed(|| panic!("disturbed")), "meanwhile");
        bench.let_go.send(()).expect("it waits");
        answer(&mut bench.answers);
        let mut nudged = [rustix::event::PollFd::new(&bench.clocks.wake, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut nudged, None).expect("a nudge: now is the time");
        assert!(bench.clocks.undisturbed(|| ()), "after");
    }

    #[test]
    fn clocks_that_hang_hold_only_a_few_requests() {
        let mut bench = bench();
        for id in 0..40 {
            bench.clocks.attempt(id);
        }
        for id in 16..40 {
            let (refused, why) = answer(&mut bench.answers);
            assert_eq!(refused, id);
            assert!(why.contains("16 clock requests are waiting"), "{why}");
        }
        for id in 0..16 {
            bench.let_go.send(()).expect("it waits");
            assert_eq!(answer(&mut bench.answers).0, id);
        }
    }

    #[test]
    fn clocks_outside_of_a_namespace_of_its_own_are_not_touched() {
        let mut bench = bench();
        bench.clocks.shift(1, 5);
        assert!(answer(&mut bench.answers).1.contains("not process 1"));
        bench.clocks.read(2);
        assert!(answer(&mut bench.answers).1.contains("not process 1"));
    }
}
