//! `harness clean`: removes what a killed harness left.
//!
//! A run that is interrupted twice ends at once and starts this behind itself: nobody has to type it, and
//! nothing stays on an engine until the next run.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::screen::print;
use crate::cli::StoreArgs;
use crate::cluster::sweep;
use crate::exit::{Exit, Failure};
use crate::host::descriptors;
use crate::host::procfs;

/// How long the process that is about to end may take.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Starts a `clean` that waits for this process to be gone. What can't be started is left to whoever types
/// it.
pub(crate) fn behind(store: &Path) {
    let Ok(executable) = std::env::current_exe() else { return };
    let mut command = Command::new(executable);
    command.args(["clean", "--after", &std::process::id().to_string(), "--store"]).arg(store);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let _ = command.spawn();
}

/// Waits until a process is gone with all its threads, for [`EXIT_PATIENCE`] at most. A dead process holds
/// its files, and so its lock, until its last thread is gone.
fn wait_for_exit_of(pid: u32) {
    let deadline = Instant::now() + EXIT_PATIENCE;
    let lives = || procfs::stat(pid).is_some_and(|stat| !stat.is_dead() || procfs::threads(pid) > 1);
    while lives() && Instant::now() < deadline {
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// Sweeps, and says what was done.
pub fn clean(args: &StoreArgs) -> Result<Exit, Failure> {
    let store = args.store.as_path();
    if let Some(pid) = args.after {
        wait_for_exit_of(pid);
    }
    // One is held for each process that is ended, until it is gone.
    let _ = descriptors::raise();
    let swept = sweep::sweep_everywhere(store).with_context(|| format!("sweeping {}", store.display()))?;
    let mut text = if swept.is_empty() { "nothing was left behind".to_owned() } else { swept.sentence() };
    for folder in &swept.folders {
        text.push_str(&format!("\n  {}", folder.display()));
    }
    if swept.alive > 0 {
        text.push_str(&format!("\n{} left alone", crate::num::plural(swept.alive, "living run")));
    }
    if let Some(failure) = &swept.failure {
        text.push_str(&format!("\nthe Docker engine was not swept: {failure}"));
    }
    text.push('\n');
    print(&text)?;
    Ok(Exit::Done)
}
