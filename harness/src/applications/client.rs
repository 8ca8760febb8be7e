//! The load's client that is an application: it has its process do each operation once, and takes another
//! process when that one is gone.
//!
//! A stopped application is not given up: that it goes on later, and believes that it still holds, is what is
//! tried. So an operation takes as long as it takes, within a patience that outlasts every fault.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use checker::history::{EventKind, Value};
use harness_core::fault::application::Thing;
use harness_systems::application::{Answered, Asked};
use harness_systems::external::lines;
use harness_systems::{Client, Connected};
use runs::member::MemberId;
use rustix::process::Signal;
use tokio::net::TcpStream;
use workloads::op::Body;
use workloads::{Claims, Op, Outcome, Refusal};

use super::Applications;
use super::process::{Answers, Heard, Held, Process};

/// What a client's methods give.
type Async<'a, T> = harness_systems::Async<'a, T>;

/// The process of a client, and what it answers.
struct Own {
    process: Arc<Process>,
    answers: Answers,
}

/// The client.
pub struct ApplicationClient {
    all: Arc<Applications>,
    own: Option<Own>,
    /// The number of the operation under way, or of the last one.
    asked: u64,
    /// The member that it spoke with last, or that it is told.
    member: Option<MemberId>,
    /// Whether it is to stay there. Where an application of our own goes is its own affair.
    stays: bool,
}

impl ApplicationClient {
    /// One without a process yet.
    pub fn new(all: Arc<Applications>) -> Self {
        Self { all, own: None, asked: 0, member: None, stays: false }
    }

    /// Starts a process where there is none, and waits until it is ready.
    async fn await_process(&mut self, patience: Duration) -> Connected {
        let refused = |why: String| Connected::Refused(why);
        if self.own.as_ref().is_some_and(|own| own.process.how_it_ended().is_some()) {
            self.own = None;
        }
        let own = match &mut self.own {
            Some(own) if own.process.is_ready() => return Connected::Resumed,
            Some(own) => own,
            None => match self.all.spawn() {
                Ok((process, answers)) => self.own.insert(Own { process, answers }),
                Err(error) => return refused(format!("{error:#}")),
            },
        };
        let mut heard = own.process.heard();
        let spoke = heard.wait_for(|heard| *heard != Heard::Nothing);
        match tokio::time::timeout(patience, spoke).await {
            Ok(Ok(heard)) if *heard == Heard::Ready => Connected::Opened {
                session: own.process.number(),
                timeout: self.all.settings().session_timeout,
            },
            Ok(_) => refused("the application ended".to_owned()),
            // It is waited for again.
            Err(_) => refused("the application is not ready yet".to_owned()),
        }
    }

