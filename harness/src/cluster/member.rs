//! One member as a child process, or a group of processes that one child leads: its start, its words, its
//! signals, its end.
//!
//! A thread of its own reads what the member prints, so that an event is stamped when it comes and not when
//! the runtime finds time for it; the same thread reaps the process. Signals go through a process file
//! descriptor: an id alone could by then be somebody else's.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use runs::events::Event;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_send_signal, waitid};
use tokio::sync::watch;

use super::ProcessState;
use super::voice::{MAX_LINE_BYTES, Place, Voice};
use crate::host::procfs;
use crate::host::spawner::Spawner;

/// How often the rest of a group is looked at while it ends.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A member's place: it outlives its processes.
pub(super) struct Member {
    place: Place,
    /// Whether whatever the process starts in its group belongs to the member.
    is_a_group: bool,
    process: Mutex<Option<Process>>,
}

struct Process {
    pid: u32,
    pidfd: OwnedFd,
    ended: watch::Receiver<Option<String>>,
}

impl Member {
    /// A member without a process.
    pub(super) fn new(place: Place, is_a_group: bool) -> Self {
        Self { place, is_a_group, process: Mutex::new(None) }
    }

    /// Starts a process for it. The one before must have ended.
    pub(super) fn spawn(&self, spawner: &Spawner, mut command: Command) -> anyhow::Result<()> {
        let id = self.place.id;
        let voice = self.place.voice()?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.place.log()?);
        // Noted first: what the process says must not come before its start.
        self.note(Event::Spawned);
        let mut child = spawner.spawn(command).with_context(|| format!("starting member {}", id.0))?;
        let pid = child.id();
        let pidfd = procfs::handle(pid)?;
        let stdout = child.stdout.take().ok_or_else(|| anyhow!("member {} has no output", id.0))?;
        let (ender, ended) = watch::channel(None);
        let reader = Reader { place: self.place.clone(), voice, is_a_group: self.is_a_group };
        std::thread::Builder::new()
            .name(format!("member-{}", id.0))
            .spawn(move || reader.run(stdout, child, &ender))
            .context("starting a thread")?;
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        *process = Some(Process { pid, pidfd, ended });
        Ok(())
    }

    /// Where its words go.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Notes something about its process at this moment.
    pub(super) fn note(&self, event: Event) {
        self.place.note(event);
    }

    /// Sends a signal; false when there is no process to send it to.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        match process.as_ref() {
            None => false,
            // Its leader is reaped last, so that the group's id is its own for as long as it has not ended.
            Some(process) if self.is_a_group => {
                let group = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
                let group = group.filter(|_| process.ended.borrow().is_none());
                group.is_some_and(|group| kill_process_group(group, signal).is_ok())
            }
            Some(process) => pidfd_send_signal(&process.pidfd, signal).is_ok(),
        }
    }

    /// The id of its process, while that has not ended.
    pub(super) fn pid(&self) -> Option<u32> {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.as_ref().filter(|process| process.ended.borrow().is_none()).map(|process| process.pid)
    }

    /// The state of its process.
    pub(super) fn state(&self) -> ProcessState {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(process) = process.as_ref() else { return ProcessState::Gone("never started".to_owned()) };
        if let Some(how) = process.ended.borrow().as_ref() {
            return ProcessState::Gone(how.clone());
        }
        let all_stopped =
            || !self.is_a_group || procfs::of_group(process.pid).iter().all(|(_, stat)| stat.is_stopped());
        match procfs::stat(process.pid) {
            Some(stat) if stat.is_dead() => ProcessState::Dying,
            Some(stat) if stat.is_stopped() && all_stopped() => ProcessState::Stopped,
            Some(_) => ProcessState::Running,
            // Reaped a moment ago, and the thread that reaped it is about to say how it ended.
            None => ProcessState::Dying,
        }
    }

    /// Waits until its process is reaped.
    pub(super) async fn ended(&self, patience: Duration) -> anyhow::Result<()> {
        let ended = {
            let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
            process.as_ref().map(|process| process.ended.clone())
        };
        let Some(mut ended) = ended else { return Ok(()) };
        match tokio::time::timeout(patience, ended.wait_for(Option::is_some)).await {
            Ok(_) => Ok(()),
            Err(_) => bail!("member {} does not end", self.place.id.0),
        }
    }

    /// The end of its log, for a message.
    pub(super) fn last_words(&self) -> String {
        self.place.last_words()
    }
}

/// Reads a member's words until its process ends.
struct Reader {
    place: Place,
    voice: Voice,
    is_a_group: bool,
}

impl Reader {
    fn run(mut self, stdout: ChildStdout, mut child: Child, ended: &watch::Sender<Option<String>>) {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            match stdout.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => self.voice.take(&line),
            }
        }
        if self.is_a_group {
            self.outlasts_the_group(child.id());
        }
        let how = match child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        self.place.note(Event::Exited(how.clone()));
        ended.send_replace(Some(how));
    }

    /// Waits until nothing of a group is alive any more. Its leader is not reaped meanwhile, so that no other
    /// process can get its id.
    fn outlasts_the_group(&self, leader: u32) {
        if let Some(leader) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
            let _ = waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        }
        while let Some((pid, _)) = procfs::of_group(leader).first().copied() {
            match procfs::handle(pid) {
                // By the time of the handle its id may be another's.
                Ok(process) if procfs::stat(pid).is_some_and(|stat| stat.group == leader) => {
                    procfs::wait_for_the_end(&process, None);
                }
                Ok(_) => {}
                // It has just ended, or there is no descriptor left for it.
                Err(_) => std::thread::park_timeout(LOOK_EVERY),
            }
        }
    }
}

/// How a process ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => "ended".to_owned(),
    }
}
