//! Holding the threads of a process, and letting them go as if nothing had been.
//!
//! Threads are seized and interrupted (`PTRACE_SEIZE`, `PTRACE_INTERRUPT`), which sends no signal and leaves
//! a stopped process stopped. A thread that is held stands in the kernel on its way out: an interrupted
//! system call is restarted, or returns EINTR, by the rules of SIGSTOP and SIGCONT, when the thread goes on
//! with the registers that it had. A thread that was just about to get a signal is held before that, and gets
//! it when it is let go. No step is made by a trap: a forced SIGTRAP would undo the target's own handling of
//! that signal.
//!
//! A thread deep in the kernel (an fsync, say) does not stop before it comes out, and can't run a single
//! instruction of its own then: where it will come out is known, so it need not be waited for. It is a
//! straggler ([`Stragglers`]) that is let go when it does stop.
//!
//! Stops are polled for, with deadlines, by asking for the state of the thread: whoever else waits for any
//! child in this process may have taken the notice away.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;
use rustix::process::{Pid as RawPid, WaitId, WaitIdOptions, waitid};

use crate::error::ClockError;
use crate::memory::Memory;
use crate::target;

/// Registers of a thread.
pub(crate) type Registers = libc::user_regs_struct;

/// How long is waited for a thread to stop, before the attempt is given up.
const PATIENCE: Duration = Duration::from_millis(500);
/// After this it is asked where a thread that does not stop is blocked.
const PARKED_AFTER: Duration = Duration::from_micros(300);
/// Rounds of letting threads run a little, to get them out of a function.
const NUDGES: u32 = 400;
/// Rounds of looking for new threads.
const ROUNDS: u32 = 100;
/// How much of a stack is searched for frames of signals, in bytes. Such a frame is at most about 11 KiB.
const STACK: usize = 32 * 1024;

/// How a thread is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Because it was asked to, or because its process is stopped.
    Asked,
    /// Before this signal is delivered. The number, because nobody names the real-time ones.
    Signal(i32),
}

/// What a thread does.
enum State {
    Running,
    Stopped(Stop),
    Gone,
}

/// Looks at a seized thread of `pid`, without waiting.
fn look(pid: u32, tid: i32) -> State {
    let Some(raw) = RawPid::from_raw(tid) else { return State::Gone };
    let wait = |options: WaitIdOptions| {
        let options =
            options | WaitIdOptions::NOHANG | WaitIdOptions::from_bits_retain(libc::__WALL.cast_unsigned());
        waitid(WaitId::Pid(raw), options)
    };
    // It has a siginfo only while it is stopped, whoever was told of the stop.
    if let Ok(info) = ptrace::getsiginfo(Pid::from_raw(tid)) {
        // The notice is taken at once: another wait in this process would take it for the end of a child.
        let _ = wait(WaitIdOptions::STOPPED);
        // An event is told by the code, above the signal; a code that comes with a signal is below or
        // negative.
        let asked = info.si_code >> 8 == libc::PTRACE_EVENT_STOP;
        return State::Stopped(if asked { Stop::Asked } else { Stop::Signal(info.si_signo) });
    }
    match wait(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
        Ok(Some(status)) if status.exited() || status.killed() || status.dumped() => {
            // Its parent learns of the end only after its tracer, except for a child of our own: there one
            // notice is for both, and it is not ours.
            if pid.cast_signed() != tid || target::parent(pid) != Some(std::process::id()) {
                let _ = wait(WaitIdOptions::EXITED);
            }
            State::Gone
        }
        Ok(_) => State::Running,
        Err(_) => State::Gone,
    }
}

/// What a thread that was held does next.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// It runs on, and is still ours.
    Continue,
    /// It is ours no more.
    Detach,
}

