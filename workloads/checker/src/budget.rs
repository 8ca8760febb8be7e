//! Bounds on what a search may spend.
//!
//! A search for an order is exponential in the worst case, so each one counts its steps and the bytes it
//! remembers, and gives up when either runs out. Counting steps rather than seconds keeps this crate without a
//! clock and makes a verdict repeatable.

use std::fmt;

/// What a check may spend on one key before it must answer unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Elementary steps: configurations looked at.
    pub steps: u64,
    /// Bytes held at once by the memory of visited configurations.
    pub memory_bytes: usize,
}

impl Default for Budget {
    /// Some tens of seconds of search and a quarter of a gibibyte.
    fn default() -> Self {
        Self { steps: 200_000_000, memory_bytes: 256 << 20 }
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
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "the budget of steps ran out",
            Self::Memory => "the budget of memory ran out",
            Self::Window => "too many operations were open at once",
        })
    }
}

/// Counts down one search's share of a [`Budget`].
#[derive(Debug)]
pub struct Meter {
    steps_left: u64,
    steps_spent: u64,
    memory_bytes: usize,
}

impl Meter {
    /// A meter that allows what `budget` allows.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self { steps_left: budget.steps, steps_spent: 0, memory_bytes: budget.memory_bytes }
    }

    /// Pays for one step.
    ///
    /// # Errors
    /// [`Exhausted::Steps`] when nothing is left to pay with.
    pub fn step(&mut self) -> Result<(), Exhausted> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Exhausted::Steps)?;
        self.steps_spent += 1;
        Ok(())
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