    /// Takes a member, where the application is told which, once it accepts a connection. Then waits for the
    /// process.
    async fn connect_to(&mut self, address: SocketAddr, patience: Duration) -> Connected {
        if self.all.are_told_the_member() {
            match tokio::time::timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Connected::Refused(error.to_string()),
                Err(_) => return Connected::Refused("nobody answers".to_owned()),
            }
            self.member = self.all.member_at(address);
            self.stays = self.member.is_some();
        }
        self.await_process(patience).await
    }

    async fn send(&mut self, op: &Op, patience: Duration) -> Outcome {
        self.asked += 1;
        let Some(line) = self.line(op, patience) else { return Outcome::not_sent(op, "it is at no member") };
        let Some(own) = &mut self.own else { return Outcome::not_sent(op, "no application") };
        // Whoever leaves a barrier is in it until all are ready.
        let gives_up = matches!(op.body, Body::Release { .. } | Body::Acknowledge { .. });
        if own.process.ask(&line, gives_up).is_err() {
            return Outcome::not_sent(op, "the application ended");
        }
        if matches!(op.body, Body::Store { .. }) {
            own.process.writes();
        }
        let wait = patience + self.all.settings().patience;
        let Ok(answered) = tokio::time::timeout(wait, self.answer(op)).await else {
            if let Some(own) = self.own.take() {
                own.process.signal(Signal::KILL);
            }
            return Outcome::lost(op, "the application did not answer");
        };
        let Some(outcome) = answered else {
            self.own = None;
            return Outcome::lost(op, "the application ended");
        };
        // Neither done nor refused: it was not sent, or nobody knows. The member is no place to stay.
        self.stays &= outcome.kind == EventKind::Ok || outcome.refusal.is_some();
        self.note(op, &outcome);
        outcome
    }

    /// What asks for it; none where it would have to be told a member and is at none.
    fn line(&self, op: &Op, patience: Duration) -> Option<Vec<u8>> {
        if self.all.are_told_the_member() {
            let own = self.own.as_ref()?;
            let entrance = self.all.entrance(own.process.link(), self.member.filter(|_| self.stays)?)?;
            return Some(lines::asked(op, self.asked, &entrance.to_string(), patience));
        }
        let timeout_ms = crate::clock::whole_milliseconds(patience);
        let asked = Asked { id: self.asked, f: op.function(), key: op.key, value: op.value(), timeout_ms };
        // A struct of numbers and words always becomes JSON.
        let mut line = serde_json::to_vec(&asked).unwrap_or_default();
        line.push(b'\n');
        Some(line)
    }

    /// Waits for the answer; none when the application ended before.
    async fn answer(&mut self, op: &Op) -> Option<Outcome> {
        loop {
            let own = self.own.as_mut()?;
            let line = own.answers.recv().await?;
            if self.all.are_told_the_member() {
                let number = own.process.number();
                return Some(self.all.judged(op, self.asked, &line).unwrap_or_else(|why| {
                    self.all.fail(number, &why, &line);
                    Outcome::lost(op, "the client said what is no answer")
                }));
            }
            match serde_json::from_slice::<Answered>(&line) {
                Ok(answered) if answered.id == self.asked => return Some(self.told(op, &answered)),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "an application said what is no answer"),
            }
        }
    }

    /// Notes what an application of ours told beside its answer.
    fn told(&mut self, op: &Op, answered: &Answered) -> Outcome {
        if let Some(own) = &self.own {
            self.all.note(own.process.number(), answered);
        }
        let members = &self.all.settings().members;
        let member = answered.member.and_then(|at| members.get(at)).map(|(member, _)| *member);
        self.member = member.or(self.member);
        self.outcome(op, answered)
    }

    /// What an answer means. Moments come on the clock of the run.
    fn outcome(&self, op: &Op, answered: &Answered) -> Outcome {
        let moment = |ns: i64| i64::try_from(self.all.run_ns(ns)).unwrap_or(i64::MAX);
        let told = |list: Vec<i64>, place: Option<i64>| {
            let claims = Claims { version: place, ..Claims::default() };
            Outcome { claims, ..Outcome::told(Value::List(list.into()), None) }
        };
        match (answered.kind, &op.body, &answered.value) {
            (EventKind::Ok, Body::Acquire, Value::List(list)) if list.len() == 3 => {
                told(vec![list[0], moment(list[1]), moment(list[2])], None)
            }
            (EventKind::Ok, Body::Store { .. }, Value::List(list)) if list.len() == 4 => {
                let Some(judged) = answered.judged else { return Outcome::wrong_answer(op) };
                let at = i64::try_from(judged.at).unwrap_or(i64::MAX);
                told(vec![list[0], list[1], moment(list[2]), moment(list[3]), at], Some(judged.place))
            }
            (EventKind::Ok, Body::Dequeue, Value::List(list)) if list.len() == 4 => {
                told(vec![list[0], list[1], moment(list[2]), moment(list[3])], None)
            }
            (
                EventKind::Ok,
                Body::Release { .. }
                | Body::Enqueue { .. }
                | Body::Acknowledge { .. }
                | Body::Enter { .. }
                | Body::Leave { .. },
                Value::One(_),
            ) => Outcome::told(op.value(), None),
            (EventKind::Fail, ..) => {
                let error = answered.error.clone().unwrap_or_default();
                Outcome {
                    refusal: Some(Refusal::Other),
                    ..Outcome::without_result(EventKind::Fail, op, error)
                }
            }
            (EventKind::Info, ..) => {
                let error = answered.error.clone().unwrap_or_default();
                Outcome::without_result(op.unknown_fate(), op, error)
            }
            _ => Outcome::wrong_answer(op),
        }
    }

    /// What it holds from here on.
    fn note(&self, op: &Op, outcome: &Outcome) {
        let Some(own) = &self.own else { return };
        match (&op.body, outcome.kind, &outcome.value) {
            (Body::Acquire, EventKind::Ok, Value::List(list)) => {
                let token = list[0].unsigned_abs();
                own.process.holds(Some(Held { thing: Thing::Lock, key: op.key, token }));
            }
            (Body::Dequeue, EventKind::Ok, Value::List(list)) if list.len() == 4 => {
                let token = list[1].unsigned_abs();
                own.process.holds(Some(Held { thing: Thing::Element, key: op.key, token }));
            }
            // What it is in has no token; the round is as good to tell one visit from another.
            (Body::Enter { round }, EventKind::Ok, _) => {
                let token = round.unsigned_abs();
                own.process.holds(Some(Held { thing: Thing::Round, key: op.key, token }));
            }
            // Work while it holds.
            (Body::Store { .. }, EventKind::Ok, _)
            | (Body::Enqueue { .. }, EventKind::Ok | EventKind::Fail, _) => {}
            _ => own.process.holds(None),
        }
    }
}

impl Client for ApplicationClient {
    fn connect(&mut self, member: SocketAddr, patience: Duration) -> Async<'_, Connected> {
        Box::pin(self.connect_to(member, patience))
    }

    fn is_connected(&self) -> bool {
        let is_somewhere = self.stays || !self.all.are_told_the_member();
        is_somewhere && self.own.as_ref().is_some_and(|own| own.process.is_ready())
    }

    fn broken(&self) -> Async<'_, ()> {
        Box::pin(async {
            let Some(own) = &self.own else { return std::future::pending().await };
            let mut heard = own.process.heard();
            let _ = heard.wait_for(|heard| matches!(heard, Heard::Ended(_))).await;
        })
    }

    /// The number of its process, which no other one of the run has.
    fn session(&self) -> Option<u64> {
        self.own.as_ref().map(|own| own.process.number())
    }

    fn member(&self) -> Option<MemberId> {
        self.member
    }

    fn perform<'a>(&'a mut self, op: &'a Op, patience: Duration) -> Async<'a, Outcome> {
        Box::pin(self.send(op, patience))
    }

    fn leave(&mut self) {
        self.stays = false;
    }

    fn forget(&mut self) {
        self.stays = false;
        if let Some(own) = self.own.take() {
            own.process.dismiss();
        }
    }
}
