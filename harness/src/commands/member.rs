//! `harness member`, hidden: the bundled node inside the harness, with what only a test bench may ask of it.

use std::io::Write;

use node::NodeConfig;
use node_core::{Bug, Clean, Planted};

use super::stand_in::die_with;
use crate::cli::MemberArgs;
use crate::exit::{Exit, Failure};

/// Runs a member until it is stopped.
pub fn member(args: &MemberArgs) -> Result<Exit, Failure> {
    if let Some(parent) = args.parent {
        die_with(parent)?;
    }
    let mut config =
        NodeConfig::from_args(&args.node).map_err(|error| Failure::usage(format!("failed to {error}")))?;
    config.note_synced = args.note_synced;
    config.cut_to_synced = args.cut_unsynced;
    let plant = match args.plant.as_deref() {
        None => None,
        Some(name) => {
            Some(Bug::from_name(name).ok_or_else(|| Failure::usage(format!("there is no bug `{name}`")))?)
        }
    };
    let ran = match plant {
        None => node::run(config, Clean),
        Some(bug) => node::run(config, Planted(bug)),
    };
    // These are its last words, in its log; that the harness failed would not be true.
    if let Err(error) = ran {
        let _ = writeln!(std::io::stderr(), "the member stopped: {error:#}");
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}
