//! The agent on standard input and output, as the harness's hidden subcommand runs it; for tests and by hand.
//!
//! `agent` runs it. `agent clock-target` waits until its standard input is closed.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some() {
        harness_agent::idle_on_stdio();
        return ExitCode::SUCCESS;
    }
    match harness_agent::main_loop_on_stdio(harness_agent::Options::default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the agent failed to {error}");
            ExitCode::FAILURE
        }
    }
}
