//! Signals to everybody in the namespace, signals to the agent, and the dead that nobody else buries.
//!
//! **Reaping.** As process 1 the agent inherits orphans and must wait for them when they die. `waitpid(-1)`
//! is not for it: it would also take what others wait for. The stops of a process whose clock is being
//! patched are reported to any thread of the agent that waits for anybody, even when asked for exits alone,
//! and so is the end of a process that the agent itself started. Therefore the dead are looked up in `/proc`
//! (state `Z`, parent 1) and each is waited for by its own id; and while the clock's thread is at work nobody
//! is reaped at all (see [`crate::clock`]): a tracee that dies must be found dead by its tracer, not vanish
//! with its id free for another. Members themselves are not the agent's: their parent is outside, it buries
//! them.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::processes::{OwnNamespace, ProcessError};
use crate::protocol::SignalName;

/// Sends a signal to every process of the namespace but the agent, in one call of the kernel: none can be
/// born behind its back. That there is none is no error.
pub(crate) fn signal_all(_within: OwnNamespace, signal: SignalName) -> Result<(), ProcessError> {
    let signal = match signal {
        SignalName::Kill => Signal::SIGKILL,
        SignalName::Term => Signal::SIGTERM,
        SignalName::Stop => Signal::SIGSTOP,
        SignalName::Continue => Signal::SIGCONT,
    };
    match kill(Pid::from_raw(-1), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(Errno::EPERM) => Err(ProcessError::Failed {
            what: "signal the member's processes (does the agent's container have the capability KILL?)",
            error: Errno::EPERM.into(),
        }),
        Err(error) => {
            Err(ProcessError::Failed { what: "signal the member's processes", error: error.into() })
        }
    }
}

/// Waits for the orphans that are dead. What can't be waited for stays; it will be tried again.
pub(crate) fn reap(within: OwnNamespace) {
    let Ok(processes) = within.processes() else { return };
    for process in processes.iter().filter(|process| process.line.state == 'Z' && process.parent == 1) {
        let pid = i32::try_from(process.line.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

/// What came to the agent itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Some child changed.
    Child,
    /// It shall go.
    End,
}

/// Signals to the agent, read like a file. They are blocked for the calling thread and for those that it
/// starts from then on; as process 1 the agent would otherwise not even get them.
#[derive(Debug)]
pub(crate) struct Signals {
    file: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks the signals and opens the file.
    pub(crate) fn open() -> io::Result<Self> {
        let mut wanted = SigSet::empty();
        for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            wanted.add(signal);
        }
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&wanted), Some(&mut before))?;
        let file = SignalFd::with_flags(&wanted, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { file, before })
    }

    /// The next one that has come.
    pub(crate) fn next(&self) -> Option<Arrived> {
        let arrived = self.file.read_signal().ok().flatten()?;
        let child = i32::try_from(arrived.ssi_signo).is_ok_and(|number| number == Signal::SIGCHLD as i32);
        Some(if child { Arrived::Child } else { Arrived::End })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.before), None);
    }
}
