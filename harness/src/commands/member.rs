//! `harness member`, hidden: the bundled node inside the harness, with what only a test bench may ask of it.

use anyhow::{Context, anyhow};
use node::NodeConfig;
use node_core::{Bug, Clean, Planted};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

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
    match plant {
        None => node::run(config, Clean),
        Some(bug) => node::run(config, Planted(bug)),
    }?;
    Ok(Exit::Done)
}

/// Asks the kernel to kill this process when its harness ends, and ends now if that has happened already.
fn die_with(parent: u32) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("asking for a signal when the harness ends")?;
    let expected = i32::try_from(parent).ok().and_then(Pid::from_raw);
    if getppid() == expected { Ok(()) } else { Err(anyhow!("the harness that started this member is gone")) }
}
