//! A violation, looked at: its schedule run again, made smaller, and told to whoever wants to know.
//!
//! How often it shows again says how to work on it; it never says that it was none. One that no replay shows
//! stays a violation.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use checker::verdict::Verdict;
use nights::findings::{Found, Replays, Shrunk};
use nights::fingerprint::Shape;
use nights::fold;
use nights::index::{Attempt, Line};
use nights::suite::Case;
use rustix::process::{Pid, Signal, kill_process_group};

use super::outcome;
use super::runner::{Runner, newest};
use crate::config::flags::must_be_typed;
use crate::exit::Failure;
use crate::num::narrow;
use crate::text::{span, typed};

/// Beside its time, what a replay may take.
const GRACE: Duration = Duration::from_secs(300);
/// How long a command that is told of a finding may take.
const HOOK: Duration = Duration::from_secs(60);
/// How often it is looked whether it has ended.
const GLANCE: Duration = Duration::from_millis(50);

impl Runner {
    pub(super) async fn violation(
        &self,
        case: &Case,
        attempt: &Attempt,
        shapes: &[(Shape, String)],
    ) -> Result<(), Failure> {
        let Some(folder) = attempt.folder.as_deref() else { return Ok(()) };
        let path = self.store.borrow().path().join(folder);
        let looked_at: BTreeSet<String> =
            self.tonight().found.into_iter().map(|found| found.fingerprint).collect();
        let fresh: Vec<_> =
            shapes.iter().filter(|(shape, _)| !looked_at.contains(&shape.fingerprint())).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let accused = self.replays(case, attempt, &path, self.owed(&fresh[0].0.fingerprint())).await?;
        let mut shrunk = self.smaller(case, &fresh[0].0.fingerprint(), attempt, &path).await?;
        for (shape, sentence) in fresh {
            let shown = accused.iter().filter(|checks| checks.contains(&shape.check)).count();
            // The smaller schedule shows the first check; it is not known to show the others.
            let shrunk = shrunk.take();
            let shown_by = shrunk.as_ref().map_or(folder, |shrunk| shrunk.folder.as_str());
            let found = Found {
                night: self.night.clone(),
                fingerprint: shape.fingerprint(),
                shape: shape.clone(),
                sentence: sentence.clone(),
                folder: folder.to_owned(),
                replays: Replays { shown: narrow(shown), of: narrow(accused.len()) },
                command: self.command(case, shown_by),
                shrunk,
            };
            self.progress.say(&format!(
                "finding {}: shown again by {} of {} replays; {}",
                found.fingerprint, found.replays.shown, found.replays.of, found.command
            ));
            self.store.borrow_mut().append(Line::Finding(found.clone()))?;
            self.tell(&found);
        }
        Ok(())
    }

    /// How many replays a violation gets: one that is known or was seen before gets one, because others count
    /// on the budget.
    fn owed(&self, fingerprint: &str) -> u32 {
        let replays = self.orders.suite.settings.replays;
        let known = self.orders.suite.known.iter().any(|known| known.finding == fingerprint);
        let seen = |line: &Line| matches!(line, Line::Finding(found) if found.fingerprint == fingerprint);
        if known || self.store.borrow().lines.iter().any(seen) { replays.min(1) } else { replays }
    }

    /// The checks that accused in each replay that came to a verdict.
    async fn replays(
        &self,
        case: &Case,
        attempt: &Attempt,
        path: &Path,
        replays: u32,
    ) -> Result<Vec<BTreeSet<String>>, Failure> {
        let mut all = Vec::new();
        for nth in 1..=replays {
            if self.interrupt.was_asked() {
                break;
            }
            let name = format!("{}-{}-replay-{nth}", case.id, attempt.repeat);
            self.progress.step(&format!("{name}: the schedule of a violation again"));
            let store = self.folder().join("replays").join(&name);
            let mut arguments = vec!["replay".to_owned(), path.display().to_string()];
            arguments.extend(brought(case));
            arguments.extend(["--store".to_owned(), store.display().to_string()]);
            arguments.extend(["--format".to_owned(), "json".to_owned()]);
            let deadline = Duration::from_secs_f64(attempt.took_ms.max(0.0) / 1e3) * 3 + GRACE;
            let ended = self.process(&name, &self.build.executable, arguments, deadline).await?;
            // A replay is called as what it repeats.
            let called = path.parent().and_then(Path::file_name).unwrap_or_default();
            let record = newest(&store.join(called)).and_then(|folder| outcome::read(&folder));
            let Some(record) = record.filter(|_| matches!(ended.status, Some(0..=2))) else { continue };
            let invalid = record.results.checks.iter().filter(|check| check.verdict == Verdict::Invalid);
            all.push(invalid.map(|check| check.name.clone()).collect());
        }
        Ok(all)
    }

