//! Shifts the wall clock of another process, and of nobody else.
//!
//! A program asks for the time through the vDSO, a page of code that the kernel maps into every process. Here
//! that code is patched in one process, through ptrace, so that its wall clock is off by as much as is
//! wanted: static, Go, Rust and JVM programs are all reached, the host's clock and every other process are
//! not. The monotonic clock is left alone, because waits with deadlines are the kernel's and do not follow a
//! patch.
//!
//! # How
//!
//! The idea is Chaos Mesh's TimeChaos. Done otherwise: no page is mapped into the target and no call is made
//! in it, the code stands in the padding behind the vDSO's own (`stub`, `vdso`), so that targets whose
//! seccomp filter forbids mmap are reached, and nothing is both writable and executable there. `time()` is
//! patched too. No thread stands inside a function that changes (`trace`, `patch`). The offset can be changed
//! without stopping anybody. A target tells what its clock shows by its own call (`reading`). What a killed
//! program left is recognised.
//!
//! # What a shifted wall clock shows, and what it does not
//!
//! Shifted is whatever asks the vDSO: `clock_gettime` of `CLOCK_REALTIME`, `_COARSE`, `_ALARM` and
//! `CLOCK_TAI`, `gettimeofday`, `time`; so timestamps, leases and timeouts that are reckoned in wall-clock
//! time, certificates' dates, identifiers made of the time. Not shifted, because it is the kernel's:
//!
//! - the same calls made as raw system calls (a program that bypasses its libc);
//! - waits: timers, `timerfd`, `clock_nanosleep` and futexes with an absolute `CLOCK_REALTIME` deadline. A
//!   program that adds a second to its shifted time and waits until then waits a second more or less the
//!   offset, while a machine with a wrong clock would wait one second (`pthread_cond_timedwait` does this by
//!   default);
//! - times of files, of log lines that another process stamps, of sockets' timestamps;
//! - every other process, also those that the target executes. What it forks has the offset too, as its own.
//!
//! So a system that keeps time monotonically passes, and that is what it shows. A monotonic clock that jumps
//! can be had in the simulator only.
//!
//! # What it costs the target
//!
//! A shifted call is a system call: some 100 ns more, for monotonic clocks too. All threads are held for a
//! fraction of a millisecond when the jumps are put in or taken out (longer where processors are scarce: a
//! thread that waits for one can't stop before it gets one), one thread for some microseconds for a reading.
//! A thread that is held in `epoll_wait`, `semop` or a few other calls sees EINTR, as after SIGSTOP and
//! SIGCONT (signal(7)). A seccomp filter that kills for the `clock_gettime` system call kills a target that
//! is shifted. A stack trace that is taken inside a patched function ends there.
//!
//! # What it needs
//!
//! - x86-64 Linux, and the right to ptrace the target: CAP_SYS_PTRACE, or the same user and a permissive
//!   Yama. Nothing else: not even another user's `/proc/<pid>/mem` has to be open. Then a change of the
//!   offset holds one thread for a moment, and a thread deep in the kernel is waited for; CAP_DAC_OVERRIDE
//!   saves both.
//! - [`available`] tells before anything is broken. It needs a hidden subcommand `clock-target` of the
//!   caller. Its child is of the caller's own user: that a target of another user can be reached, only
//!   CAP_SYS_PTRACE says.
//! - Process ids are the caller's: `/proc` has to be mounted for its PID namespace.
//! - A shift is gone when the process is, or executes another program: whoever starts it again applies it
//!   again.
//!
//! # What else waits for children
//!
//! The kernel tells the whole tracing process of a traced thread's stop, so whoever in it waits for any child
//! (`waitpid(-1)`), or for the target if that is a child of its own, may be told instead of the thread that
//! traces. That does no harm here: the state of a thread is asked for directly. But it may do harm there. A
//! reaper must skip "stopped" and process ids that it does not know. `std::process::Child::wait` and
//! `try_wait` take a stop for the end: a thread that blocks in one returns at the first shift. So they must
//! not be called for a target while its clock may be shifted or read; waiting first for a pidfd to become
//! readable, or for the end of the child's output, is safe. The end of a child is left to who waits for it.
//!
//! # What is not guarded against
//!
//! A tracer that is killed (SIGKILL) in the very microseconds of a reading leaves one thread in a loop; in
//! any other moment the kernel lets all go, shifted or not. The child of a `vfork` runs in the target's
//! memory and is not held until it executes its own program. Two tracers on one process at the same time
//! refuse each other.

mod error;

pub use error::{ClockError, Unavailable};

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod fitting;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod memory;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod patch;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod probe;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod reading;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod shifter;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod stub;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod target;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod vdso;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use probe::{available, available_on, available_with};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use shifter::Shifter;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod elsewhere;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub use elsewhere::{Shifter, available, available_on, available_with};

use std::time::Duration;

/// The farthest offset either way, in nanoseconds: 100 years. Sums with it can't overflow.
pub const MAX_OFFSET_NS: i64 = 100 * 365 * 86_400 * 1_000_000_000;

/// What a shift did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// From the first thread being asked to stop to the last being let go; zero when none was.
    pub stopped: Duration,
}

/// A target's wall clock, as the target itself read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How far it is off, in nanoseconds, against the middle of the moment in which it was read.
    pub offset_ns: i64,
    /// The width of that moment, in nanoseconds: the offset is at most half of it off, unless the host's own
    /// clock was set just then.
    pub error_ns: u64,
}
