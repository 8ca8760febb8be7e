//! What is known of sessions beside the members: whom each has heard, and when, and what each client can
//! prove.
//!
//! A session may end in two ways: its client closes it, or the leader has not heard of it for the whole
//! time-out. The second is judged twice. Inside: at the moment in which a leader proposes the end of a
//! session, nothing that came to it since it was established spoke of that session for as long. Outside: a
//! client that is told that its session expired was not answered a write that it sent within the time-out
//! before; a write goes through the leader, so that it was heard of, and a new leader gives every session its
//! whole time-out again. A move counts as hearing from the session.
//!
//! The other way round a leader that nothing disturbs ends a session that it has not heard of for much longer
//! than its time-out. Which time-out that is was settled when the session began, within ZooKeeper's bounds of
//! 2 and 20 ticks: every member tells it to whoever comes back, whatever that one asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use node_core::Role;
use node_core::io::{ClientId, Event, Input, StoreOp};
use node_wire::ids::{ServerId, SessionId, Zxid};
use node_wire::jute::Reader;
use node_wire::quorum::{ForwardedRequest, PacketType, PingTouches, Revalidate};
use node_wire::txn::{Entry, Txn};

use crate::client::{self, Purpose};
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::world::{Clockwork, Ensemble, Oracle, Population};
use harness_world::time::Time;

/// A member's clock runs fast by less than this part of a second in a second.
const FAST: u64 = 20;

/// How much of a suspension a member takes for time in which it was awake, and more.
const SUSPENDED_US: u64 = 50_000;

/// Ticks that a session's time-out lasts at least and at most, as in ZooKeeper.
const TICKS_OF_A_SESSION: [i32; 2] = [2, 20];

/// A member that is awake may count this part of its time too little.
const SLOW: u32 = 6;

/// Peer time-outs within which a leader has ended a session whose time is over.
const ROOM_TIMEOUTS: u64 = 2;

/// What a leader could know of sessions, by its own monotonic clock.
#[derive(Clone, Debug, Default)]
struct MemberEvidence {
    /// Since when it leads an epoch that stands.
    since: Duration,
    /// When it was last told of each session.
    heard: BTreeMap<SessionId, Duration>,
    /// When it may last have counted something as a word of each: also what it may have dropped.
    at_most: BTreeMap<SessionId, Duration>,
    /// Sessions that it is about to end.
    ending: BTreeSet<SessionId>,
}

/// What a client said when it connected.
#[derive(Clone, Copy, Debug)]
struct Greeting {
    session: SessionId,
    seen: Zxid,
    timeout_ms: i32,
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
pub(in crate::world) struct SessionEvidence {
    members: Vec<MemberEvidence>,
    proofs: Vec<Proof>,
    /// The session of each client's connection, as the member answered.
    session_of: BTreeMap<ClientId, SessionId>,
    /// What it said, until it is answered.
    greetings: BTreeMap<ClientId, Greeting>,
}

impl SessionEvidence {
    pub(in crate::world) fn new(members: usize, clients: usize) -> Self {
        Self {
            members: vec![MemberEvidence::default(); members],
            proofs: vec![Proof::default(); clients],
            session_of: BTreeMap::new(),
            greetings: BTreeMap::new(),
        }
    }
}

fn duration(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0))
}

impl Oracle {
    /// Before an input reaches a core: what it tells of sessions.
    pub(in crate::world) fn hear(
        &mut self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        population: &Population,
        host: HostIndex,
        input: &Input,
    ) {
        match input {
            Input::ClientRequest { client, request } => {
                let Some(session) = self.session_evidence.session_of.get(client).copied() else { return };
                self.inform(clock, |invariants| invariants.asked(session, request.xid, request.op));
                let mono = ensemble.mono(clock, host);
                self.session_evidence.members[host].heard.insert(session, mono);
            }
            Input::Packet { packet, .. } if packet.kind == PacketType::Ping => {
                let data = packet.data.clone().unwrap_or_default();
                let Ok(PingTouches(touches)) = PingTouches::decode(data) else { return };
                let mono = ensemble.mono(clock, host);
                let evidence = &mut self.session_evidence.members[host];
                evidence.heard.extend(touches.into_iter().map(|(session, _)| (session, mono)));
            }
            Input::Packet { packet, .. } if packet.kind == PacketType::Revalidate => {
                let mut data = Reader::new(packet.data.clone().unwrap_or_default());
                let Ok(Revalidate { session, .. }) = Revalidate::decode(&mut data) else { return };
                let mono = ensemble.mono(clock, host);
                self.session_evidence.members[host].heard.insert(session, mono);
            }
            Input::Packet { packet, .. } if packet.kind == PacketType::Request => {
                let (data, auth) = (packet.data.clone().unwrap_or_default(), packet.auth.clone());
                let Ok(ForwardedRequest { session, .. }) = ForwardedRequest::decode(data, auth) else {
                    return;
                };
                let mono = ensemble.mono(clock, host);
                self.session_evidence.members[host].at_most.insert(session, mono);
            }
            Input::ClientConnect { client, request, .. } => {
                let (session, seen, timeout_ms) =
                    (request.session, request.last_zxid_seen, request.timeout_ms);
                self.session_evidence.greetings.insert(*client, Greeting { session, seen, timeout_ms });
                if session != SessionId::NONE {
                    // Who guesses the password says nothing of the session, or keeps it alive at most.
                    let (mono, password) = (ensemble.mono(clock, host), request.password.clone());
                    let its_own = population.keeps(session, &password);
                    let evidence = &mut self.session_evidence.members[host];
                    let told = if its_own { &mut evidence.heard } else { &mut evidence.at_most };
                    told.insert(session, mono);
                }
            }
            _ => {}
        }
    }

