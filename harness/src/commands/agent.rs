//! `harness agent`, hidden: process 1 of the container that owns a member's network and processes.

use anyhow::Context;

use crate::exit::{Exit, Failure};

/// Serves on standard input and output until told to stop, or until the harness is silent for too long.
pub fn agent() -> Result<Exit, Failure> {
    harness_agent::main_loop_on_stdio(harness_agent::Options::default()).context("the agent failed")?;
    Ok(Exit::Done)
}
