//! One client: takes what is due, sends it once, writes down what came of it.

use std::sync::Arc;

use bytestring::ByteString;
use checker::history::Event;
use node_client::{Client, OpError, Reply, Stat};
use node_wire::client::ErrorCode;
use runs::member::MemberId;
use tokio::sync::watch;
use workloads::{Op, Outcome};
use zookeeper_mapping::{Action, Answer, outcome, request};

use super::Shared;
use super::queue::{Due, Queue};
use super::seat::{Seat, Seated};
use crate::clock::RunNs;
use crate::num::index;

/// Expired operations that are written off between two attempts to connect.
const WRITE_OFF_AT_ONCE: usize = 64;

/// Of every so many clients of a member, one only reads.
///
/// Answers come in the order of the questions, so behind a write that can't be committed nothing is answered
/// any more on its connection. Only a client that never writes can be told something stale by a leader that
/// was deposed and does not know.
pub(crate) const READER_EACH: usize = 4;

/// A client.
pub struct LoadClient {
    shared: Shared,
    seat: Seat,
    process: u64,
    /// Whether it only reads.
    is_reader: bool,
}

impl LoadClient {
    /// The client number `slot`, whose home follows from that.
    pub fn new(shared: Shared, slot: u32) -> Self {
        let members = shared.cluster.members();
        let number = index(u64::from(slot));
        let seat = Seat::new(members[number % members.len()], members);
        let is_reader = (number / members.len()) % READER_EACH == READER_EACH - 1;
        Self { seat, shared, process: u64::from(slot), is_reader }
    }

    /// What to do next.
    fn next_op(&mut self) -> Op {
        let mut workload = self.shared.workload();
        if self.is_reader { workload.next_read() } else { workload.next_op(self.process) }
    }

    /// Works until the queue is closed or `stop` says so. Gives the id of its process, the last of its line.
    pub async fn run(mut self, queue: Arc<Queue>, stop: watch::Receiver<bool>) -> u64 {
        self.work(&queue, stop).await;
        // Its session is left to expire, and whoever judges sessions counts from here.
        if let Some(session) = self.seat.session() {
            self.note_session(&Op::abandon(), &Answer::Abandoned, None, session.id.0);
        }
        self.seat.forget();
        self.process
    }

    async fn work(&mut self, queue: &Queue, mut stop: watch::Receiver<bool>) {
        loop {
            if *stop.borrow() {
                return;
            }
            if self.seat.connection().is_none() {
                self.write_off(queue);
                let seated = tokio::select! {
                    seated = self.seat.attempt(&self.shared) => seated,
                    _ = stop.changed() => return,
                };
                self.note_seat(&seated);
                continue;
            }
            let clock = self.shared.clock;
            tokio::select! {
                due = queue.next(|| clock.now()) => match due {
                    Some(due) => self.serve(due).await,
                    None => return,
                },
                () = self.seat.broken() => {}
                () = self.seat.homesick() => {
                    let seated = self.seat.go_home(&self.shared).await;
                    self.note_seat(&seated);
                }
                _ = stop.changed() => return,
            }
        }
    }

    /// Without a connection, what expired is written down as never sent.
    fn write_off(&mut self, queue: &Queue) {
        for _ in 0..WRITE_OFF_AT_ONCE {
            let Some(due) = queue.next_expired(self.shared.clock.now()) else { return };
            self.never_sent(due, "no member took the client's session in time");
        }
    }

    fn never_sent(&mut self, due: Due, reason: &str) {
        let op = self.next_op();
        let answer = Answer::NotSent { reason: reason.to_owned() };
        self.note_invoke(&op, due.at, None);
        self.note_answer(&op, &answer, None);
    }

    async fn serve(&mut self, due: Due) {
        let Some((member, client)) = self.seat.connection() else {
            // Broken since the last look. The operation is due, and nobody can send it now.
            self.never_sent(due, "the connection broke before");
            return;
        };
        let (client, place) = (client.clone(), Place::of(member, client));
        if due.expired {
            self.never_sent(due, "no client was free in time");
            return;
        }
        let op = self.next_op();
        self.note_invoke(&op, due.at, Some(place));
        let action = request(&op);
        if action == Action::Abandon {
            // Silent from before the moment that is written down.
            self.seat.forget();
            drop(client);
            self.note_answer(&op, &Answer::Abandoned, Some(place));
            return;
        }
        let answer = send(&client, &action, self.shared.op_timeout).await;
        if must_leave(&answer) {
            self.seat.leave();
        }
        self.note_answer(&op, &answer, Some(place));
        if op.ends_session() {
            self.seat.forget();
            drop(client);
            if !matches!(answer, Answer::Closed { .. }) {
                // Closed or not, nothing more is heard of it from here.
                let (member, session) = (place.member, place.session);
                self.note_session(&Op::abandon(), &Answer::Abandoned, Some((member, None)), session);
            }
        }
    }

    /// Notes how a session began or ended on the way to a seat.
    fn note_seat(&mut self, seated: &Seated) {
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
        let mut workload = self.shared.workload();
        if !workload.records_sessions() {
            return;
        }
        let outcome = outcome(op, answer);
        workload.complete(self.process, op, &outcome);
        drop(workload);
        let process = self.process;
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

    fn note_invoke(&self, op: &Op, due: RunNs, place: Option<Place>) {
        let process = self.process;
        self.shared.recorder.record(|now| {
            let mut event = op.event(process, now);
            event.due = Some(due);
            Place::note(place, &mut event);
            event
        });
    }

    /// Notes what came of an operation; a process whose operation stays open is never heard of again.
    fn note_answer(&mut self, op: &Op, answer: &Answer, place: Option<Place>) {
        let outcome = outcome(op, answer);
        self.shared.workload().complete(self.process, op, &outcome);
        note_completion(&self.shared, &outcome, op, self.process, place);
        if outcome.retires() {
            self.process += u64::from(self.shared.concurrency);
        }
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