    /// A member's epoch stands.
    pub(in crate::world) fn hear_of_epoch(
        &mut self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        event: &Event,
    ) {
        if let Event::Established { leader, .. } = event
            && *leader == ensemble.server(host)
        {
            self.session_evidence.members[host] =
                MemberEvidence { since: ensemble.mono(clock, host), ..MemberEvidence::default() };
        }
    }

    /// A leader logs a proposal of its own: when it ends a session that no client asked to end, it was
    /// silent.
    pub(in crate::world) fn check_expiry(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        op: &StoreOp,
    ) {
        let StoreOp::Append(entry) = op else { return };
        let mono = ensemble.mono(clock, host);
        match entry.txn {
            Txn::CreateSession { .. } => {
                self.session_evidence.members[host].at_most.insert(entry.header.session, mono);
            }
            Txn::CloseSession { .. } => {
                self.session_evidence.members[host].ending.insert(entry.header.session);
            }
            _ => {}
        }
        let Some(timeout_ms) = self.expires(entry) else { return };
        let session = entry.header.session;
        let evidence = &self.session_evidence.members[host];
        let last = evidence.heard.get(&session).copied().unwrap_or_default().max(evidence.since);
        let silence = ensemble.mono(clock, host).saturating_sub(last);
        if silence < duration(timeout_ms) {
            let ServerId(id) = ensemble.server(host);
            let silence_ms = silence.as_millis();
            let sentence = format!(
                "server {id} ends session {session} {silence_ms} ms after it was heard of; its time-out is \
                    {timeout_ms} ms"
            );
            self.found(clock, Err((Rule::Expiry, sentence)));
        }
    }

    /// The time-out of the session that this entry ends although its client did not ask for it.
    fn expires(&self, entry: &Entry) -> Option<i32> {
        let by_nobody = entry.header.cxid == 0 && matches!(entry.txn, Txn::CloseSession { .. });
        if by_nobody { self.invariants.session_timeout_ms(entry.header.session) } else { None }
    }

    /// A leader that nothing disturbs has ended what it has not heard of for so long.
    pub(in crate::world) fn check_overdue(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let leads = |host: &HostIndex| {
            ensemble.hosts[*host].process.as_ref().is_some_and(|process| {
                process.role == Role::Leading && process.established && process.hears()
            })
        };
        let Some(host) = (0..ensemble.hosts.len()).find(leads) else { return };
        if clock.counters.suspensions > 0 {
            // Its clock went on and it did not: what it counts is not what the clock shows.
            return;
        }
        let undisturbed = Duration::from_micros(clock.now.since(self.progress.undisturbed_since(host)));
        let (mono, evidence) = (ensemble.mono(clock, host), &self.session_evidence.members[host]);
        let room = Duration::from_millis(ROOM_TIMEOUTS * clock.drawn.peer_timeout_ms);
        let overdue = self.invariants.living_sessions().find_map(|(session, timeout_ms)| {
            let known = [&evidence.heard, &evidence.at_most]
                .map(|told| told.get(&session).copied().unwrap_or_default());
            let last = known[0].max(known[1]).max(evidence.since);
            let silence = mono.saturating_sub(last).min(undisturbed);
            let timeout = duration(timeout_ms);
            let late = silence > timeout + timeout / SLOW + room && !evidence.ending.contains(&session);
            // One that was deposed and has not noticed knows nothing of the sessions that began since.
            let knows = || {
                let process = ensemble.hosts[host].process.as_ref();
                process.is_some_and(|process| process.member().tree().tree().session(session).is_some())
            };
            (late && knows()).then_some((session, silence.as_millis(), timeout_ms))
        });
        if let Some((session, silence_ms, timeout_ms)) = overdue {
            let ServerId(id) = ensemble.server(host);
            let sentence = format!(
                "server {id} leads and lets session {session} live {silence_ms} ms after it was heard of; \
                    its time-out is {timeout_ms} ms"
            );
            self.found(clock, Err((Rule::Expiry, sentence)));
        }
    }

