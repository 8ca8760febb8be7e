//! A command of the shell that answers yes or no, in time.

use std::time::{Duration, Instant};

use super::child::{Child, Exit};
use super::signals::Signals;
use super::{held, say};

/// A command of the shell under guardians of its own. When this is dropped, it is killed with all that it
/// started.
#[derive(Debug)]
pub(super) struct Shell {
    /// What it is for.
    name: &'static str,
    /// None where it could not be started.
    child: Option<Child>,
    until: Instant,
    within: Duration,
}

impl Shell {
    /// Starts it. When the time is over it is asked to end, and a grace later it is killed.
    pub(super) fn start(
        name: &'static str,
        command: &str,
        environment: &[(&str, String)],
        within: Duration,
        grace: Duration,
    ) -> Self {
        let until = Instant::now() + within;
        let command = ["sh", "-c", command].map(str::to_owned);
        let child = Child::start(&command, environment, until, grace)
            .inspect_err(|error| say(format_args!("failed to start the {name} command: {error}")));
        Self { name, child: child.ok(), until, within }
    }

    /// Waits for its answer: true if it exits with 0 in time. Nothing is lost when the wait is given up.
    pub(super) async fn succeeds(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        let exit = match tokio::time::timeout_at(self.until.into(), child.wait()).await {
            Ok(exit) => exit,
            Err(_) => child.finish().await,
        };
        let in_time = Instant::now() < self.until;
        match exit {
            Exit::Status(0) if in_time => true,
            _ => {
                if !in_time {
                    let within = super::reach::shown(self.within);
                    say(format_args!("the {} command took longer than {within} and was ended", self.name));
                }
                false
            }
        }
    }

    /// Ends it, and waits until nothing is left of it. Gives an exit status where a signal came meanwhile.
    pub(super) async fn end(&mut self, signals: &mut Signals) -> Option<u8> {
        let child = self.child.as_mut()?;
        held::end(child, signals).await
    }
}
