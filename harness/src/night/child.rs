//! A run in another process of the harness.
//!
//! It has a group of its own, so that a Ctrl-C on the terminal reaches it once, from here, and it heals. It
//! asks the kernel for SIGTERM when this process dies, so it heals then too. One that does not end in time is
//! asked, and then killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use harness_systems::bounded;
use nights::outcome::Ended;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

use crate::run::interrupt::Interrupt;

/// How long a run may take to heal and write once it was asked to end.
const STOP_PATIENCE: Duration = Duration::from_secs(90);
/// Bytes of what a run said that are looked at for why it failed.
const TAIL_BYTES: u64 = 4096;

/// What is started.
#[derive(Clone, Debug)]
pub struct Order {
    /// The harness that makes it.
    pub executable: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where what it says on standard error is kept.
    pub log: PathBuf,
    /// How long it may take.
    pub deadline: Duration,
}

/// Where its standard output goes while it runs, beside its log.
fn output_of(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".out");
    PathBuf::from(name)
}

/// Runs it to its end.
///
/// # Errors
///
/// When it can't be started at all.
pub async fn run(order: &Order, interrupt: &Interrupt) -> anyhow::Result<Ended> {
    if let Some(folder) = order.log.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let begun = Instant::now();
    let mut child = start(order)?;
    let (mut interrupted, mut too_long) = (false, false);
    let ended = tokio::select! {
        status = child.wait() => Some(status.context("waiting for a run")?),
        () = interrupt.asked() => { interrupted = true; None }
        () = tokio::time::sleep(order.deadline) => { too_long = true; None }
    };
    let status = match ended {
        Some(status) => status,
        None => end(&mut child).await?,
    };
    let output = output_of(&order.log);
    let said = bounded::read(&output, bounded::COLLECTED).unwrap_or_default();
    let _ = std::fs::remove_file(output);
    Ok(Ended {
        status: status.code(),
        took: begun.elapsed(),
        interrupted,
        too_long,
        last_words: last_words(&order.log),
        output: String::from_utf8_lossy(&said).into_owned(),
    })
}

fn start(order: &Order) -> anyhow::Result<Child> {
    let file = |path: &Path| {
        // A link in its place leads elsewhere.
        let _ = std::fs::remove_file(path);
        File::create_new(path).with_context(|| format!("creating {}", path.display()))
    };
    let parent = std::process::id().to_string();
    let mut command = Command::new(&order.executable);
    command.args(["become", "--parent", &parent, "--gently", "--"]).arg(&order.executable);
    command.args(&order.arguments);
    // A cargo that started this process did not start that one.
    command.env_remove("CARGO");
    command.stdin(Stdio::null()).stdout(file(&output_of(&order.log))?).stderr(file(&order.log)?);
    command.process_group(0);
    command.spawn().with_context(|| format!("starting {}", order.executable.display()))
}

/// Asks it to end, and ends it when it does not.
async fn end(child: &mut Child) -> anyhow::Result<std::process::ExitStatus> {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        // The leader alone: its members die with it, and it has to be alive to heal.
        let _ = kill_process(id, Signal::INT);
    }
    match tokio::time::timeout(STOP_PATIENCE, child.wait()).await {
        Ok(status) => status.context("waiting for a run that was asked to end"),
        Err(_) => {
            if let Some(id) = id {
                let _ = kill_process_group(id, Signal::KILL);
            }
            child.wait().await.context("waiting for a run that was killed")
        }
    }
}

/// The last line that says something, without what moves on a terminal.
fn last_words(log: &Path) -> String {
    let text = bounded::tail(log, TAIL_BYTES);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // What failed may quote several lines; the first of ours says what it was.
    let ours = lines.iter().rev().find(|line| line.starts_with("harness: "));
    let line = ours.or(lines.last()).copied().unwrap_or_default();
    line.strip_prefix("harness: ").unwrap_or(line).to_owned()
}