    /// A smaller schedule, where nobody has one yet.
    async fn smaller(
        &self,
        case: &Case,
        fingerprint: &str,
        attempt: &Attempt,
        path: &Path,
    ) -> Result<Option<Shrunk>, Failure> {
        let budget = self.orders.suite.settings.shrink;
        let has_one = |line: &Line| match line {
            Line::Finding(found) => found.fingerprint == fingerprint && found.shrunk.is_some(),
            _ => false,
        };
        let has_one = self.store.borrow().lines.iter().any(has_one);
        if budget.is_zero() || has_one || self.interrupt.was_asked() {
            return Ok(None);
        }
        let name = format!("{}-{}-shrink", case.id, attempt.repeat);
        self.progress.step(&format!("{name}: making the schedule smaller"));
        let store = self.folder().join("smaller").join(&name);
        let mut arguments = vec!["shrink".to_owned(), path.display().to_string()];
        arguments.extend(brought(case));
        arguments.extend(["--budget".to_owned(), span::show(budget)]);
        arguments.extend(["--store".to_owned(), store.display().to_string()]);
        arguments.extend(["--format".to_owned(), "json".to_owned()]);
        let deadline = budget + Duration::from_secs_f64(attempt.took_ms.max(0.0) / 1e3) * 2 + GRACE;
        let ended = self.process(&name, &self.build.executable, arguments, deadline).await?;
        if ended.status != Some(0) {
            self.progress.say(&format!("{name}: it was not made smaller: {}", ended.last_words));
            return Ok(None);
        }
        let Ok(shrunk) = serde_json::from_str::<Shrunk>(&ended.output) else {
            self.progress.say(&format!("{name}: what it said is not understood"));
            return Ok(None);
        };
        let relative = self.store.borrow().relative(Path::new(&shrunk.folder));
        Ok(relative.map(|folder| Shrunk { folder, ..shrunk }))
    }

    /// What repeats a finding.
    fn command(&self, case: &Case, folder: &str) -> String {
        let path = self.store.borrow().path().join(folder);
        let mut words = vec!["harness".to_owned(), "replay".to_owned(), typed::word(&path.to_string_lossy())];
        words.extend(brought(case).iter().map(|word| typed::word(word)));
        words.join(" ")
    }

    /// Starts the command that the file names, with the finding on its standard input. That it fails is told
    /// and changes nothing.
    pub(super) fn tell(&self, found: &Found) {
        let Some((program, arguments)) = self.orders.suite.settings.on_finding.split_first() else { return };
        let nights = fold::nights(&self.store.borrow().lines);
        let all = fold::findings(&nights, &self.orders.suite.known);
        let finding = all.into_iter().find(|finding| finding.fingerprint == found.fingerprint);
        let outcome = serde_json::to_vec(&finding)
            .context("encoding it")
            .and_then(|body| hook(program, arguments, body, HOOK));
        if let Err(error) = outcome {
            self.progress.say(&format!("on_finding: {program} was not told: {error:#}"));
        }
    }
}

/// Runs it to its end, with this on its standard input, within this time.
fn hook(program: &str, arguments: &[String], body: Vec<u8>, within: Duration) -> anyhow::Result<()> {
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
            None => std::thread::park_timeout(GLANCE),
        }
    }
    // It was not waited for, so its group is its own still.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    group.map_or(Ok(()), |group| kill_process_group(group, Signal::KILL)).context("ending it")?;
    child.wait().context("ending it")?;
    anyhow::bail!("it did not end within {}", span::show(within))
}

/// The flags of a case that a replay takes from the command line alone.
fn brought(case: &Case) -> Vec<String> {
    let flags = case.flags.iter().filter(|(name, value)| must_be_typed(name, value));
    flags.flat_map(|(name, value)| [format!("--{name}"), value.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_does_not_read_its_input_is_ended_and_told() {
        let (arguments, more_than_a_pipe_holds) = (["600".to_owned()], vec![b' '; 1 << 20]);
        let told = hook("sleep", &arguments, more_than_a_pipe_holds, Duration::from_millis(50));
        assert!(told.expect_err("it was ended").to_string().contains("did not end within"));
    }

    #[test]
    fn a_hook_gets_all_of_its_input() {
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("copy");
        let arguments = ["-c".to_owned(), format!("cat >'{}'", copy.display())];
        hook("/bin/sh", &arguments, vec![b'x'; 1 << 20], HOOK).expect("it ended");
        assert_eq!(std::fs::metadata(copy).expect("written").len(), 1 << 20);
    }
}
