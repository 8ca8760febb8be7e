//! Putting the jumps in, taking them out, changing the offset.
//!
//! Jumps are put in and taken out only while every thread of the target is held outside the clock functions,
//! so that none ever runs half of an old and half of a new one; and none may be about to return into the
//! replaced bytes from the handler of a signal. The offset is changed without holding anybody.
//!
//! What is found in a target is judged by its bytes alone, so a process that an earlier, killed program
//! shifted, or one that was forked from a shifted one, is recognised and taken over.

use std::time::Duration;

use crate::error::ClockError;
use crate::fitting;
use crate::memory::Memory;
use crate::stub;
use crate::target;
use crate::trace::{Held, Stragglers};
use crate::vdso::Vdso;

/// Attempts at finding all threads at a harmless point; the process runs between them.
const ATTEMPTS: u32 = 20;
/// From this attempt on, frames of signals count only when they lead into the replaced bytes themselves.
/// Stale ones in unused parts of a stack can't be told from live ones.
const NARROW: u32 = 15;

/// How long one thread may take to stop before another is tried.
const PATIENCE: Duration = Duration::from_millis(20);

/// What a target's vDSO looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// As the kernel made it.
    Clean,
    /// The annex is there, no jump leads to it.
    Restored,
    /// Shifted.
    Shifted,
    /// Some jumps are there: a program was killed while it patched.
    Half,
}

/// A target's memory beside what its vDSO should be.
#[derive(Debug)]
pub(crate) struct Site {
    pid: u32,
    memory: Memory,
    vdso: &'static Vdso,
    annex: Vec<u8>,
}

impl Site {
    /// Opens the target's memory and finds its vDSO.
    pub(crate) fn open(pid: u32) -> Result<Self, ClockError> {
        let vdso = target::vdso().map_err(|reason| ClockError::Unsupported { pid, reason })?;
        Ok(Self { pid, memory: Memory::open(pid)?, vdso, annex: fitting::annex(vdso) })
    }

    /// Where an offset of the image is in the target.
    pub(crate) fn address(&self, offset: usize) -> u64 {
        self.memory.base + offset as u64
    }

    /// The target's memory.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The address of an offset in the annex.
    pub(crate) fn annex_address(&self, offset: usize) -> u64 {
        self.address(self.vdso.annex + offset)
    }

    fn in_image(&self, address: u64, test: impl Fn(usize) -> bool) -> bool {
        usize::try_from(address.wrapping_sub(self.memory.base))
            .is_ok_and(|offset| offset < self.vdso.image.len() && test(offset))
    }

    /// Whether a thread at `address` may be inside a clock function.
    pub(crate) fn is_inside(&self, address: u64) -> bool {
        self.in_image(address, |offset| self.vdso.is_inside(offset))
    }

    /// Judges the target's image by its bytes.
    pub(crate) fn inspect(&self) -> Result<State, ClockError> {
        let (vdso, pid) = (self.vdso, self.pid);
        let mut image = vec![0; vdso.image.len()];
        self.memory.read(&mut image, self.memory.base)?;
        let jumps = fitting::jumps(vdso);
        let present = jumps.iter().filter(|(at, jump)| image[*at..].starts_with(jump)).count();
        // Undone what we may have done, it has to be the kernel's.
        for (at, jump) in &jumps {
            if image[*at..].starts_with(jump) {
                image[*at..at + jump.len()].copy_from_slice(&vdso.image[*at..at + jump.len()]);
            }
        }
        let annex = image[vdso.annex..vdso.annex + stub::LENGTH].to_vec();
        image[vdso.annex..vdso.annex + stub::LENGTH].fill(0);
        if image != vdso.image {
            return Err(ClockError::Foreign { pid });
        }
        let clean = annex.iter().all(|byte| *byte == 0);
        match (stub::is_ours(&annex, &self.annex), present) {
            (true, 0) => Ok(State::Restored),
            (true, 3) => Ok(State::Shifted),
            (true, _) => Ok(State::Half),
            (false, 0) if clean => Ok(State::Clean),
            _ => Err(ClockError::Foreign { pid }),
        }
    }

    fn write(&self, bytes: &[u8], offset: usize) -> Result<(), ClockError> {
        self.memory.write(bytes, self.address(offset))
    }

