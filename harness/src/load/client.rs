//! One client: takes what is due, sends it once, writes down what came of it.

use std::sync::Arc;

use bytestring::ByteString;
use checker::history::Event;
use harness_core::load::{ClientId, Due, Step};
use node_client::{Client, OpError, Reply, Stat};
use node_wire::client::ErrorCode;
use runs::member::MemberId;
use tokio::sync::watch;
use workloads::{Op, Outcome};
use zookeeper_mapping::{Action, Answer, outcome, request};

use super::Shared;
use super::seat::{Seat, Seated};
use crate::clock::{RunClock, RunNs};

/// A client.
pub struct LoadClient {
    shared: Shared,
    seat: Seat,
    client: ClientId,
    /// Whether the rules know it as connected.
    is_seated: bool,
}

impl LoadClient {
    /// The client of that number.
    pub fn new(shared: Shared, client: ClientId) -> Self {
        Self { seat: Seat::default(), shared, client, is_seated: false }
    }

    /// Works until the load is over or `stop` says so.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        self.work(stop).await;
        // Its session is left to expire, and whoever judges sessions counts from here.
        if let Some(session) = self.seat.session() {
            self.note_session(&Op::abandon(), &Answer::Abandoned, None, session.id.0);
        }
        self.seat.forget();
    }

    async fn work(&mut self, mut stop: watch::Receiver<bool>) {
        let queue = Arc::clone(&self.shared.load);
        let clock = self.shared.clock;
        loop {
            if *stop.borrow() {
                return;
            }
            let step = if self.seat.connection().is_none() {
                if std::mem::take(&mut self.is_seated) {
                    queue.rules().lost(self.client, clock.now());
                }
                queue.ask(self.client, clock.now())
            } else {
                let homesick = queue.rules().homesick_at(self.client);
                tokio::select! {
                    turn = queue.turn() => match turn {
                        // Broken since the last look: the turn is somebody else's.
                        Some(_) if self.seat.connection().is_none() => continue,
                        Some(turn) => queue.take(turn, self.client, clock.now()),
                        None => return,
                    },
                    () = until(clock, homesick) => queue.ask(self.client, clock.now()),
                    () = self.seat.broken() => continue,
                    _ = stop.changed() => return,
                }
            };
            match step {
                Step::Do(due) => self.serve(due).await,
                Step::WriteOff(due, why) => self.never_sent(&due, why),
                Step::Connect(member) => {
                    let seated = tokio::select! {
                        seated = self.seat.sit(member, &self.shared) => seated,
                        _ = stop.changed() => return,
                    };
                    self.note_seat(&seated);
                }
                Step::Wait(_) if self.is_seated => {}
                Step::Wait(moment) => {
                    tokio::select! {
                        () = until(clock, moment) => {}
                        _ = stop.changed() => return,
                    }
                }
                Step::Leave => return,
            }
        }
    }

    fn never_sent(&mut self, due: &Due, reason: &str) {
        let answer = Answer::NotSent { reason: reason.to_owned() };
        self.note_invoke(due, None);
        self.note_answer(due, &answer, None);
    }

    async fn serve(&mut self, due: Due) {
        let Some((member, client)) = self.seat.connection() else {
            // Broken since the last look. The operation is this client's, and it can't send it now.
            self.never_sent(&due, "the connection broke before");
            return;
        };
        let (client, place) = (client.clone(), Place::of(member, client));
        self.note_invoke(&due, Some(place));
        let action = request(&due.op);
        if action == Action::Abandon {
            // Silent from before the moment that is written down.
            self.seat.forget();
            drop(client);
            self.note_answer(&due, &Answer::Abandoned, Some(place));
            return;
        }
        let answer = send(&client, &action, self.shared.op_timeout).await;
        if must_leave(&answer) {
            self.seat.leave();
        }
        self.note_answer(&due, &answer, Some(place));
        if due.op.ends_session() {
            self.seat.forget();
            drop(client);
            if !matches!(answer, Answer::Closed { .. }) {
                // Closed or not, nothing more is heard of it from here.
                let (member, session) = (place.member, place.session);
                self.note_session(&Op::abandon(), &Answer::Abandoned, Some((member, None)), session);
            }
        }
    }

    /// Tells the rules what came of an attempt to connect, and notes how a session began or ended on the way.
    fn note_seat(&mut self, seated: &Seated) {
        let now = self.shared.clock.now();
        let mut rules = self.shared.load.rules();
        if seated.is_seated() {
            rules.connected(self.client, now);
            self.is_seated = true;
        } else {
            rules.refused(self.client, now);
        }
        drop(rules);
        match seated {
            Seated::Opened { session, member, asked_at } => {
                let timeout_ms = i32::try_from(session.timeout.as_millis()).unwrap_or(i32::MAX);
                let opened = Answer::Opened { timeout_ms };
                let at = Some((*member, Some(*asked_at)));
                self.note_session(&Op::open(), &opened, at, session.id.0);
            }
            Seated::Expired { session, member } => {
                let at = Some((*member, None));
                self.note_session(&Op::abandon(), &Answer::Expired, at, session.id.0);
            }
            Seated::Resumed | Seated::Nowhere => {}
        }
    }

    /// Writes down what became of a session beside the workload's own operations, for workloads that judge sessions.
    fn note_session(
        &mut self,
        op: &Op,
        answer: &Answer,
        at: Option<(MemberId, Option<RunNs>)>,
        session: i64,
    ) {
        let mut rules = self.shared.load.rules();
        if !rules.workload().records_sessions() {
            return;
        }
        let (outcome, process) = (outcome(op, answer), rules.process(self.client));
        rules.workload_mut().complete(process, op, &outcome);
        drop(rules);
        let place = |event: &mut Event| {
            event.node = at.map(|(member, _)| member.0);
            event.session = Some(session.cast_unsigned());
        };
        self.shared.recorder.record(|now| {
            let since = at.and_then(|(_, since)| since).unwrap_or(now);
            let mut event = op.event(process, since);
            place(&mut event);
            event
        });
        self.shared.recorder.record(|now| {
            let mut event = outcome.event(op, process, now);
            place(&mut event);
            event
        });
    }

    fn note_invoke(&self, due: &Due, place: Option<Place>) {
        self.shared.recorder.record(|now| {
            let mut event = due.op.event(due.process, now);
            event.due = Some(due.at);
            Place::note(place, &mut event);
            event
        });
    }

    /// Notes what came of an operation.
    fn note_answer(&mut self, due: &Due, answer: &Answer, place: Option<Place>) {
        let outcome = outcome(&due.op, answer);
        self.shared.load.rules().completed(self.client, &due.op, &outcome);
        note_completion(&self.shared, &outcome, &due.op, due.process, place);
    }
}

