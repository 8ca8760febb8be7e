//! Transitions as lines of JSON on stdout, for whoever watches the process.
//!
//! A thread of its own writes them, so that a watcher who stops reading stops nobody else. The line leaves
//! within a thread switch of the transition; watchers stamp it when it arrives and trust no clock of ours.
//!
//! A leader also tells how long its proposals waited for their commit, once a second and when it leads no
//! more. Nothing of that is counted where nobody asked for events.

use std::io::Write;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use node_core::commit_times::{CommitTimes, Counted};
use node_core::io::{Event, SyncKind};
use node_wire::ids::{ServerId, SessionId, Zxid};
use serde::Serialize;

use crate::clock::Clock;
use crate::store::wait_for;

/// Lines that wait for a slow watcher; more are dropped, with a warning.
const MAX_WAITING: usize = 1024;

/// How long the end of the process waits for the last lines.
const FLUSH_PATIENCE: Duration = Duration::from_millis(500);

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Line {
    Started {
        id: u64,
        pid: u32,
        zxid: String,
    },
    Looking {
        round: u64,
        left: Option<u64>,
        reason: String,
        zxid: String,
    },
    Elected {
        leader: u64,
        round: u64,
        zxid: String,
    },
    Established {
        leader: u64,
        epoch: u32,
        zxid: String,
    },
    Serving {
        client: String,
        zxid: String,
    },
    Synced {
        kind: &'static str,
        peer: u64,
        zxid: String,
    },
    Halt {
        reason: String,
        zxid: String,
    },
    Expired {
        session: String,
        zxid: String,
    },
    /// Microseconds from proposal to commit, each with how many took so long.
    Commits {
        us: Counted,
    },
}

/// Where lines go; nowhere when nobody asked for them.
#[derive(Debug)]
pub(crate) struct Events {
    writer: Option<(SyncSender<Line>, thread::JoinHandle<()>)>,
    commits: CommitTimes,
}

impl Events {
    pub(crate) fn new(wanted: bool) -> std::io::Result<Self> {
        if !wanted {
            return Ok(Self { writer: None, commits: CommitTimes::default() });
        }
        let (sender, receiver) = mpsc::sync_channel::<Line>(MAX_WAITING);
        let thread = thread::Builder::new().name("events".to_owned()).spawn(move || {
            let mut stdout = std::io::stdout();
            for line in receiver {
                let Ok(mut text) = serde_json::to_string(&line) else { continue };
                text.push('\n');
                // One write for a line, so that none is ever seen in part. Nobody reads when it fails.
                if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { writer: Some((sender, thread)), commits: CommitTimes::default() })
    }

    /// This member, which leads, proposes a transaction.
    pub(crate) fn proposed(&mut self, zxid: Zxid, clock: &Clock) {
        if self.writer.is_some() {
            self.commits.proposed(zxid, clock.now().mono);
        }
    }

    /// This member, which leads, ends a session that was silent for too long.
    pub(crate) fn expired(&self, session: SessionId, zxid: Zxid) {
        self.say(Line::Expired { session: session.to_string(), zxid: zxid.to_string() });
    }

    /// What this member has committed by now.
    pub(crate) fn committed(&mut self, applied: Zxid, clock: &Clock) {
        if self.commits.is_waiting() {
            let now = clock.now().mono;
            self.commits.committed(applied, now);
            if let Some(us) = self.commits.due(now) {
                self.say(Line::Commits { us });
            }
        }
    }

    pub(crate) fn started(&self, id: ServerId, zxid: Zxid) {
        self.say(Line::Started { id: id.0, pid: std::process::id(), zxid: zxid.to_string() });
    }

    pub(crate) fn serving(&self, client: String, zxid: Zxid) {
        self.say(Line::Serving { client, zxid: zxid.to_string() });
    }

    pub(crate) fn halt(&self, reason: String, zxid: Zxid) {
        self.say(Line::Halt { reason, zxid: zxid.to_string() });
    }

    /// A transition that the core told.
    pub(crate) fn transition(&mut self, event: &Event, zxid: Zxid, now: Duration) {
        let zxid = zxid.to_string();
        if let Event::Looking { .. } = event
            && let Some(us) = self.commits.over(now)
        {
            self.say(Line::Commits { us });
        }
        self.say(match event {
            Event::Looking { round, left, reason } => {
                Line::Looking { round: round.0, left: left.map(|id| id.0), reason: reason.clone(), zxid }
            }
            Event::Elected { leader, round } => Line::Elected { leader: leader.0, round: round.0, zxid },
            Event::Established { leader, epoch } => {
                Line::Established { leader: leader.0, epoch: epoch.0, zxid }
            }
            Event::Synchronizing { learner, how } => {
                let kind = match how {
                    SyncKind::Diff => "diff",
                    SyncKind::Trunc => "trunc",
                    SyncKind::Snap => "snap",
                };
                Line::Synced { kind, peer: learner.0, zxid }
            }
            // For the operator's log alone.
            Event::Diverged { .. } | Event::ReadOnly => return,
        });
    }

    fn say(&self, line: Line) {
        if let Some((sender, _)) = &self.writer
            && sender.try_send(line).is_err()
        {
            tracing::warn!("nobody reads the events: one is lost");
        }
    }

    /// Lets the last lines out, for a bounded time.
    pub(crate) fn finish(self) {
        let Some((sender, thread)) = self.writer else { return };
        drop(sender);
        wait_for(&thread, FLUSH_PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_shape_that_watchers_read() {
        let line = Line::Looking {
            round: 3,
            left: Some(2),
            reason: "why".to_owned(),
            zxid: Zxid(1 << 32).to_string(),
        };
        assert_eq!(
            serde_json::to_string(&line).expect("json"),
            r#"{"event":"looking","round":3,"left":2,"reason":"why","zxid":"0x100000000"}"#
        );
        let line = Line::Commits { us: vec![(63, 2), (1055, 7)] };
        assert_eq!(
            serde_json::to_string(&line).expect("json"),
            r#"{"event":"commits","us":[[63,2],[1055,7]]}"#
        );
    }
}
