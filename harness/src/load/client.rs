//! One client: takes what is due, sends it once, writes down what came of it.

use std::sync::Arc;

use bytestring::ByteString;
use checker::history::Event;
use node_client::{Client, OpError, Reply, Stat};
use node_wire::client::ErrorCode;
use node_wire::ids::ServerId;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;
use workloads::{Action, Answer, Completion, Invocation};

use super::Shared;
use super::queue::{Due, Queue};
use super::seat::Seat;
use crate::clock::RunNs;
use crate::num::index;
use crate::seed;

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
    /// Its questions, when it only reads.
    reads: Option<(Vec<Invocation>, ChaCha8Rng)>,
}

impl LoadClient {
    /// The client number `slot`, whose home follows from that.
    pub fn new(shared: Shared, slot: u32, seed: u64) -> Self {
        let members = shared.cluster.members();
        let number = index(u64::from(slot));
        let seat = Seat::new(members[number % members.len()], members);
        let is_reader = (number / members.len()) % READER_EACH == READER_EACH - 1;
        let reads = is_reader
            .then(|| (shared.workload().final_reads(), seed::stream(seed, &format!("reader {slot}"))));
        Self { seat, shared, process: u64::from(slot), reads }
    }

    /// What to do next.
    fn next_op(&mut self) -> Invocation {
        let read = self.reads.as_mut().and_then(|(reads, rng)| reads.choose(rng).cloned());
        read.unwrap_or_else(|| self.shared.workload().next_op(self.process))
    }

    /// Works until the queue is closed or `stop` says so. Gives the id of its process, the last of its line.
    pub async fn run(mut self, queue: Arc<Queue>, mut stop: watch::Receiver<bool>) -> u64 {
        loop {
            if *stop.borrow() {
                return self.process;
            }
            if self.seat.connection().is_none() {
                self.write_off(&queue);
                tokio::select! {
                    () = self.seat.attempt(&self.shared) => {}
                    _ = stop.changed() => return self.process,
                }
                continue;
            }
            let clock = self.shared.clock;
            tokio::select! {
                due = queue.next(|| clock.now()) => match due {
                    Some(due) => self.serve(due).await,
                    None => return self.process,
                },
                () = self.seat.broken() => {}
                () = self.seat.homesick() => self.seat.go_home(&self.shared).await,
                _ = stop.changed() => return self.process,
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
        let invocation = self.next_op();
        let answer = Answer::NotSent { reason: reason.to_owned() };
        self.note_invoke(&invocation, due.at, None);
        self.note_answer(&invocation, &answer, None);
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
        let invocation = self.next_op();
        self.note_invoke(&invocation, due.at, Some(place));
        let answer = send(&client, &invocation.action, self.shared.op_timeout).await;
        if must_leave(&answer) {
            self.seat.leave();
        }
        self.note_answer(&invocation, &answer, Some(place));
    }

    fn note_invoke(&self, invocation: &Invocation, due: RunNs, place: Option<Place>) {
        let process = self.process;
        self.shared.recorder.record(|now| {
            let mut event = invocation.event(process, now);
            event.due = Some(due);
            Place::note(place, &mut event);
            event
        });
    }

    /// Notes what came of an operation; a process whose operation stays open is never heard of again.
    fn note_answer(&mut self, invocation: &Invocation, answer: &Answer, place: Option<Place>) {
        let completion = self.shared.workload().complete(self.process, invocation, answer);
        note_completion(&self.shared, &completion, invocation, self.process, place);
        if completion.retires() {
            self.process += u64::from(self.shared.concurrency);
        }
    }
}

/// Where an operation was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    member: ServerId,
    session: i64,
}

impl Place {
    pub(super) fn of(member: ServerId, client: &Client) -> Self {
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
    completion: &Completion,
    invocation: &Invocation,
    process: u64,
    place: Option<Place>,
) {
    shared.recorder.record(|now| {
        let mut event = completion.event(invocation, process, now);
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
        Action::Create { path, data } => {
            let reply = client.create(ByteString::from(path.as_str()), data.clone(), 0).await?;
            Ok(Answer::Created { zxid: reply.zxid })
        }
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