    /// Makes sure that the annex is there.
    pub(crate) fn prepare(&self, state: State) -> Result<(), ClockError> {
        if state == State::Clean { self.write(&self.annex, self.vdso.annex) } else { Ok(()) }
    }

    /// Changes the offset: fills the next cell, then says with one byte that it holds.
    fn set_offset(&self, offset_ns: i64) -> Result<(), ClockError> {
        let mut index = [0];
        self.memory.read(&mut index, self.annex_address(stub::INDEX))?;
        let next = (index[0] + 1) % stub::CELL_COUNT;
        self.write(&stub::cell(offset_ns), self.vdso.annex + stub::cell_at(next))?;
        self.write(&[next], self.vdso.annex + stub::INDEX)
    }

    /// Changes the offset of a target that is shifted, through its file or while one thread is held; none
    /// where neither can be done.
    fn change_offset(&self, offset_ns: i64, stragglers: &Stragglers) -> Option<Duration> {
        if self.memory.is_file() && self.set_offset(offset_ns).is_ok() {
            return Some(Duration::ZERO);
        }
        target::threads_at_rest_first(self.pid).ok()?.into_iter().find_map(|tid| {
            let held = Held::one_thread(self.pid, tid, PATIENCE, stragglers).ok()??;
            self.memory.set_through(tid);
            // Another program may have been executed since it was looked.
            (self.inspect().ok()? == State::Shifted).then_some(())?;
            self.set_offset(offset_ns).ok().map(|()| held.release())
        })
    }

    /// Puts the jumps in, or the original bytes back.
    fn set_jumps(&self, shifted: bool) -> Result<(), ClockError> {
        for (at, jump) in fitting::jumps(self.vdso) {
            let original = &self.vdso.image[at..at + jump.len()];
            self.write(if shifted { &jump } else { original }, at)?;
        }
        Ok(())
    }

    /// Whether nobody will go on inside a clock function that is about to change.
    fn is_clear(&self, held: &mut Held, attempt: u32) -> Result<bool, ClockError> {
        held.move_out(&|address| self.is_inside(address))?;
        let returning = |address| {
            self.in_image(address, |offset| {
                self.vdso.is_replaced(offset) || (attempt < NARROW && self.vdso.is_inside(offset))
            })
        };
        Ok(!held.will_return(&self.memory, &returning))
    }

    /// With all threads held: brings the target into the state that is asked for.
    fn change(&self, offset_ns: i64) -> Result<(), ClockError> {
        self.prepare(self.inspect()?)?;
        self.set_offset(offset_ns)?;
        self.set_jumps(offset_ns != 0).inspect_err(|_| {
            // All or nothing, as far as it can still be had.
            let _ = self.set_jumps(false);
        })
    }
}

/// Shifts the clock of `pid`; zero restores it. Returns for how long the target was held.
pub(crate) fn shift(pid: u32, offset_ns: i64, stragglers: &Stragglers) -> Result<Duration, ClockError> {
    let mut last = ClockError::Gone { pid };
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(u64::from(attempt)));
        }
        stragglers.collect();
        let site = Site::open(pid)?;
        let state = site.inspect();
        match &state {
            Ok(State::Clean | State::Restored) if offset_ns == 0 => return Ok(Duration::ZERO),
            Ok(State::Shifted) if offset_ns != 0 => {
                if let Some(stopped) = site.change_offset(offset_ns, stragglers) {
                    return Ok(stopped);
                }
            }
            _ => {}
        }
        let outcome =
            Held::all_threads(pid, &|address| !site.is_inside(address), stragglers).and_then(|mut held| {
                if !site.is_clear(&mut held, attempt)? {
                    return Err(ClockError::Busy {
                        pid,
                        state: "a signal's handler will return into a clock function",
                    });
                }
                held.tids().for_each(|tid| site.memory.set_through(tid));
                site.change(offset_ns)?;
                Ok(held.release())
            });
        match outcome {
            Ok(stopped) => return Ok(stopped),
            // Another program may have been executed between opening the memory and holding the threads.
            Err(error @ (ClockError::Busy { .. } | ClockError::Gone { .. })) => last = error,
            Err(error) => return Err(error),
        }
        if target::start_ticks(pid).is_none() {
            return Err(ClockError::Gone { pid });
        }
    }
    Err(last)
}
