//! One application: its process, what it is told and what it answers, and what it holds by its own word.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, anyhow};
use harness_core::fault::application::{Holder, Thing};
use harness_systems::application::{Answered, Asked, Hello, PROTOCOL};
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use tokio::sync::{mpsc, watch};

use super::network::Link;
use crate::cluster::ProcessState;
use crate::cluster::member::describe;
use crate::cluster::procfs;
use crate::cluster::spawner::Spawner;

/// The lines that an application says, hello aside.
pub type Answers = mpsc::UnboundedReceiver<Answered>;

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
}

/// One application.
pub struct Process {
    number: u64,
    pid: u32,
    pidfd: OwnedFd,
    link: Link,
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
        let log = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = spawner.spawn(command).with_context(|| format!("starting application {number}"))?;
        let (pid, pidfd) = (child.id(), procfs::handle(child.id())?);
        let output = child.stdout.take().ok_or_else(|| anyhow!("application {number} has no output"))?;
        let input = child.stdin.take();
        let (hears, heard) = watch::channel(Heard::Nothing);
        let (answers, receiver) = mpsc::unbounded_channel();
        let ready = Arc::new(AtomicBool::new(false));
        let said = Arc::clone(&ready);
        std::thread::Builder::new()
            .name(format!("application-{number}"))
            .spawn(move || hear(output, child, &answers, &hears, &said))
            .context("starting a thread")?;
        let pen = Mutex::new(Pen { input, held: None });
        Ok((Self { number, pid, pidfd, link, pen, ready, heard }, receiver))
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.pid
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

    /// Asks for something. What it holds is over with the question, if it is to give it up.
    pub fn ask(&self, asked: &Asked, gives_up: bool) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(asked)?;
        line.push(b'\n');
        let mut pen = self.pen();
        if gives_up {
            pen.held = None;
        }
        match &mut pen.input {
            // A line is far shorter than a pipe, and only one is under way.
            Some(input) => input.write_all(&line),
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

    /// Does something while it holds this and is told nothing; none when it does not hold it any more.
    pub fn while_it_holds<T>(&self, holder: &Holder, act: impl FnOnce() -> T) -> Option<T> {
        let pen = self.pen();
        let same = pen.held == Some(Held { thing: holder.thing, key: holder.key, token: holder.token });
        let done = (same && self.how_it_ended().is_none()).then(act);
        drop(pen);
        done
    }

    /// Sends a signal. One that is gone hears none.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// The state of its process.
    pub fn state(&self) -> ProcessState {
        if let Some(how) = self.how_it_ended() {
            return ProcessState::Gone(how);
        }
        match procfs::stat(self.pid) {
            Some(stat) if stat.is_stopped() => ProcessState::Stopped,
            Some(stat) if !stat.is_dead() => ProcessState::Running,
            Some(_) | None => ProcessState::Dying,
        }
    }
}

/// Reads its lines until it ends.
fn hear(
    output: ChildStdout,
    mut child: Child,
    answers: &mpsc::UnboundedSender<Answered>,
    heard: &watch::Sender<Heard>,
    ready: &AtomicBool,
) {
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let hello = lines.next().and_then(|line| serde_json::from_str::<Hello>(&line).ok());
    if hello.is_some_and(|hello| hello.protocol == PROTOCOL) {
        ready.store(true, Ordering::Release);
        heard.send_replace(Heard::Ready);
        for line in lines {
            match serde_json::from_str(&line) {
                Ok(answered) => drop(answers.send(answered)),
                Err(error) => tracing::warn!(%error, line, "an application said what is no answer"),
            }
        }
    }
    let how = match child.wait() {
        Ok(status) => describe(status),
        Err(error) => error.to_string(),
    };
    ready.store(false, Ordering::Release);
    heard.send_replace(Heard::Ended(how));
}
