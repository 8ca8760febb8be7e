//! What this crate is on machines whose clocks it can't shift: the same names, and a refusal.

use std::process::Command;

use crate::{ClockError, Reading, Shift, Unavailable};

const REASON: &str = "clocks can be shifted on x86-64 Linux only";

/// Shifts no clock: this is not x86-64 Linux.
#[derive(Debug, Default)]
pub struct Shifter;

impl Shifter {
    /// Does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn shift(&mut self, pid: u32, _offset_ns: i64) -> Result<Shift, ClockError> {
        Err(ClockError::Unsupported { pid, reason: REASON })
    }

    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn read(&mut self, pid: u32) -> Result<Reading, ClockError> {
        Err(ClockError::Unsupported { pid, reason: REASON })
    }

    /// Has nothing to restore.
    pub fn restore_all(&mut self) {}
}

/// Says no.
///
/// # Errors
///
/// Always.
pub fn available() -> Result<(), Unavailable> {
    Err(Unavailable(REASON.to_owned()))
}

/// Says no, without starting anything.
///
/// # Errors
///
/// Always.
pub fn available_with(_command: Command) -> Result<(), Unavailable> {
    available()
}

/// Says no.
///
/// # Errors
///
/// Always.
pub fn available_on(_child_pid: u32) -> Result<(), Unavailable> {
    available()
}
