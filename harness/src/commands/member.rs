//! `harness member`, hidden: the bundled node inside the harness, with what only a test bench may ask of it.

use std::io::Write;
use std::time::Duration;

use lab_mutants::{Driver, Mutant};
use node::{Manner, NodeConfig};
use node_core::Zab;

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
    let mutant = match args.mutant.as_deref() {
        None => None,
        Some(name) => {
            Some(Mutant::named(name).ok_or_else(|| Failure::usage(format!("there is no mutant `{name}`")))?)
        }
    };
    let ran = match mutant {
        None => node::run(config, &Zab),
        Some(mutant) => {
            config.manner = manner(mutant.driver());
            node::run(config, &mutant)
        }
    };
    // These are its last words, in its log; that the harness failed would not be true.
    if let Err(error) = ran {
        let _ = writeln!(std::io::stderr(), "the member stopped: {error:#}");
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

/// How long a driver that is in no hurry waits before each fsync.
const LINGER: Duration = Duration::from_millis(20);

fn manner(driver: Driver) -> Manner {
    match driver {
        Driver::Sound | Driver::SkipsFailedWrites => Manner::default(),
        Driver::LazyDisk => Manner { linger: LINGER, ..Manner::default() },
        Driver::ClientsFirst => Manner { clients_first: true, ..Manner::default() },
    }
}
