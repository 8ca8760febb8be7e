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
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use runs::events::Event;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

use super::ProcessState;
use super::procfs;
use super::spawner::Spawner;
use super::voice::{MAX_LINE_BYTES, Place, Voice};

/// How often the rest of a group is looked at while it ends.
const GLANCE: Duration = Duration::from_millis(2);

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
        let pidfd = open_pidfd(pid)?;
        let stdout = child.stdout.take().ok_or_else(|| anyhow!("member {} has no output", id.0))?;
        let (ender, ended) = watch::channel(None);
        let reader = Reader { place: self.place.clone(), voice };
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
        let Some(process) = process.as_ref() else { return false };
        let sent = pidfd_send_signal(&process.pidfd, signal).is_ok();
        self.others(process.pid).fold(sent, |sent, pid| signal_one(pid, process.pid, signal) || sent)
    }

    /// What else is alive of its group, whose leader may be gone.
    fn others(&self, leader: u32) -> impl Iterator<Item = u32> {
        let all = if self.is_a_group { procfs::of_group(leader) } else { Vec::new() };
        all.into_iter().map(|(pid, _)| pid).filter(move |pid| *pid != leader)
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
        let others = if self.is_a_group { procfs::of_group(process.pid) } else { Vec::new() };
        let others = || others.iter().filter(|(pid, _)| *pid != process.pid).map(|(_, stat)| stat);
        if let Some(how) = process.ended.borrow().as_ref() {
            let is_whole = others().next().is_none();
            return if is_whole { ProcessState::Gone(how.clone()) } else { ProcessState::Dying };
        }
        match procfs::stat(process.pid) {
            Some(stat) if stat.is_dead() => ProcessState::Dying,
            Some(stat) if stat.is_stopped() && others().all(|other| other.is_stopped()) => {
                ProcessState::Stopped
            }
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
        let deadline = Instant::now() + patience;
        let all = async {
            let _ = ended.wait_for(Option::is_some).await;
            while matches!(self.state(), ProcessState::Dying) && Instant::now() < deadline {
                tokio::time::sleep(GLANCE).await;
            }
            matches!(self.state(), ProcessState::Gone(_))
        };
        match tokio::time::timeout_at(deadline.into(), all).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => bail!("member {} does not end", self.place.id.0),
        }
    }

    /// The end of its log, for a message.
    pub(super) fn last_words(&self) -> String {
        self.place.last_words()
    }
}

/// Sends a signal to a process, if it is still of this group: its id may be somebody else's by now.
fn signal_one(pid: u32, group: u32, signal: Signal) -> bool {
    let Ok(pidfd) = open_pidfd(pid) else { return false };
    procfs::stat(pid).is_some_and(|stat| stat.group == group) && pidfd_send_signal(pidfd, signal).is_ok()
}

/// A handle on a process that no other process can have.
pub(crate) fn open_pidfd(pid: u32) -> anyhow::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| anyhow!("process id {pid}"))?;
    pidfd_open(pid, PidfdFlags::empty()).context("opening a process file descriptor")
}

/// Reads a member's words until its process ends.
struct Reader {
    place: Place,
    voice: Voice,
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
        let how = match child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        self.place.note(Event::Exited(how.clone()));
        ended.send_replace(Some(how));
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
