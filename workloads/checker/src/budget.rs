//! Bounds on what a search may spend.
//!
//! A search for an order is exponential in the worst case, so each one counts its steps and the bytes it
//! remembers, and gives up when either runs out. Steps rather than seconds make a verdict repeatable. Whoever
//! bounds seconds, or the memory of the whole process, holds the other end of an [`Interrupt`]: this crate
//! has no clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What a check may spend on one key before it must answer unknown.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Elementary steps: configurations looked at.
    pub steps: u64,
    /// Bytes held at once by the memory of visited configurations.
    pub memory_bytes: usize,
    /// Ends it from outside.
    pub interrupt: Interrupt,
}

impl Budget {
    /// A budget that nobody interrupts.
    #[must_use]
    pub const fn new(steps: u64, memory_bytes: usize) -> Self {
        Self { steps, memory_bytes, interrupt: Interrupt::never() }
    }

    /// The same with another number of steps.
    #[must_use]
    pub fn with_steps(&self, steps: u64) -> Self {
        Self { steps, ..self.clone() }
    }
}

impl Default for Budget {
    /// Some tens of seconds of search and a quarter of a gibibyte.
    fn default() -> Self {
        Self::new(200_000_000, 256 << 20)
    }
}

/// A bell that somebody else may ring: every search that holds a clone of it gives up soon after.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Option<Arc<AtomicU8>>);

const QUIET: u8 = 0;
const TIME: u8 = 1;
const MEMORY: u8 = 2;

impl Interrupt {
    /// One that is never rung.
    #[must_use]
    pub const fn never() -> Self {
        Self(None)
    }

    /// One that can be.
    #[must_use]
    pub fn armed() -> Self {
        Self(Some(Arc::new(AtomicU8::new(QUIET))))
    }

    /// The time is over.
    pub fn time_is_over(&self) {
        self.ring(TIME);
    }

    /// The process holds as much memory as it may.
    pub fn memory_is_full(&self) {
        self.ring(MEMORY);
    }

    fn ring(&self, why: u8) {
        if let Some(bell) = &self.0 {
            // Whoever rings first is the reason.
            let _ = bell.compare_exchange(QUIET, why, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Why to give up, if the bell was rung.
    #[must_use]
    pub fn rung(&self) -> Option<Exhausted> {
        match self.0.as_ref()?.load(Ordering::Relaxed) {
            QUIET => None,
            MEMORY => Some(Exhausted::ProcessMemory),
            _ => Some(Exhausted::Time),
        }
    }
}

/// Why a search stopped without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// The steps ran out.
    Steps,
    /// The memory ran out.
    Memory,
    /// More operations were open at once than the algorithm can represent.
    Window,
    /// The caller's time ran out.
    Time,
    /// The process as a whole reached the caller's bound on memory.
    ProcessMemory,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "the budget of steps ran out",
            Self::Memory => "the budget of memory ran out",
            Self::Window => "too many operations were open at once",
            Self::Time => "the time ran out",
            Self::ProcessMemory => "the process reached its bound on memory",
        })
    }
}

/// Steps between two looks at the interrupt.
const LOOK_EVERY: u64 = 1 << 10;

/// Counts down one search's share of a [`Budget`].
#[derive(Debug)]
pub struct Meter {
    steps_left: u64,
    steps_spent: u64,
    memory_bytes: usize,
    interrupt: Interrupt,
}

impl Meter {
    /// A meter that allows what `budget` allows.
    #[must_use]
    pub fn new(budget: &Budget) -> Self {
        let Budget { steps, memory_bytes, interrupt } = budget.clone();
        Self { steps_left: steps, steps_spent: 0, memory_bytes, interrupt }
    }

    /// Pays for one step.
    ///
    /// # Errors
    /// [`Exhausted::Steps`] when nothing is left to pay with; [`Exhausted::Time`] or
    /// [`Exhausted::ProcessMemory`] when the caller rang.
    pub fn step(&mut self) -> Result<(), Exhausted> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Exhausted::Steps)?;
        self.steps_spent += 1;
        if self.steps_spent.is_multiple_of(LOOK_EVERY)
            && let Some(why) = self.interrupt.rung()
        {
            return Err(why);
        }
        Ok(())
    }

    /// Pays for several steps at once.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn pay(&mut self, steps: u64) -> Result<(), Exhausted> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Exhausted::Steps)?;
        self.steps_spent += steps;
        self.interrupt.rung().map_or(Ok(()), Err)
    }

    /// Refuses a structure that has grown to `entries` of `entry_bytes` each.
    ///
    /// # Errors
    /// [`Exhausted::Memory`] when that is more than the budget.
    pub fn hold(&self, entries: usize, entry_bytes: usize) -> Result<(), Exhausted> {
        if entries.saturating_mul(entry_bytes) > self.memory_bytes { Err(Exhausted::Memory) } else { Ok(()) }
    }

    /// Steps paid so far.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.steps_spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_hears_the_bell_and_says_who_rang_first() {
        let interrupt = Interrupt::armed();
        let mut meter = Meter::new(&Budget { interrupt: interrupt.clone(), ..Budget::default() });
        assert!(meter.step().is_ok());
        interrupt.memory_is_full();
        interrupt.time_is_over();
        let given_up = (0..=LOOK_EVERY).find_map(|_| meter.step().err());
        assert_eq!(given_up, Some(Exhausted::ProcessMemory));
    }
}