    /// A member takes a client in: one that has not seen more, for the time-out that its session has.
    fn check_welcome(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        client: ClientId,
        told_ms: i32,
    ) {
        let Some(greeting) = self.session_evidence.greetings.remove(&client) else { return };
        let Some(process) = &ensemble.hosts[host].process else { return };
        let applied = process.member().status().last_applied;
        self.judge(clock, |invariants| invariants.takes_in(host, greeting.seen, applied));
        let tick_ms = i32::try_from(clock.drawn.tick_time_ms).unwrap_or(i32::MAX);
        let [least, most] = TICKS_OF_A_SESSION.map(|ticks| tick_ms.saturating_mul(ticks));
        let granted = match greeting.session {
            SessionId::NONE => Some(greeting.timeout_ms.clamp(least, most)),
            session => self.invariants.session_timeout_ms(session),
        };
        if let Some(granted) = granted.filter(|granted| *granted != told_ms) {
            let ServerId(id) = ensemble.server(host);
            let sentence = format!(
                "server {id} says that the time-out of a session is {told_ms} ms, which was granted \
                    {granted} ms"
            );
            self.report(clock, Rule::Sessions, sentence);
        }
    }

    /// A member writes to a client: the first frame names the session, the others are answers.
    pub(in crate::world) fn overhear(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        client: ClientId,
        frame: &Bytes,
    ) {
        let Some(session) = self.session_evidence.session_of.get(&client).copied() else {
            let Some(response) = client::connect_response(frame.clone()) else {
                let ServerId(id) = ensemble.server(host);
                self.report(
                    clock,
                    Rule::Answer,
                    format!("server {id} answered before it said whose session it is"),
                );
                return;
            };
            if response.timeout_ms > 0 {
                self.session_evidence.session_of.insert(client, response.session);
                self.check_welcome(clock, ensemble, host, client, response.timeout_ms);
            }
            return;
        };
        let (header, _) = client::reply(frame.clone());
        self.judge(clock, |invariants| invariants.replies(host, session, header));
    }

    /// A client sends an operation.
    pub(in crate::world) fn prove_sent(&mut self, clock: &Clockwork, population: &Population, client: usize) {
        let says_goodbye = population.clients[client]
            .awaited
            .back()
            .is_some_and(|(_, what)| matches!(what, Purpose::Goodbye | Purpose::Close));
        let proof = &mut self.session_evidence.proofs[client];
        proof.sent = clock.now;
        if says_goodbye {
            // It may be heard, and its answer not.
            proof.alive = None;
        }
    }

    /// A client is answered.
    pub(in crate::world) fn prove_answered(&mut self, client: usize, purpose: Purpose) {
        if matches!(purpose, Purpose::Write | Purpose::Create | Purpose::Delete) {
            let proof = &mut self.session_evidence.proofs[client];
            proof.alive = Some(proof.sent);
        }
    }

    /// A client begins a session of its own.
    pub(in crate::world) fn prove_nothing(&mut self, client: usize) {
        self.session_evidence.proofs[client].alive = None;
    }

    /// A client is told that its session expired.
    pub(in crate::world) fn check_told_expired(
        &mut self,
        clock: &mut Clockwork,
        population: &Population,
        client: usize,
    ) {
        let proof = self.session_evidence.proofs[client];
        let (Some(alive), Some(session)) = (proof.alive, &population.clients[client].session) else { return };
        if !population.clients[client].known {
            // It lived on one member alone when this one was asked, and this is another.
            return;
        }
        let silence_us = clock.now.since(alive);
        let longest_us = silence_us + silence_us / FAST + clock.counters.suspensions * SUSPENDED_US;
        if Duration::from_micros(longest_us) < duration(session.timeout_ms) {
            let sentence = format!(
                "session {} was told to be expired {} ms after a write of it that was answered; its \
                    time-out is {} ms",
                session.id,
                silence_us / 1000,
                session.timeout_ms
            );
            self.report(clock, Rule::Sessions, sentence);
        }
    }
}
