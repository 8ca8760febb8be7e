//! `harness agent` and `harness clock-target`, hidden: what acts beside a member in a container, on standard
//! input and output, and the process on which it tries whether clocks can be shifted.

use anyhow::Context;
use harness_agent::{Options, idle_on_stdio, main_loop_on_stdio};

use crate::exit::{Exit, Failure};

/// Acts until it is told to stop, or the harness is gone.
pub fn agent() -> Result<Exit, Failure> {
    main_loop_on_stdio(Options::default()).context("the agent failed to")?;
    Ok(Exit::Done)
}

/// Waits for the end of its input.
pub fn clock_target() -> Result<Exit, Failure> {
    idle_on_stdio();
    Ok(Exit::Done)
}