/// Lets a stopped thread go on, with the signal that it was about to get.
// The only call past nix: its own take a `Signal`, which can't name a real-time signal, and one that was
// taken from a thread must be given back. No pointer goes in or out, so there is nothing that could be
// unsound.
#[allow(unsafe_code)]
fn restart(next: Next, tid: i32, stop: Stop) -> Result<(), Errno> {
    let signal = match stop {
        Stop::Asked => 0,
        Stop::Signal(signal) => libc::c_long::from(signal),
    };
    let address: libc::c_long = 0;
    Errno::result(match next {
        Next::Continue => unsafe { libc::ptrace(libc::PTRACE_CONT, tid, address, signal) },
        Next::Detach => unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, address, signal) },
    })
    .map(drop)
}

/// Threads that were seized, do not stop now, and have to be let go when they do; or that ended while they
/// were held, and of whose end somebody has to take notice before their parent can.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stragglers(Rc<RefCell<Vec<Straggler>>>);

/// One of them.
#[derive(Clone, Debug)]
struct Straggler {
    pid: u32,
    tid: i32,
    /// Its own registers, if it was given others.
    own: Option<Registers>,
}

impl Stragglers {
    /// Lets go those that have stopped by now. Returns whether there are others left.
    pub(crate) fn collect(&self) -> bool {
        self.0.borrow_mut().retain(|Straggler { pid, tid, own }| match look(*pid, *tid) {
            State::Running => true,
            State::Gone => false,
            State::Stopped(stop) => !let_go(*tid, stop, *own),
        });
        !self.0.borrow().is_empty()
    }

    /// Takes one back, to hold it again. One that still has to get its registers back is not to be had.
    fn take(&self, tid: i32) -> bool {
        let mut threads = self.0.borrow_mut();
        let before = threads.len();
        threads.retain(|other| other.tid != tid || other.own.is_some());
        threads.len() < before
    }
}

/// Lets a stopped thread go, with its own registers. False when it was killed meanwhile.
fn let_go(tid: i32, stop: Stop, own: Option<Registers>) -> bool {
    own.is_none_or(|own| ptrace::setregs(Pid::from_raw(tid), own).is_ok())
        && restart(Next::Detach, tid, stop).is_ok()
}

/// Waits between two looks: shortly at first, so that a stop costs microseconds. Then it sleeps: the thread
/// that is waited for may need this very processor, and giving way to it (`sched_yield`) is not enough.
struct Backoff {
    begun: Instant,
}

impl Backoff {
    fn new() -> Self {
        Self { begun: Instant::now() }
    }

