//! `harness guard`, hidden: ends what a harness left running, as soon as that harness is gone.
//!
//! Clients, questions to members and faults of one's own are commands of the user's, and may start others.
//! The kernel ends the direct children of a harness that dies, and no more. All of them carry a token that
//! names the harness, so this process, in a session of its own, waits for the harness's end and then sweeps.

use std::process::{Command, Stdio};

use anyhow::Context;
use harness_systems::program;
use rustix::process::{Pid, getppid, setsid};

use crate::cli::GuardArgs;
use crate::cluster::sweep;
use crate::exit::{Exit, Failure};
use crate::host::procfs;
use crate::store::lock::{self, TOKEN_VARIABLE};

/// Sweeps at most: what starts others while it is swept is found by the next one.
const MOST_SWEEPS: usize = 20;

/// Has all that this process starts for the user marked as its own, and starts the guard. Where there is
/// none, the next sweep does its work.
pub(super) fn start() {
    if let Some(token) = lock::own_token() {
        program::mark_with(TOKEN_VARIABLE, token);
    }
    let Ok(executable) = std::env::current_exe() else { return };
    let mut command = Command::new(executable);
    command.args(["guard", "--parent", &std::process::id().to_string()]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        tracing::warn!(%error, "what is left running when this is killed waits for `harness clean`");
    }
}

/// Waits for the end of the harness, and sweeps.
pub fn guard(args: &GuardArgs) -> Result<Exit, Failure> {
    setsid().context("beginning a session")?;
    let harness = procfs::handle(args.parent);
    // Another process may have its id already.
    let is_it = getppid() == i32::try_from(args.parent).ok().and_then(Pid::from_raw);
    if let Some(harness) = harness.ok().filter(|_| is_it) {
        while !procfs::has_ended(&harness) {
            procfs::wait_for_the_end(&harness, None);
        }
    }
    for _ in 0..MOST_SWEEPS {
        if sweep::end_orphans().is_empty() {
            break;
        }
    }
    Ok(Exit::Done)
}
