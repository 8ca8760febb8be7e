//! A command that runs as long as a term lasts.

use std::time::Duration;

use anyhow::Context;
use node_client::recipes::Term;

use super::child::Child;
use super::signals::Signals;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The command ended, with this status.
    Itself(u8),
    /// The term was over first, and the command was ended.
    Lost,
    /// This program was told to end by a signal, and ended the command.
    Told(u8),
}

/// Runs a command until it ends, or the term does, or a signal comes. The command is ended in each case.
pub(super) async fn run(
    command: &[String],
    environment: &[(&str, String)],
    term: &Term,
    grace: Duration,
    signals: &mut Signals,
) -> anyhow::Result<Ended> {
    let Some(until) = term.certain_until() else { return Ok(Ended::Lost) };
    let mut child =
        Child::start(command, environment, until, grace).context("failed to start the command")?;
    let mut moves = tokio::time::interval(Duration::from_millis(50));
    let mut told = until;
    let over = term.over();
    tokio::pin!(over);
    loop {
        tokio::select! {
            biased;
            status = child.wait() => {
                let lost = !term.is_certain();
                return Ok(if lost { Ended::Lost } else { Ended::Itself(status) });
            }
            why = &mut over => {
                tracing::warn!(?why, token = %term.token(), "the term is over: ending the command");
                child.end().await;
                child.wait().await;
                return Ok(Ended::Lost);
            }
            status = signals.next() => {
                child.end().await;
                child.wait().await;
                return Ok(Ended::Told(status));
            }
            _ = moves.tick() => {
                if let Some(until) = term.certain_until().filter(|until| *until > told) {
                    told = until;
                    child.extend(until).await;
                }
            }
        }
    }
}