/// Waits until a moment; for ever where there is none.
async fn until(clock: RunClock, moment: Option<RunNs>) {
    match moment {
        Some(at) => tokio::time::sleep_until(clock.instant(at).into()).await,
        None => std::future::pending().await,
    }
}

/// Where an operation was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    member: MemberId,
    session: i64,
}

impl Place {
    pub(super) fn of(member: MemberId, client: &Client) -> Self {
        Self { member, session: client.session().id.0 }
    }

    pub(super) fn note(place: Option<Self>, event: &mut Event) {
        if let Some(place) = place {
            event.node = Some(place.member.0);
            event.session = Some(place.session.cast_unsigned());
        }
    }
}

/// Writes a completion down.
pub(super) fn note_completion(
    shared: &Shared,
    outcome: &Outcome,
    op: &Op,
    process: u64,
    place: Option<Place>,
) {
    shared.recorder.record(|now| {
        let mut event = outcome.event(op, process, now);
        Place::note(place, &mut event);
        event
    });
}

/// Whether the server said that this connection is no longer the session's.
fn must_leave(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused { code: ErrorCode::SessionMoved | ErrorCode::SessionExpired, .. })
}

/// Sends a request once and waits for its answer. An answer that comes later is dropped by the client.
pub(super) async fn send(client: &Client, action: &Action, patience: std::time::Duration) -> Answer {
    match tokio::time::timeout(patience, dispatch(client, action)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => failed(error),
        Err(_) => Answer::Lost { reason: "no answer in time".to_owned() },
    }
}

async fn dispatch(client: &Client, action: &Action) -> Result<Answer, OpError> {
    let written = |reply: Reply<Stat>| Answer::Written {
        version: reply.value.version,
        mzxid: reply.value.mzxid,
        zxid: reply.zxid,
    };
    match action {
        Action::Create { path, data, mode } => {
            let reply = client.create(ByteString::from(path.as_str()), data.clone(), mode.flags()).await?;
            Ok(Answer::Created { path: reply.value, zxid: reply.zxid })
        }
        Action::SyncChildren { path } => {
            let reply = client.sync_then_children(ByteString::from(path.as_str())).await?;
            Ok(Answer::Children { names: reply.value, zxid: reply.zxid })
        }
        Action::SyncExists { path } => {
            let reply = client.sync_then_exists(ByteString::from(path.as_str())).await?;
            Ok(Answer::Exists { present: reply.value, zxid: reply.zxid })
        }
        Action::Delete { path } => {
            let reply = client.delete(ByteString::from(path.as_str()), -1).await?;
            Ok(Answer::Deleted { zxid: reply.zxid })
        }
        Action::Close => client.close_session().await.map(|reply| Answer::Closed { zxid: reply.zxid }),
        Action::Abandon => Ok(Answer::Abandoned),
        Action::SyncRead { path } => {
            let reply = client.sync_then_get(ByteString::from(path.as_str())).await?;
            Ok(Answer::Read {
                version: reply.value.stat.version,
                mzxid: reply.value.stat.mzxid,
                data: reply.value.data,
                zxid: reply.zxid,
            })
        }
        Action::Write { path, data } => {
            client.set_data(ByteString::from(path.as_str()), data.clone(), -1).await.map(written)
        }
        Action::CasWrite { path, data, expect } => {
            client.set_data(ByteString::from(path.as_str()), data.clone(), *expect).await.map(written)
        }
    }
}

fn failed(error: OpError) -> Answer {
    match error {
        OpError::Refused { code, zxid } => Answer::Refused { code, zxid: Some(zxid) },
        OpError::NotSent(reason) => Answer::NotSent { reason: reason.to_string() },
        OpError::Unknown { doubt } => Answer::Lost { reason: doubt.to_string() },
    }
}
