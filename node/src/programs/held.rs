//! A command that runs as long as a term lasts.

use std::time::Duration;

use anyhow::Context;
use node_client::recipes::{Term, TermEnd};

use super::child::{Child, Exit};
use super::say;
use super::signals::Signals;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The command ended, with this status.
    Itself(u8),
    /// The term was over first, and the command was ended.
    Lost(TermEnd),
    /// The command's guardian died, and the command with it.
    Unguarded,
    /// This program was told to end by a signal, and ended the command.
    Signalled(u8),
}

/// That a term is over is known so long after it stopped being certain.
const SETTLES: Duration = Duration::from_secs(1);

/// Runs a command until it ends, or the term does, or a signal comes. In each case nothing is left of it.
pub(super) async fn run(
    command: &[String],
    environment: &[(&str, String)],
    term: &Term,
    grace: Duration,
    signals: &mut Signals,
) -> anyhow::Result<Ended> {
    let Some(until) = term.certain_until() else { return Ok(Ended::Lost(term.over().await)) };
    let mut child =
        Child::start(command, environment, until, grace).context("failed to start the command")?;
    let mut moves = tokio::time::interval(Duration::from_millis(50));
    let mut told = until;
    let over = term.over();
    tokio::pin!(over);
    loop {
        tokio::select! {
            biased;
            exit = child.wait() => return Ok(match exit {
                Exit::Unguarded => Ended::Unguarded,
                Exit::Status(status) if term.is_certain() => Ended::Itself(status),
                // Its guardian ended it, while this process was stopped.
                Exit::Status(_) => {
                    let why = tokio::time::timeout(SETTLES, over).await;
                    Ended::Lost(why.unwrap_or(TermEnd::Uncertain))
                }
            }),
            why = &mut over => {
                return Ok(match end(&mut child, signals).await {
                    Some(status) => Ended::Signalled(status),
                    None => Ended::Lost(why),
                });
            }
            status = signals.next() => {
                end(&mut child, signals).await;
                return Ok(Ended::Signalled(status));
            }
            _ = moves.tick() => {
                if let Some(until) = term.certain_until().filter(|until| *until > told) {
                    told = until;
                    child.extend(until);
                }
            }
        }
    }
}

/// Ends a command and waits until nothing is left of it. A signal meanwhile has it killed at once, and its
/// exit status is given. A second one ends this process, which gives nothing up: others wait until its
/// session is over.
pub(super) async fn end(child: &mut Child, signals: &mut Signals) -> Option<u8> {
    let heard = tokio::select! {
        _ = child.finish() => return None,
        status = signals.next() => status,
    };
    tokio::select! {
        _ = child.kill() => {}
        status = signals.next() => {
            say(format_args!("the command does not end: what it holds is free when the session is over"));
            std::process::exit(i32::from(status));
        }
    }
    Some(heard)
}
