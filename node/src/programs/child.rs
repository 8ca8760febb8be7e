//! A command under its guardians.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::guardian::{boot_ms, own_program};
use super::{family, say};

/// The guardian is not waited for longer than this behind the moment at which it should have killed.
const OVERDUE: Duration = Duration::from_millis(250);

/// So often it is looked what is left of a command that lost its guardian.
const SWEEP: Duration = Duration::from_millis(5);

/// After so many looks it is said who does not end.
const STUBBORN: u32 = 200;

/// Whose descendants are not swept, by their numbers: the guardians that live.
static GUARDIANS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// How a command ended. In each case nothing is left of it and of what it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// With this status.
    Status(u8),
    /// Its guardian died, and the command with it.
    Unguarded,
}

/// A command that runs until a moment that is moved on. When this is dropped, it is killed.
#[derive(Debug)]
pub(super) struct Child {
    guardian: tokio::process::Child,
    pid: u32,
    /// The newest of what the guardian must hear.
    newest: watch::Sender<String>,
    writer: JoinHandle<()>,
    grace: Duration,
    ends: bool,
}

/// A moment in milliseconds of the boot clock.
fn boot_at(at: Instant) -> u64 {
    let left = at.saturating_duration_since(Instant::now());
    boot_ms().saturating_add(ms(left))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Tells the guardian the newest. One that is stopped reads nothing, and holds up nobody but this.
async fn write(mut newest: watch::Receiver<String>, mut control: ChildStdin) {
    while newest.changed().await.is_ok() {
        let line = newest.borrow_and_update().clone();
        if control.write_all(line.as_bytes()).await.is_err() {
            // It is gone, which is noticed by its exit.
            return;
        }
    }
}

fn guardians() -> std::sync::MutexGuard<'static, BTreeSet<u32>> {
    GUARDIANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of what a command leaves behind whose guardians died. Children that it has
/// already, from before it became this program, are nobody's to end.
///
/// # Errors
/// When the system refuses, or `/proc` can't be read.
pub(super) fn prepare() -> std::io::Result<()> {
    family::adopt()?;
    let before = family::descendants()?;
    guardians().extend(before.iter().filter_map(|it| u32::try_from(it.pid.as_raw_nonzero().get()).ok()));
    Ok(())
}

impl Child {
    /// Starts a command that is asked to end at this moment, and is killed a grace later.
    ///
    /// # Errors
    /// When the guardian can't be started.
    pub(super) fn start(
        command: &[String],
        environment: &[(&str, String)],
        until: Instant,
        grace: Duration,
    ) -> std::io::Result<Self> {
        let term = boot_at(until);
        let mut guardian = Command::new(own_program())
            .arg0("node")
            .args(["guardian", "--outer"])
            .args([term.to_string(), term.saturating_add(ms(grace)).to_string()])
            .arg("--")
            .args(command)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .spawn()?;
        let control = guardian.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let pid = guardian.id().ok_or(std::io::ErrorKind::BrokenPipe)?;
        guardians().insert(pid);
        let (newest, told) = watch::channel(String::new());
        let writer = tokio::spawn(write(told, control));
        Ok(Self { guardian, pid, newest, writer, grace, ends: false })
    }

    /// The command may run until this moment.
    pub(super) fn extend(&mut self, until: Instant) {
        if !self.ends {
            let term = boot_at(until);
            self.say(format!("until {term} {}\n", term.saturating_add(ms(self.grace))));
        }
    }

    /// Asks the command to end, and has it killed so much later.
    fn end(&mut self, grace: Duration) {
        self.ends = true;
        self.say(format!("end {}\n", boot_ms().saturating_add(ms(grace))));
    }

    fn say(&mut self, line: String) {
        self.newest.send_if_modified(|newest| {
            let differs = *newest != line;
            *newest = line;
            differs
        });
    }

    /// Waits for the end of the command, and of all that it started. Nothing is lost when the wait is given
    /// up.
    pub(super) async fn wait(&mut self) -> Exit {
        let status = self.guardian.wait().await.ok().and_then(|status| status.code());
        guardians().remove(&self.pid);
        match status {
            Some(code) => Exit::Status(u8::try_from(code).unwrap_or(super::FAILED)),
            None => {
                bury().await;
                Exit::Unguarded
            }
        }
    }

    /// Ends the command: asks it, and kills it a grace later, with its guardian if that does not do it. Gives
    /// when nothing is left of it. Nothing is lost when the wait is given up.
    pub(super) async fn finish(&mut self) -> Exit {
        let grace = self.grace;
        if !self.ends {
            self.end(grace);
        }
        self.overdue(grace).await
    }

    /// Kills the command at once, and gives when nothing is left of it.
    pub(super) async fn kill(&mut self) -> Exit {
        self.end(Duration::ZERO);
        self.overdue(Duration::ZERO).await
    }

    async fn overdue(&mut self, grace: Duration) -> Exit {
        match tokio::time::timeout(grace + OVERDUE, self.wait()).await {
            Ok(exit) => exit,
            Err(_) => {
                // It is stopped, or something that it may not kill is left. Either is seen to from here.
                let _ = self.guardian.start_kill();
                self.wait().await
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The guardian's input ends, so it kills the command, also if this did not come to write.
        self.writer.abort();
        guardians().remove(&self.pid);
    }
}

/// Ends all that was left behind by guardians which died, and gives when it is gone.
async fn bury() {
    let (mut looks, mut empty) = (0, 0);
    // A look takes time, and one process may begin and another end in it. So it takes two.
    while empty < 2 {
        let spared: Vec<u32> = guardians().iter().copied().collect();
        match family::sweep(&spared) {
            Ok(left) => {
                looks += 1;
                empty = if left.is_empty() { empty + 1 } else { 0 };
                if let Some(first) = left.first().filter(|_| looks == STUBBORN) {
                    let pid = first.pid.as_raw_nonzero();
                    say(format_args!("process {pid} is not ended by SIGKILL: waiting for it"));
                }
            }
            Err(error) => {
                say(format_args!("failed to look for what the command left behind: {error}"));
                return;
            }
        }
        tokio::time::sleep(SWEEP).await;
    }
}
