//! One application: its process, what it is told and what it answers, and what it holds by its own word.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, anyhow};
use harness_core::fault::application::{Holder, Thing};
use harness_systems::application::{Hello, PROTOCOL};
use harness_systems::external::lines::MAX_LINE_BYTES;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::{mpsc, watch};

use super::network::Link;
use crate::cluster::ProcessState;
use crate::cluster::member::describe;
use crate::host::procfs;
use crate::host::spawner::Spawner;

/// Lines that wait to be taken. Whoever says more waits.
const MOST_WAITING: usize = 16;

/// The lines that an application says, hello aside, without their ends. One that is too long is cut, and is
/// no answer then.
pub type Answers = mpsc::Receiver<Vec<u8>>;

/// What it holds, as it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What.
    pub thing: Thing,
    /// Of which lock or queue.
    pub key: u64,
    /// By which token.
    pub token: u64,
}

/// What is said to it, and what it holds. Both under one lock, so that whoever harms a holder knows that it
/// was not told to give up a moment before.
struct Pen {
    input: Option<ChildStdin>,
    held: Option<Held>,
    trial: Trial,
}

/// Whether a fault tries what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trial {
    /// None does, or it has acted since.
    #[default]
    Over,
    /// One is in force.
    Harmed,
    /// It is healed, and was not asked to write since.
    Healed,
}

/// One application: a process, and whatever that starts in its group.
pub struct Process {
    number: u64,
    pid: u32,
    /// Whether it was waited for. Until then no other group has its number.
    reaped: Arc<Mutex<bool>>,
    link: Link,
    log: PathBuf,
    pen: Mutex<Pen>,
    ready: Arc<AtomicBool>,
    heard: watch::Receiver<Heard>,
}

/// What was heard of it, beside its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// It is ready.
    Ready,
    /// It ended, and how.
    Ended(String),
}