    fn pause(&self) {
        if self.begun.elapsed() < Duration::from_micros(60) {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn waited(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Lets some microseconds go by, a different number each time, without sleeping.
fn linger(round: u32) {
    let until = Instant::now() + Duration::from_nanos(u64::from(round.wrapping_mul(2_654_435_761) % 16_384));
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    if round % 4 == 3 {
        // On a busy machine the thread may not have had a processor yet.
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Threads of one process that are held. They are let go when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    pid: u32,
    /// How each is held; none for one that has not stopped yet.
    threads: BTreeMap<i32, Option<Stop>>,
    /// The own registers of those that were given others.
    own: BTreeMap<i32, Registers>,
    /// When the first was asked to stop.
    since: Instant,
    /// Where those go that can't be let go at once.
    stragglers: Stragglers,
}

impl Held {
    fn none(pid: u32, stragglers: &Stragglers) -> Self {
        Self {
            pid,
            threads: BTreeMap::new(),
            own: BTreeMap::new(),
            since: Instant::now(),
            stragglers: stragglers.clone(),
        }
    }

    /// Asks one more thread to stop. False when there is no such thread (any more).
    fn ask(&mut self, tid: i32) -> Result<bool, ClockError> {
        if self.stragglers.take(tid) {
            // Seized and asked already.
            self.threads.insert(tid, None);
            return Ok(true);
        }
        let thread = Pid::from_raw(tid);
        match ptrace::seize(thread, ptrace::Options::empty()) {
            Ok(()) => {}
            Err(Errno::ESRCH) => return Ok(false),
            // A thread that has ended, but whom nobody has waited for, may not be traced either.
            Err(_) if matches!(target::thread_state(self.pid, tid), None | Some('Z' | 'X' | 'x')) => {
                return Ok(false);
            }
            Err(Errno::EPERM | Errno::EACCES) => {
                return Err(ClockError::Denied { pid: self.pid, advice: target::advice(self.pid) });
            }
            Err(error) => {
                return Err(ClockError::Io { pid: self.pid, action: "seize a thread", source: error.into() });
            }
        }
        self.threads.insert(tid, None);
        // Fails only for a thread that has ended since.
        let _ = ptrace::interrupt(thread);
        Ok(true)
    }

    /// Waits until every thread that was asked has stopped, has ended, or is blocked and will come out where
    /// `harmless` says that it may. `false` when some thread does none of that.
    fn wait(&mut self, harmless: &dyn Fn(u64) -> bool) -> bool {
        let backoff = Backoff::new();
        loop {
            let waiting: Vec<i32> =
                self.threads.iter().filter(|(_, stop)| stop.is_none()).map(|(tid, _)| *tid).collect();
            let mut running = false;
            for tid in waiting {
                match look(self.pid, tid) {
                    State::Stopped(stop) => drop(self.threads.insert(tid, Some(stop))),
                    State::Gone => drop(self.threads.remove(&tid)),
                    State::Running => {
                        running |= backoff.waited() < PARKED_AFTER
                            || !target::blocked_at(self.pid, tid).is_some_and(harmless);
                    }
                }
            }
            if !running {
                return true;
            }
            if backoff.waited() > PATIENCE {
                return false;
            }
            backoff.pause();
        }
    }

    /// Holds all threads of a process, those too that are born meanwhile.
    pub(crate) fn all_threads(
        pid: u32,
        harmless: &dyn Fn(u64) -> bool,
        stragglers: &Stragglers,
    ) -> Result<Self, ClockError> {
        let mut held = Self::none(pid, stragglers);
        for _ in 0..ROUNDS {
            let mut news = false;
            for tid in target::threads(pid).map_err(|_| ClockError::Gone { pid })? {
                if !held.threads.contains_key(&tid) {
                    news |= held.ask(tid)?;
                }
            }
            if !news {
                return if held.threads.is_empty() { Err(ClockError::Gone { pid }) } else { Ok(held) };
            }
            if !held.wait(harmless) {
                return Err(ClockError::Busy { pid, state: "a thread does not stop" });
            }
        }
        Err(ClockError::Busy { pid, state: "threads are born faster than they can be stopped" })
    }

    /// Holds one thread; none when it has ended or does not stop within `patience`.
    pub(crate) fn one_thread(
        pid: u32,
        tid: i32,
        patience: Duration,
        stragglers: &Stragglers,
    ) -> Result<Option<Self>, ClockError> {
        let mut held = Self::none(pid, stragglers);
        if !held.ask(tid)? {
            return Ok(None);
        }
        Ok(held.stopped_within(tid, patience).map(|_| held))
    }

    /// Waits for one thread to stop.
    fn stopped_within(&mut self, tid: i32, patience: Duration) -> Option<Stop> {
        let backoff = Backoff::new();
        while backoff.waited() < patience {
            match look(self.pid, tid) {
                State::Stopped(stop) => {
                    self.threads.insert(tid, Some(stop));
                    return Some(stop);
                }
                State::Gone => {
                    self.threads.remove(&tid);
                    return None;
                }
                State::Running => backoff.pause(),
            }
        }
        None
    }

    /// A held thread's registers; none when it was killed.
    pub(crate) fn registers(&self, tid: i32) -> Option<Registers> {
        self.threads.get(&tid).copied().flatten()?;
        ptrace::getregs(Pid::from_raw(tid)).ok()
    }

    /// Gives a held thread other registers; it gets its own ones back when it is let go.
    pub(crate) fn send(&mut self, tid: i32, registers: Registers) -> Option<()> {
        let own = self.registers(tid)?;
        self.own.entry(tid).or_insert(own);
        ptrace::setregs(Pid::from_raw(tid), registers).ok()
    }

    /// Those that have stopped.
    pub(crate) fn tids(&self) -> impl Iterator<Item = i32> {
        self.threads.iter().filter(|(_, stop)| stop.is_some()).map(|(tid, _)| *tid)
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// How a thread is held.
    pub(crate) fn stop(&self, tid: i32) -> Option<Stop> {
        self.threads.get(&tid).copied().flatten()
    }

    /// Lets a held thread run for some microseconds, with the signal it was about to get.
    pub(crate) fn nudge(&mut self, tid: i32, round: u32, patience: Duration) -> Option<Stop> {
        let stop = self.stop(tid)?;
        self.threads.insert(tid, None);
        restart(Next::Continue, tid, stop).ok()?;
        linger(round);
        let _ = ptrace::interrupt(Pid::from_raw(tid));
        self.stopped_within(tid, patience)
    }

    /// Gets every thread out of where `inside` says it must not be, by letting those run a little that are
    /// there.
    pub(crate) fn move_out(&mut self, inside: &dyn Fn(u64) -> bool) -> Result<(), ClockError> {
        let held: Vec<i32> =
            self.threads.iter().filter(|(_, stop)| stop.is_some()).map(|(tid, _)| *tid).collect();
        for tid in held {
            let mut round = 0;
            while self.registers(tid).is_some_and(|registers| inside(registers.rip)) {
                if round == NUDGES {
                    return Err(ClockError::Busy {
                        pid: self.pid,
                        state: "a thread stays inside a clock function",
                    });
                }
                if self.nudge(tid, round, PATIENCE).is_none() && self.threads.contains_key(&tid) {
                    return Err(ClockError::Busy { pid: self.pid, state: "a thread does not stop again" });
                }
                round += 1;
            }
        }
        Ok(())
    }

    /// Whether some thread handles a signal that came while it was where `inside` says: it will return there.
    pub(crate) fn will_return(&self, memory: &Memory, inside: &dyn Fn(u64) -> bool) -> bool {
        let mut stack = vec![0; STACK];
        self.threads.keys().filter_map(|tid| self.registers(*tid)).any(|registers| {
            let length = memory.read_some(&mut stack, registers.rsp & !7);
            frames(&stack[..length]).any(inside)
        })
    }

    /// Lets all go. Tells how long they were held.
    pub(crate) fn release(mut self) -> Duration {
        self.let_go();
        self.since.elapsed()
    }

    fn let_go(&mut self) {
        for (tid, stop) in std::mem::take(&mut self.threads) {
            let own = self.own.remove(&tid);
            if stop.is_none_or(|stop| !let_go(tid, stop, own)) {
                self.stragglers.0.borrow_mut().push(Straggler { pid: self.pid, tid, own });
            }
        }
        self.stragglers.collect();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// The instruction pointers in what looks like frames of signals: `sigcontext` keeps rip, eflags and the
/// segments behind one another, and a thread in user space has 0x33 as its code segment.
fn frames(stack: &[u8]) -> impl Iterator<Item = u64> {
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    stack.windows(24).step_by(8).filter_map(move |words| {
        let (rip, flags, segments) = (word(&words[..8]), word(&words[8..16]), word(&words[16..]));
        (flags >> 32 == 0 && flags & 2 != 0 && segments & 0xffff == 0x33).then_some(rip)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_a_signal_is_told_from_other_words() {
        let words: [u64; 7] = [1, 0x7fff_1234, 0x246, 0x002b_0000_0000_0033, 0x7fff_1234, 0x246, 0x34];
        let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(frames(&stack).collect::<Vec<_>>(), [0x7fff_1234]);
        assert_eq!(frames(&stack[..20]).count(), 0);
    }
}
