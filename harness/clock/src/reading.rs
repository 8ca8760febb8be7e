//! Letting a target read its own clock.
//!
//! One thread is borrowed for some microseconds: it is sent through its own vDSO's `clock_gettime` with a
//! buffer below its stack, waits in a small loop behind the call, is fetched from there, and gets its
//! registers and the bytes of its stack back. The other threads run on. Our own clock is read before and
//! after.
//!
//! A thread that waits in a system call is preferred: it stands in no restartable sequence, which must not be
//! left and entered again unseen.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Reading;
use crate::error::ClockError;
use crate::patch::Site;
use crate::stub;
use crate::target;
use crate::trace::{Held, Registers, Stop, Stragglers};

/// Attempts, each with a thread that may get a signal just then.
const ATTEMPTS: u32 = 50;
/// Readings taken of a thread once it is held; the narrowest counts.
const ROUNDS: u32 = 3;
/// One of this width is narrow enough, in nanoseconds.
const NARROW_NS: u64 = 60_000;
/// How often a thread is let run on until it has come through.
const STEPS: u32 = 2_000;
/// How long a thread may take to stop before another is tried.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long it may take to stop again; it may have to wait for a processor.
const LONG_PATIENCE: Duration = Duration::from_secs(2);
/// What functions may keep below the stack pointer without moving it.
const RED_ZONE: u64 = 128;
/// Bytes of stack below the buffer that the call may use; they are put back.
const FRAME: usize = 512;

/// Our own wall clock, in nanoseconds since 1970.
fn now() -> i128 {
    let time = clock_gettime(ClockId::Realtime);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

fn narrow(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// Lets a thread of `pid` read its wall clock.
pub(crate) fn read(pid: u32, stragglers: &Stragglers) -> Result<Reading, ClockError> {
    let mut last = ClockError::Gone { pid };
    for attempt in 0..ATTEMPTS {
        stragglers.collect();
        if target::start_ticks(pid).is_none() {
            return Err(ClockError::Gone { pid });
        }
        let site = Site::open(pid)?;
        let state = site.inspect()?;
        for tid in target::threads_at_rest_first(pid).map_err(|_| ClockError::Gone { pid })? {
            let Some(mut held) = Held::one_thread(pid, tid, PATIENCE, stragglers)? else { continue };
            match borrow(&site, state, &mut held, tid) {
                Ok(Some(reading)) => return Ok(reading),
                Ok(None) => {}
                Err(error @ ClockError::Gone { .. }) => last = error,
                Err(error) => return Err(error),
            }
        }
        std::thread::sleep(Duration::from_micros(100) * attempt);
    }
    match last {
        ClockError::Gone { .. } if target::start_ticks(pid).is_some() => {
            Err(ClockError::Busy { pid, state: "no thread could be borrowed for a reading" })
        }
        error => Err(error),
    }
}

/// Reads in a thread that is held. None when it is about to get a signal, which goes first.
fn borrow(
    site: &Site,
    state: crate::patch::State,
    held: &mut Held,
    tid: i32,
) -> Result<Option<Reading>, ClockError> {
    let (Some(Stop::Asked), Some(registers)) = (held.stop(tid), held.registers(tid)) else { return Ok(None) };
    site.memory().set_through(tid);
    site.prepare(state)?;
    let buffer = registers.rsp.wrapping_sub(RED_ZONE + 16) & !15;
    let frame = buffer.wrapping_sub(FRAME as u64);
    let mut stack = [0; FRAME + 16];
    if site.memory().read(&mut stack, frame).is_err() {
        // A stack that is used up to its end.
        return Ok(None);
    }
    let reading = narrowest(site, held, tid, registers, buffer);
    // Whatever came of it: the thread goes on as it was found. Its registers come back when it is let go.
    if held.stop(tid).is_some() {
        let _ = site.memory().write(&stack, frame);
    }
    reading
}

/// The best of some readings. None when a signal came before the first was done.
fn narrowest(
    site: &Site,
    held: &mut Held,
    tid: i32,
    registers: Registers,
    buffer: u64,
) -> Result<Option<Reading>, ClockError> {
    let mut best: Option<Reading> = None;
    for _ in 0..ROUNDS {
        let Some(reading) = round(site, held, tid, registers, buffer)? else { break };
        if best.is_none_or(|best| reading.error_ns < best.error_ns) {
            best = Some(reading);
        }
        if reading.error_ns <= NARROW_NS {
            break;
        }
    }
    Ok(best)
}

/// One reading. None when a signal came in between.
fn round(
    site: &Site,
    held: &mut Held,
    tid: i32,
    registers: Registers,
    buffer: u64,
) -> Result<Option<Reading>, ClockError> {
    let sent = Registers {
        rip: site.annex_address(stub::READING),
        rsp: buffer,
        rdi: 0,
        rsi: buffer,
        rax: 0,
        // No system call was interrupted: else the kernel would restart it from here.
        orig_rax: u64::MAX,
        eflags: registers.eflags & !0x400,
        ..registers
    };
    let done = site.annex_address(stub::READING_DONE.start)..site.annex_address(stub::READING_DONE.end);
    if held.send(tid, sent).is_none() {
        return Ok(None);
    }
    let mut before = now();
    for step in 0..STEPS {
        if held.nudge(tid, step, LONG_PATIENCE) != Some(Stop::Asked) {
            return Ok(None);
        }
        let after = now();
        let Some(found) = held.registers(tid) else { return Ok(None) };
        if found.rip == sent.rip {
            // Not even begun.
            before = now();
            continue;
        }
        if !done.contains(&found.rip) {
            continue;
        }
        let mut time = [0; 16];
        site.memory().read(&mut time, buffer)?;
        let [seconds, nanoseconds] = [&time[..8], &time[8..]]
            .map(|word| i128::from(i64::from_le_bytes(word.try_into().unwrap_or_default())));
        if found.rax != 0 {
            return Err(ClockError::Unsupported {
                pid: held.pid(),
                reason: "the kernel refuses it clock_gettime, by a seccomp filter say",
            });
        }
        let read = seconds * 1_000_000_000 + nanoseconds;
        let width = (after - before).max(0);
        return Ok(Some(Reading {
            offset_ns: narrow(read - (before + after) / 2),
            error_ns: narrow(width).cast_unsigned(),
        }));
    }
    Ok(None)
}
