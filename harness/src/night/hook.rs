//! The command that a file names for findings: started with each finding on its standard input.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use nights::findings::Finding;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::text::span;

/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Starts it, and waits for its end.
///
/// # Errors
///
/// What failed, in words: nobody but who watches is to know, and nothing is changed by it.
pub fn notify(command: &[String], finding: &Finding) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let body = serde_json::to_vec(finding).context("encoding it");
    body.and_then(|body| run(program, arguments, body, PATIENCE))
        .map_err(|error| format!("on_finding: {program} was not told: {error:#}"))
}

/// Runs it to its end, with this on its standard input, within this time.
fn run(program: &str, arguments: &[String], body: Vec<u8>, within: Duration) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    harness_systems::program::mark(&mut command);
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read has heard enough. It may not end either, so nobody waits for this.
        std::thread::spawn(move || {
            let _ = stdin.write_all(&body);
        });
    }
    let until = Instant::now() + within;
    while Instant::now() < until {
        match child.try_wait().context("waiting for it")? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => anyhow::bail!("it ended with {status}"),
            None => std::thread::park_timeout(LOOK_EVERY),
        }
    }
    // It was not waited for, so its group is its own still.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    group.map_or(Ok(()), |group| kill_process_group(group, Signal::KILL)).context("ending it")?;
    child.wait().context("ending it")?;
    anyhow::bail!("it did not end within {}", span::show(within))
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_does_not_read_its_input_is_ended_and_told() {
        let (arguments, more_than_a_pipe_holds) = (["600".to_owned()], vec![b' '; 1 << 20]);
        let told = run("sleep", &arguments, more_than_a_pipe_holds, Duration::from_millis(50));
        assert!(told.expect_err("it was ended").to_string().contains("did not end within"));
    }

    #[test]
    fn a_hook_gets_all_of_its_input() {
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("copy");
        let arguments = ["-c".to_owned(), format!("cat >'{}'", copy.display())];
        run("/bin/sh", &arguments, vec![b'x'; 1 << 20], PATIENCE).expect("it ended");
        assert_eq!(std::fs::metadata(copy).expect("written").len(), 1 << 20);
    }
}
