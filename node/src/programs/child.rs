//! A command under its guardian.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};

use super::guardian::boot_ms;

/// A command that runs until a moment that is moved on.
#[derive(Debug)]
pub(super) struct Child {
    guardian: tokio::process::Child,
    control: ChildStdin,
    grace: Duration,
}

/// A moment in milliseconds of the boot clock.
fn boot_at(at: Instant) -> u64 {
    let left = at.saturating_duration_since(Instant::now());
    boot_ms().saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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
        let mut guardian = Command::new(std::env::current_exe()?)
            .arg("guardian")
            .args([term.to_string(), term.saturating_add(ms(grace)).to_string()])
            .arg("--")
            .args(command)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .spawn()?;
        let control = guardian.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Self { guardian, control, grace })
    }

    /// The command may run until this moment.
    pub(super) async fn extend(&mut self, until: Instant) {
        let term = boot_at(until);
        self.say(&format!("until {term} {}\n", term.saturating_add(ms(self.grace)))).await;
    }

    /// Asks the command to end, and has it killed when the grace is over.
    pub(super) async fn end(&mut self) {
        let kill = boot_ms().saturating_add(ms(self.grace));
        self.say(&format!("end {kill}\n")).await;
    }

    async fn say(&mut self, line: &str) {
        // A guardian that is gone is noticed by its exit.
        let _ = self.control.write_all(line.as_bytes()).await;
        let _ = self.control.flush().await;
    }

    /// Waits for the command's end, and gives its exit status.
    pub(super) async fn wait(&mut self) -> u8 {
        self.guardian
            .wait()
            .await
            .ok()
            .and_then(|status: ExitStatus| status.code())
            .map_or(super::FAILED, |code| u8::try_from(code).unwrap_or(super::FAILED))
    }
}
