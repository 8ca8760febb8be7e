//! The guardian of a wrapped command: a process between the harness and the command (`harness become
//! --guard`).
//!
//! The kernel can be asked to kill a process when its parent dies, but not what that process started. So the
//! guardian is a *subreaper*: whatever a process below it leaves behind becomes its own child, in whatever
//! group or session. It holds one end of a socket. When the other end is closed, because the harness said so
//! or because something killed it, the guardian ends every child that it has until there is none.
//!
//! Who kills the guardian too kills the command by the kernel's hand; what the command started carries the
//! run's token, and the next sweep ends it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpid, kill_process, kill_process_group,
    set_child_subreaper, setsid, wait, waitid,
};

use crate::host::procfs;
use crate::store::lock::TOKEN_VARIABLE;

/// Asks the command to end.
pub(super) const ASK: u8 = b'a';
/// Ends it, and all that it started.
pub(super) const KILL: u8 = b'k';
/// How long what was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs a command to its end, or until it is told to end it, and says how it ended: `exit 3` or `signal 9`.
/// Standard input is the socket. Nothing that the command started is left afterwards.
///
/// # Errors
///
/// When it can't be started.
pub fn guard(program: &[OsString], token: &str) -> anyhow::Result<()> {
    setsid().context("beginning a session")?;
    set_child_subreaper(Some(getpid())).context("becoming a subreaper")?;
    let socket = io::stdin().as_fd().try_clone_to_owned().context("taking the socket")?;
    let mut socket = UnixStream::from(socket);
    let child = Command::new(std::env::current_exe().context("finding this executable")?)
        .args(["become", "--session", "--parent", &std::process::id().to_string(), "--"])
        .args(program)
        .env(TOKEN_VARIABLE, token)
        .stdin(Stdio::null())
        .spawn()
        .context("starting the command")?;
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a command's id")?;
    let handle = procfs::handle(child.id())?;
    obey(&mut socket, handle.as_fd(), id);
    if let Some(status) = ended(id) {
        // Nobody may be there to hear it.
        let _ = socket.write_all(words(&status).as_bytes());
    }
    // Until it is waited for, its group is nobody else's.
    let _ = kill_process_group(id, Signal::KILL);
    end_all_children();
    Ok(())
}

/// Passes on what it is told until the command has ended, or is to be ended.
fn obey(socket: &mut UnixStream, command: BorrowedFd<'_>, id: Pid) {
    loop {
        let mut both =
            [PollFd::new(&*socket, PollFlags::IN), PollFd::from_borrowed_fd(command, PollFlags::IN)];
        if poll(&mut both, None).is_err() {
            // A signal interrupted it.
            continue;
        }
        let [told, ended] = both.map(|one| !one.revents().is_empty());
        if ended {
            return;
        }
        let mut word = [0];
        if told && !matches!(socket.read(&mut word), Ok(1) if word == [ASK]) {
            kill(id, Signal::KILL);
            return;
        }
        if told {
            kill(id, Signal::TERM);
        }
    }
}

/// Sends a signal to the command's group, or to itself where it leads none yet.
fn kill(command: Pid, signal: Signal) {
    if kill_process_group(command, signal).is_err() {
        let _ = kill_process(command, signal);
    }
}

/// How a child ended; it is still there to be waited for.
fn ended(child: Pid) -> Option<WaitIdStatus> {
    loop {
        match waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            status => return status.ok().flatten(),
        }
    }
}

fn words(status: &WaitIdStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit {code}\n"),
        (None, signal) => format!("signal {}\n", signal.unwrap_or_default()),
    }
}

/// Kills children until there is none: what a killed one started becomes a child of this process.
fn end_all_children() {
    let deadline = Instant::now() + PATIENCE;
    loop {
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        let children = procfs::children(std::process::id());
        if children.is_empty() || Instant::now() >= deadline {
            return;
        }
        for child in children {
            // Only this process waits for it, so the id is its own.
            if let Some(id) = i32::try_from(child).ok().and_then(Pid::from_raw) {
                let _ = kill_process(id, Signal::KILL);
            }
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
}
