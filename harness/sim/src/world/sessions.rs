//! What is known of sessions beside the members: whom each has heard, and when, and what each client can prove.
//!
//! A session may end in two ways: its client closes it, or the leader has not heard of it for the whole time-out.
//! The second is judged twice. Inside: at the moment in which a leader proposes the end of a session, nothing that
//! came to it since it was established spoke of that session for as long. Outside: a client that is told that its
//! session expired was not answered a write that it sent within the time-out before; a write goes through the
//! leader, so that it was heard of, and a new leader gives every session its whole time-out again.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use node_core::Plant;
use node_core::io::{ClientId, Event, Input, StoreOp};
use node_wire::ids::{ServerId, SessionId};
use node_wire::quorum::{PacketType, PingTouches};
use node_wire::txn::{Entry, Txn};

use super::World;
use crate::client::{self, Purpose};
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::time::Time;

/// A member's clock runs fast by less than this part of a second in a second.
const FAST: u64 = 20;

/// How much of a suspension a member takes for time in which it was awake, and more.
const SUSPENDED_US: u64 = 50_000;

/// What a leader could know of sessions, by its own monotonic clock.
#[derive(Clone, Debug, Default)]
struct Ear {
    /// Since when it leads an epoch that stands.
    since: Duration,
    /// When it was last told of each session.
    heard: BTreeMap<SessionId, Duration>,
}

/// What a client can prove of its session.
#[derive(Clone, Copy, Debug, Default)]
struct Proof {
    /// When the operation under way was sent.
    sent: Time,
    /// When the last write that was answered was sent, in the present session.
    alive: Option<Time>,
}

/// Whom each member has heard, and what each client can prove.
#[derive(Clone, Debug)]
pub(super) struct Ears {
    members: Vec<Ear>,
    proofs: Vec<Proof>,
    /// The session of each client's connection, as the member answered.
    session_of: BTreeMap<ClientId, SessionId>,
}

impl Ears {
    pub(super) fn new(members: usize, clients: usize) -> Self {
        Self {
            members: vec![Ear::default(); members],
            proofs: vec![Proof::default(); clients],
            session_of: BTreeMap::new(),
        }
    }
}

fn duration(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0))
}

impl<P: Plant> World<P> {
    /// Before an input reaches a core: what it tells of sessions.
    pub(super) fn hear(&mut self, host: HostIndex, input: &Input) {
        match input {
            Input::ClientRequest { client, request } => {
                let Some(session) = self.ears.session_of.get(client).copied() else { return };
                self.judge.asked(session, request.xid, request.op);
                let mono = self.mono(host);
                self.ears.members[host].heard.insert(session, mono);
            }
            Input::Packet { packet, .. } if packet.kind == PacketType::Ping => {
                let data = packet.data.clone().unwrap_or_default();
                let Ok(PingTouches(touches)) = PingTouches::decode(data) else { return };
                let mono = self.mono(host);
                let ear = &mut self.ears.members[host];
                ear.heard.extend(touches.into_iter().map(|(session, _)| (session, mono)));
            }
            _ => {}
        }
    }

    fn mono(&self, host: HostIndex) -> Duration {
        self.hosts[host].clock.read(self.now).mono
    }

    /// A member's epoch stands.
    pub(super) fn hear_of_epoch(&mut self, host: HostIndex, event: &Event) {
        if let Event::Established { leader, .. } = event
            && *leader == self.server(host)
        {
            self.ears.members[host] = Ear { since: self.mono(host), heard: BTreeMap::new() };
        }
    }

    /// A leader logs a proposal of its own: when it ends a session that no client asked to end, it was silent.
    pub(super) fn check_expiry(&mut self, host: HostIndex, op: &StoreOp) {
        let StoreOp::Append(entry) = op else { return };
        let Some(timeout_ms) = self.expires(entry) else { return };
        let session = entry.header.session;
        let ear = &self.ears.members[host];
        let last = ear.heard.get(&session).copied().unwrap_or_default().max(ear.since);
        let silence = self.mono(host).saturating_sub(last);
        if silence < duration(timeout_ms) {
            let ServerId(id) = self.server(host);
            let silence_ms = silence.as_millis();
            let sentence = format!(
                "server {id} ends session {session} {silence_ms} ms after it was heard of; its time-out is {timeout_ms} ms"
            );
            self.judged(Err((Rule::Expiry, sentence)));
        }
    }

    /// The time-out of the session that this entry ends without its client's wish.
    fn expires(&self, entry: &Entry) -> Option<i32> {
        let by_nobody = entry.header.cxid == 0 && matches!(entry.txn, Txn::CloseSession { .. });
        if by_nobody { self.judge.session_timeout_ms(entry.header.session) } else { None }
    }

    /// A member writes to a client: the first frame names the session, the others are answers.
    pub(super) fn overhear(&mut self, host: HostIndex, client: ClientId, frame: &Bytes) {
        let Some(session) = self.ears.session_of.get(&client).copied() else {
            let response = client::connect_response(frame.clone());
            if response.timeout_ms > 0 {
                self.ears.session_of.insert(client, response.session);
            }
            return;
        };
        let (header, _) = client::reply(frame.clone());
        let finding = self.judge.replies(host, session, header);
        self.judged(finding);
    }

    /// A client sends an operation.
    pub(super) fn prove_sent(&mut self, client: usize) {
        let says_goodbye = self.clients[client]
            .awaited
            .back()
            .is_some_and(|(_, what)| matches!(what, Purpose::Goodbye | Purpose::Close));
        let proof = &mut self.ears.proofs[client];
        proof.sent = self.now;
        if says_goodbye {
            // It may be heard, and its answer not.
            proof.alive = None;
        }
    }

    /// A client is answered.
    pub(super) fn prove_answered(&mut self, client: usize, purpose: Purpose) {
        if matches!(purpose, Purpose::Write | Purpose::Create | Purpose::Delete) {
            let proof = &mut self.ears.proofs[client];
            proof.alive = Some(proof.sent);
        }
    }

    /// A client begins a session of its own.
    pub(super) fn prove_nothing(&mut self, client: usize) {
        self.ears.proofs[client].alive = None;
    }

    /// A client is told that its session expired.
    pub(super) fn check_told_expired(&mut self, client: usize) {
        let proof = self.ears.proofs[client];
        let (Some(alive), Some(session)) = (proof.alive, &self.clients[client].session) else { return };
        if !self.judge.session_began(session.id) {
            // It lived on one member alone, and this is another.
            return;
        }
        let silence_us = self.now.since(alive);
        let longest_us = silence_us + silence_us / FAST + self.counters.suspensions * SUSPENDED_US;
        if Duration::from_micros(longest_us) < duration(session.timeout_ms) {
            let sentence = format!(
                "session {} was told to be expired {} ms after a write of it that was answered; its time-out is {} ms",
                session.id,
                silence_us / 1000,
                session.timeout_ms
            );
            self.convict(Rule::Sessions, sentence);
        }
    }
}
