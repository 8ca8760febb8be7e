//! `harness wrap`: faults with their proofs around a test of the user's own, which is a command on this
//! machine or test commands in the containers.

use super::run::{Order, make, told};
use crate::cli::WrapArgs;
use crate::config::RunOptions;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;

/// Starts the members, runs the command while they are broken, and judges.
pub fn wrap(args: &WrapArgs) -> Result<Exit, Failure> {
    let flags = args.of_a_run().map_err(|error| Failure::usage(error.to_string()))?;
    let options = match args.test_commands() {
        Some(template) => RunOptions::around_a_template(&flags, template)?,
        None => RunOptions::around_a_command(&flags, &args.command)?,
    };
    let order = Order::drawn(options);
    let progress = Progress::on_stderr();
    let (folder, judged) = make(order, &progress)?;
    told(&folder, &judged, args.format, &progress)
}
