//! The load's client that is a process of the user's own.
//!
//! It is where it is told: each request names the member. That somebody listens there is looked at before
//! the first request, so that a client does not stay at a member that is dead.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use checker::history::EventKind;
use tokio::net::TcpStream;
use workloads::outcome::NO_PROCESS;
use workloads::{Op, Outcome};

use super::lines;
use super::pool::Pool;
use super::process::{NoAnswer, Process};
use crate::Async;
use crate::client::{Client, Connected, Itself};

/// How much longer than it was told a client may be silent before its process is ended.
const GRACE: Duration = Duration::from_millis(500);

/// A worker.
pub(super) struct LinesClient {
    itself: Itself,
    pool: Arc<Pool>,
    /// None while it has none, or a request to it is open.
    process: Option<Process>,
    /// Where it is.
    at: Option<String>,
    /// The number of the last request.
    asked: u64,
}

impl LinesClient {
    pub(super) fn new(number: u64, pool: Arc<Pool>) -> Self {
        Self { itself: Itself::of(number), pool, process: None, at: None, asked: 0 }
    }

    /// Has a process within this time; its own one, or a new one.
    async fn has_process(&mut self, patience: Duration) -> bool {
        if !self.process.as_ref().is_some_and(Process::lives) {
            self.process = tokio::time::timeout(patience, self.pool.take()).await.ok();
        }
        self.process.is_some()
    }

    /// Notes the member that operations go to, once it accepts a connection: the client itself connects on
    /// its own.
    async fn connect_to(&mut self, member: SocketAddr, patience: Duration) -> Connected {
        // By itself first: a client that is not there says nothing of any member.
        if !self.has_process(patience).await {
            return Connected::Replaced;
        }
        match tokio::time::timeout(patience, TcpStream::connect(member)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Connected::Refused(error.to_string()),
            Err(_) => return Connected::Refused("no answer in time".to_owned()),
        }
        self.at = Some(self.pool.called(member));
        self.itself.is_connected()
    }

    async fn send(&mut self, op: &Op, patience: Duration) -> Outcome {
        let (Some(mut process), Some(member)) = (self.process.take(), self.at.clone()) else {
            return Outcome::not_sent(op, NO_PROCESS);
        };
        if !lines::is_sent(op, process.functions()) {
            self.process = Some(process);
            return Outcome::not_needed(op);
        }
        self.asked += 1;
        let line = lines::asked(op, self.asked, &member, patience);
        let outcome = match process.converse(&line, patience + GRACE).await {
            Ok(line) => match lines::outcome(op, self.asked, process.functions(), &line) {
                Ok(mut outcome) => match lines::served_by(&line) {
                    Ok(by) => {
                        outcome.claims.by = by.and_then(|member| self.pool.number_of(&member));
                        self.process = Some(process);
                        outcome
                    }
                    Err(why) => self.gives_no_answer(op, &process, &why, Some(&line)),
                },
                Err(why) => self.gives_no_answer(op, &process, &why, Some(&line)),
            },
            Err(NoAnswer::TooLong) => self.gives_no_answer(op, &process, "a line never ends", None),
            Err(NoAnswer::Ended) => Outcome::lost(op, "the client's process ended"),
            // The process goes: what it says later would be taken for another answer.
            Err(NoAnswer::Late) => Outcome::lost(op, "no answer in time"),
        };
        // Neither done nor refused: it was not sent, or nobody knows. The member is no place to stay.
        if outcome.kind != EventKind::Ok && outcome.refusal.is_none() {
            self.at = None;
        }
        outcome
    }

    fn gives_no_answer(&self, op: &Op, process: &Process, why: &str, line: Option<&[u8]>) -> Outcome {
        self.pool.fail(process.accused(why, line));
        Outcome::lost(op, "the client said what is no answer")
    }
}

impl Client for LinesClient {
    fn connect(&mut self, member: SocketAddr, patience: Duration) -> Async<'_, Connected> {
        Box::pin(self.connect_to(member, patience))
    }

    fn is_connected(&self) -> bool {
        self.at.is_some() && self.process.is_some()
    }

    fn broken(&self) -> Async<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn session(&self) -> Option<u64> {
        self.itself.session()
    }

    fn perform<'a>(&'a mut self, op: &'a Op, patience: Duration) -> Async<'a, Outcome> {
        Box::pin(self.send(op, patience))
    }

    fn leave(&mut self) {
        self.at = None;
    }

    fn forget(&mut self) {
        self.at = None;
        self.itself.forgets();
    }
}