impl Process {
    /// Starts one.
    pub(super) fn spawn(
        number: u64,
        spawner: &Spawner,
        mut command: Command,
        log: &Path,
        link: Link,
    ) -> anyhow::Result<(Self, Answers)> {
        let words = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(words);
        let mut child = spawner.spawn(command).with_context(|| format!("starting application {number}"))?;
        let pid = child.id();
        let output = child.stdout.take().ok_or_else(|| anyhow!("application {number} has no output"))?;
        let input = child.stdin.take();
        let (hears, heard) = watch::channel(Heard::Nothing);
        let (answers, receiver) = mpsc::channel(MOST_WAITING);
        let (ready, reaped): (Arc<AtomicBool>, Arc<Mutex<bool>>) = Default::default();
        let told = Tells { answers, heard: hears, ready: Arc::clone(&ready), reaped: Arc::clone(&reaped) };
        std::thread::Builder::new()
            .name(format!("application-{number}"))
            .spawn(move || told.until_its_end(output, child))
            .context("starting a thread")?;
        let pen = Mutex::new(Pen { input, held: None, trial: Trial::Over });
        let log = log.to_owned();
        Ok((Self { number, pid, reaped, link, log, pen, ready, heard }, receiver))
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where its words are kept.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its links to the members.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// What is heard of it.
    pub fn heard(&self) -> watch::Receiver<Heard> {
        self.heard.clone()
    }

    /// Whether it said hello, and has not ended.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// How it ended, if it did.
    pub fn how_it_ended(&self) -> Option<String> {
        match &*self.heard.borrow() {
            Heard::Ended(how) => Some(how.clone()),
            Heard::Nothing | Heard::Ready => None,
        }
    }

    fn pen(&self) -> MutexGuard<'_, Pen> {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something, by a line with its end. What it holds is over with the question, if it is to give
    /// it up.
    pub fn ask(&self, line: &[u8], gives_up: bool) -> std::io::Result<()> {
        let mut pen = self.pen();
        if gives_up {
            pen.held = None;
        }
        match &mut pen.input {
            // A line is far shorter than a pipe, and only one is under way.
            Some(input) => input.write_all(line),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// It will be asked nothing more: it gives up what it holds, and ends.
    pub fn dismiss(&self) {
        let mut pen = self.pen();
        (pen.input, pen.held) = (None, None);
    }

    /// It said what it holds, or that it holds nothing.
    pub fn holds(&self, held: Option<Held>) {
        self.pen().held = held;
    }

    /// What it holds, by what it said last.
    pub fn held(&self) -> Option<Holder> {
        let Held { thing, key, token } = self.pen().held?;
        Some(Holder { application: self.number, thing, key, token })
    }

    /// Harms it while it holds this and is told nothing; none when it does not hold it any more.
    pub fn harm<T>(&self, holder: &Holder, act: impl FnOnce() -> T) -> Option<T> {
        let mut pen = self.pen();
        let same = pen.held == Some(Held { thing: holder.thing, key: holder.key, token: holder.token });
        let done = (same && self.how_it_ended().is_none()).then(act);
        if done.is_some() {
            pen.trial = Trial::Harmed;
        }
        done
    }

    /// What harmed it is taken back.
    pub fn is_healed(&self) {
        let mut pen = self.pen();
        if pen.trial == Trial::Harmed {
            pen.trial = Trial::Healed;
        }
    }

    /// It is asked to write.
    pub fn writes(&self) {
        let mut pen = self.pen();
        if pen.trial == Trial::Healed {
            pen.trial = Trial::Over;
        }
    }

    /// Whether it must write once more before it gives up what it holds: what a holder does behind a fault is
    /// what the fault is for.
    pub fn is_on_trial(&self) -> bool {
        self.pen().trial != Trial::Over
    }

    /// Sends a signal to all that it is. One that is gone hears none.
    pub fn signal(&self, signal: Signal) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*reaped {
            signal_group(self.pid, signal);
        }
    }

    /// The state of its process; stopped where all that it started is stopped too.
    pub fn state(&self) -> ProcessState {
        if let Some(how) = self.how_it_ended() {
            return ProcessState::Gone(how);
        }
        match procfs::stat(self.pid) {
            Some(stat) if stat.is_dead() => ProcessState::Dying,
            Some(_) if self.processes().all(|stat| stat.is_stopped()) => ProcessState::Stopped,
            Some(_) => ProcessState::Running,
            None => ProcessState::Dying,
        }
    }

    /// Those of its group that live.
    fn processes(&self) -> impl Iterator<Item = procfs::Stat> {
        procfs::of_group(self.pid).into_iter().map(|(_, stat)| stat)
    }

    /// Whether it is one process, and started no other one that lives.
    pub fn is_alone(&self) -> bool {
        self.processes().count() <= 1
    }
}

fn signal_group(leader: u32, signal: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // One that has ended hears nothing.
        let _ = kill_process_group(group, signal);
    }
}

/// Tells what an application says.
struct Tells {
    answers: mpsc::Sender<Vec<u8>>,
    heard: watch::Sender<Heard>,
    ready: Arc<AtomicBool>,
    reaped: Arc<Mutex<bool>>,
}

impl Tells {
    /// Reads its lines until it ends. What it started ends with it.
    fn until_its_end(self, output: ChildStdout, mut child: Child) {
        let mut output = BufReader::new(output);
        let hello = line_of(&mut output).and_then(|line| serde_json::from_slice::<Hello>(&line).ok());
        if hello.is_some_and(|hello| hello.protocol == PROTOCOL) {
            self.ready.store(true, Ordering::Release);
            self.heard.send_replace(Heard::Ready);
            while let Some(line) = line_of(&mut output) {
                // Nobody asks any more where nobody takes it.
                let _ = self.answers.blocking_send(line);
            }
        }
        if let Some(leader) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        }
        let mut reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        signal_group(child.id(), Signal::KILL);
        let how = match child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        *reaped = true;
        drop(reaped);
        self.ready.store(false, Ordering::Release);
        self.heard.send_replace(Heard::Ended(how));
    }
}

/// The next line, without its end; none when there is no more.
fn line_of(output: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let most = u64::try_from(MAX_LINE_BYTES + 1).unwrap_or(u64::MAX);
    output.take(most).read_until(b'\n', &mut line).ok().filter(|read| *read > 0)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Some(line)
}
