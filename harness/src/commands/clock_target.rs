//! `harness clock-target`, hidden: a process that does nothing, until its standard input is closed. Whether
//! clocks can be shifted on this machine is tried on it before anything of a run starts.

use anyhow::Context;

use crate::exit::{Exit, Failure};

/// Waits.
pub fn clock_target() -> Result<Exit, Failure> {
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()).context("reading standard input")?;
    Ok(Exit::Done)
}
