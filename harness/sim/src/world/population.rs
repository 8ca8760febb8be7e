//! Clients: where they connect, when they act, and what becomes of their answers.
//!
//! Each client has one operation open at a time. One that gets no answer is given up with its connection, its
//! fate stays open, its process is retired, and the session goes on at another member.

use std::collections::BTreeSet;

use bytes::Bytes;
use bytestring::ByteString;
use checker::history::{Event as Line, Function};
use node_core::Plant;
use node_core::io::{ClientId, Input};
use node_wire::client::{
    ConnectRequest, CreateResponse, ErrorCode, GetDataResponse, ReplyHeader, Request, SetDataResponse,
    XID_PING, XID_WATCH,
};
use node_wire::jute::Reader;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use workloads::{Action, Answer, Invocation, Register, RegisterParams};

use super::{Event, World};
use crate::client::{self, Client, ClientConn, Flow, Purpose, Scribe, Session, Trade, Visitor, Wake};
use crate::dice::{Chance, Dice, HALF};
use crate::drawn::Drawn;
use crate::host::Source;
use crate::network::HostIndex;
use crate::outcome::Rule;

/// Between a lost connection and the next attempt, at most.
const RECONNECT_US: u64 = 40_000;

/// How often a client looks whether there is something to do while there is not.
const IDLE_US: u64 = 20_000;

/// A visitor leaves with this probability at each occasion, half of the time without a word.
const LEAVES: Chance = Chance(1_500);

/// Nodes that one visitor's session makes at most.
const MAX_VISITS: usize = 20;

/// What the clients leave behind.
pub(super) struct Record {
    pub(super) workload: Register,
    /// What must be made before the load begins.
    setup: Vec<Invocation>,
    /// What is read last.
    pub(super) finals: Vec<Invocation>,
    pub(super) history: Vec<Line>,
    next_process: u64,
    names: BTreeSet<ByteString>,
    /// True when clients start nothing new.
    pub(super) quiet: bool,
    /// True when clients end their sessions.
    pub(super) closing: bool,
    /// Keys whose check ran out of its budget.
    pub(super) undecided: u64,
}

impl Record {
    pub(super) fn new(drawn: &Drawn, dice: &mut Dice) -> Self {
        let params = RegisterParams {
            keys: drawn.keys,
            read_percent: drawn.read_percent,
            cas_percent: drawn.cas_percent,
        };
        let rng = ChaCha8Rng::seed_from_u64(dice.seed());
        let mut workload = Register::new(params, rng).expect("the drawn parameters make sense");
        Self {
            setup: workload.setup(),
            workload,
            finals: Vec::new(),
            history: Vec::new(),
            next_process: 0,
            names: BTreeSet::new(),
            quiet: false,
            closing: false,
            undecided: 0,
        }
    }

    fn process(&mut self) -> u64 {
        self.next_process += 1;
        self.next_process - 1
    }

    /// What a register client does next. The first one prepares the registers and reads them last.
    fn next(&mut self, client: usize, process: u64) -> Option<Invocation> {
        if !self.setup.is_empty() {
            return if client == 0 { self.setup.last().cloned() } else { None };
        }
        if self.quiet {
            return if client == 0 { self.finals.last().cloned() } else { None };
        }
        Some(self.workload.next_op(process))
    }

    /// Something that must be done came to an end, well or not.
    fn finished(&mut self, client: usize, invocation: &Invocation, answer: &Answer) {
        if client != 0 {
            return;
        }
        if let Action::Create { .. } = invocation.action {
            match answer {
                Answer::Created { .. } | Answer::Refused { code: ErrorCode::NodeExists, .. } => {
                    self.setup.pop();
                }
                // Tried again with another value: no value is written twice.
                _ => {
                    let fresh = self.workload.setup().into_iter().find(|fresh| fresh.key == invocation.key);
                    self.setup.pop();
                    self.setup.extend(fresh);
                }
            }
        } else if self.finals.last() == Some(invocation) && matches!(answer, Answer::Read { .. }) {
            self.finals.pop();
        }
    }
}

impl<P: Plant> World<P> {
    /// Lets the clients come in.
    pub(super) fn populate(&mut self) {
        let (scribes, all) = (self.drawn.clients, self.drawn.clients + self.drawn.visitors);
        for index in 0..all {
            let trade = if index < scribes {
                Trade::Register(Scribe { process: self.record.process(), ..Scribe::default() })
            } else {
                Trade::Visitor(Visitor::default())
            };
            // Busy ones make operations overlap; patient ones ask for the first time when much has happened.
            let patient = index % 2 == 1;
            let think_us = if patient { self.drawn.patient_us } else { self.drawn.think_us };
            self.clients.push(Client::new(trade, index % self.hosts.len(), think_us));
            let delay = self.dice.between(0, 100_000);
            self.set_timer(index, delay, Wake::Connect);
        }
    }

    /// Sets a client's one timer.
    fn set_timer(&mut self, client: usize, delay_us: u64, wake: Wake) {
        self.clients[client].plan += 1;
        let plan = self.clients[client].plan;
        self.plan(delay_us, Event::Client { client, plan, wake });
    }

    pub(super) fn wake_client(&mut self, client: usize, plan: u64, wake: Wake) {
        if let Wake::Ping { conn } = wake {
            self.ping(client, conn);
            return;
        }
        if self.clients[client].plan != plan || self.clients[client].gone {
            return;
        }
        match wake {
            Wake::Connect => self.connect_client(client),
            Wake::Act => self.act(client),
            Wake::GiveUp => {
                self.hang_up(client);
                self.on_lost(client, "time-out");
            }
            Wake::Ping { .. } => {}
        }
    }

    fn client_delay(&mut self) -> u64 {
        self.dice.between(self.drawn.link_us.0, self.drawn.link_us.1)
    }

    fn connect_client(&mut self, index: usize) {
        let host = self.clients[index].member;
        self.set_timer(index, self.drawn.op_timeout_us, Wake::GiveUp);
        if self.hosts[host].process.is_none() {
            self.on_lost(index, "refused");
            return;
        }
        let conn = self.client_conns.len();
        self.client_conns.push(ClientConn {
            client: index,
            host,
            life: self.hosts[host].life,
            member_open: true,
            client_open: true,
            greeted: false,
            to_member: crate::pipe::Pipe::default(),
            to_client: crate::pipe::Pipe::default(),
        });
        let timeout = i32::try_from(self.drawn.session_timeout_ms).expect("a drawn time-out is small");
        let client = &mut self.clients[index];
        client.conn = Some(conn);
        client.ready = false;
        let frame = client.connect(timeout);
        self.to_member(conn, Flow::Frame(frame));
    }

    fn to_member(&mut self, conn: usize, flow: Flow) {
        let at = self.now + self.client_delay();
        let at = self.client_conns[conn].to_member.send(at, flow);
        self.queue.plan(at, Event::ToMember { conn });
    }

    fn to_client(&mut self, conn: usize, flow: Flow) {
        let at = self.now + self.client_delay();
        let at = self.client_conns[conn].to_client.send(at, flow);
        self.queue.plan(at, Event::ToClient { conn });
    }

    /// Sends what an operation consists of, and waits for its answer so long and no longer.
    fn ask(&mut self, index: usize, frames: Vec<Bytes>) {
        let conn = self.clients[index].conn.expect("only a connected client asks");
        for frame in frames {
            self.to_member(conn, Flow::Frame(frame));
        }
        self.set_timer(index, self.drawn.op_timeout_us, Wake::GiveUp);
    }

    fn ping(&mut self, index: usize, conn: usize) {
        let client = &self.clients[index];
        let Some(session) = &client.session else { return };
        if client.conn != Some(conn) || !client.ready {
            return;
        }
        let every = u64::try_from(session.timeout_ms).unwrap_or(0) * 1000 / 3;
        self.to_member(conn, Flow::Frame(client::ping()));
        self.plan(every.max(1000), Event::Client { client: index, plan: 0, wake: Wake::Ping { conn } });
    }

    /// What arrived at a member from a client goes to its core.
    pub(super) fn client_to_member(&mut self, conn: usize) {
        while self.violation.is_none() {
            let now = self.now;
            let this = &mut self.client_conns[conn];
            let (host, life) = (this.host, this.life);
            if !this.member_open {
                return;
            }
            let Some(flow) = this.to_member.receive(now) else { return };
            let client = ClientId(u64::try_from(conn).expect("connections are few"));
            let input = match flow {
                Flow::Fin => Input::ClientLost { client },
                Flow::Frame(frame) if !std::mem::replace(&mut this.greeted, true) => Input::ClientConnect {
                    client,
                    request: ConnectRequest::decode(&mut Reader::new(client::unframed(frame)))
                        .expect("a client of ours asks well"),
                },
                Flow::Frame(frame) => Input::ClientRequest {
                    client,
                    request: Request::decode(client::unframed(frame)).expect("a client of ours asks well"),
                },
            };
            self.give(host, life, Source::Client(conn), input);
        }
    }

    /// A member writes to a client.
    pub(super) fn reply(&mut self, client: ClientId, frame: Bytes) {
        let conn = usize::try_from(client.0).expect("connections are few");
        if self.client_conns[conn].member_open {
            self.to_client(conn, Flow::Frame(frame));
        }
    }

    /// A member closes a client's connection.
    pub(super) fn close_client(&mut self, client: ClientId) {
        let conn = usize::try_from(client.0).expect("connections are few");
        if std::mem::replace(&mut self.client_conns[conn].member_open, false) {
            self.to_client(conn, Flow::Fin);
        }
    }

    /// A client closes its connection.
    fn hang_up(&mut self, index: usize) {
        let Some(conn) = self.clients[index].conn.take() else { return };
        self.clients[index].ready = false;
        self.client_conns[conn].client_open = false;
        self.client_conns[conn].to_client.lose();
        self.to_member(conn, Flow::Fin);
    }

    /// A client's connection breaks under it.
    pub(super) fn cut_client(&mut self, index: usize) {
        let Some(conn) = self.clients[index].conn else { return };
        self.client_conns[conn].to_client.lose();
        self.client_conns[conn].to_member.lose();
        self.to_client(conn, Flow::Fin);
        self.to_member(conn, Flow::Fin);
    }

    /// A process is gone: its clients learn of it, unless its machine went with it; then they wait in vain.
    pub(super) fn cut_clients_of(&mut self, host: HostIndex, abrupt: bool) {
        for conn in 0..self.client_conns.len() {
            let this = &mut self.client_conns[conn];
            if this.host != host || !std::mem::replace(&mut this.member_open, false) {
                continue;
            }
            if abrupt {
                this.to_client.lose();
            } else {
                self.to_client(conn, Flow::Fin);
            }
        }
    }

    pub(super) fn member_to_client(&mut self, conn: usize) {
        let client = self.client_conns[conn].client;
        while self.violation.is_none() && self.client_conns[conn].client_open {
            let now = self.now;
            let Some(flow) = self.client_conns[conn].to_client.receive(now) else { return };
            match flow {
                Flow::Fin => {
                    self.client_conns[conn].client_open = false;
                    self.clients[client].conn = None;
                    self.clients[client].ready = false;
                    self.on_lost(client, "connection lost");
                }
                Flow::Frame(frame) if self.clients[client].ready => self.on_reply(client, frame),
                Flow::Frame(frame) => self.on_connected(client, conn, frame),
            }
        }
    }

    fn on_connected(&mut self, index: usize, conn: usize, frame: Bytes) {
        let response = client::connect_response(frame);
        let client = &mut self.clients[index];
        if response.timeout_ms <= 0 {
            self.counters.expired += u64::from(client.session.is_some());
            client.session = None;
            if let Trade::Visitor(visitor) = &mut client.trade {
                visitor.nodes.clear();
            }
            self.hang_up(index);
            self.on_lost(index, "session expired");
            return;
        }
        match &mut client.session {
            Some(session) if session.id != response.session => {
                let sentence = format!("session {} was resumed as {}", session.id, response.session);
                self.convict(Rule::Answer, sentence);
                return;
            }
            Some(session) => {
                session.timeout_ms = response.timeout_ms;
                self.counters.resumed += 1;
            }
            None => {
                client.session = Some(Session {
                    id: response.session,
                    password: response.password,
                    timeout_ms: response.timeout_ms,
                    seen: node_wire::ids::Zxid::ZERO,
                });
                self.counters.sessions += 1;
            }
        }
        client.ready = true;
        self.plan(1000, Event::Client { client: index, plan: 0, wake: Wake::Ping { conn } });
        self.think(index);
    }

    fn think(&mut self, index: usize) {
        let delay = self.dice.around(self.clients[index].think_us);
        self.set_timer(index, delay, Wake::Act);
    }

    /// The connection is gone, or there was none: what was open is lost, and the next one is tried elsewhere.
    fn on_lost(&mut self, index: usize, reason: &str) {
        self.clients[index].awaited.clear();
        match &mut self.clients[index].trade {
            Trade::Register(_) => self.complete(index, &Answer::Lost { reason: reason.to_owned() }),
            Trade::Visitor(visitor) => visitor.busy = false,
        }
        let members = self.hosts.len();
        self.clients[index].member = self.dice.index(members);
        let delay = self.dice.between(1000, RECONNECT_US);
        self.set_timer(index, delay, Wake::Connect);
    }

    fn act(&mut self, index: usize) {
        if !self.clients[index].ready {
            return;
        }
        if self.record.closing {
            let frame = self.clients[index].goodbye();
            self.ask(index, vec![frame]);
            return;
        }
        match &self.clients[index].trade {
            Trade::Register(scribe) => {
                let process = scribe.process;
                match self.record.next(index, process) {
                    Some(invocation) => self.invoke(index, invocation),
                    None => self.set_timer(index, IDLE_US, Wake::Act),
                }
            }
            Trade::Visitor(_) => self.act_as_visitor(index),
        }
    }

    fn invoke(&mut self, index: usize, invocation: Invocation) {
        let client = &mut self.clients[index];
        let frames = client.frames_of(&invocation.action);
        let Trade::Register(scribe) = &mut client.trade else { return };
        let process = scribe.process;
        let mut line = invocation.event(process, self.now.as_ns());
        scribe.open = Some(invocation);
        self.note(index, &mut line);
        self.record.history.push(line);
        self.ask(index, frames);
    }

    /// Adds to a line where its client is.
    fn note(&mut self, index: usize, line: &mut Line) {
        let client = &self.clients[index];
        line.index = u64::try_from(self.record.history.len()).expect("a history is short");
        line.node = u64::try_from(client.member + 1).ok();
        line.session = client.session.as_ref().map(|session| session.id.0.cast_unsigned());
    }

    /// The open operation of a register client ends.
    fn complete(&mut self, index: usize, answer: &Answer) {
        let Trade::Register(scribe) = &mut self.clients[index].trade else { return };
        let Some(invocation) = scribe.open.take() else { return };
        let process = scribe.process;
        let completion = self.record.workload.complete(process, &invocation, answer);
        let mut line = completion.event(&invocation, process, self.now.as_ns());
        let figures = [process, line.index];
        self.note(index, &mut line);
        self.world_line("op", figures, || {
            format!(
                "p{process} {} r{} {:?} -> {:?} {:?}",
                invocation.f, invocation.key, invocation.value, completion.kind, completion.value
            )
        });
        self.record.history.push(line);
        match completion.kind {
            checker::history::EventKind::Ok => self.counters.ok += 1,
            checker::history::EventKind::Info => self.counters.unknown += 1,
            checker::history::EventKind::Fail | checker::history::EventKind::Invoke => {
                self.counters.failed += 1
            }
        }
        let Trade::Register(scribe) = &mut self.clients[index].trade else { return };
        if completion.retires() {
            scribe.process = self.record.process();
        } else if completion.kind == checker::history::EventKind::Ok {
            scribe.served += 1;
        }
        self.record.finished(index, &invocation, answer);
        if let Answer::Written { zxid, .. } | Answer::Created { zxid } = answer {
            debug_assert_ne!(invocation.f, Function::Read, "a read writes nothing");
            let finding = self.judge.acknowledged(*zxid);
            self.judged(finding);
        }
    }

    fn on_reply(&mut self, index: usize, frame: Bytes) {
        let (header, body) = client::reply(frame);
        if header.xid == XID_WATCH || header.xid == XID_PING {
            return;
        }
        let client = &mut self.clients[index];
        let Some((xid, purpose)) = client.awaited.pop_front() else {
            self.convict(Rule::Answer, format!("client {index} got a reply {} to nothing", header.xid));
            return;
        };
        if xid != header.xid {
            self.convict(Rule::Answer, format!("client {index} got reply {} before {xid}", header.xid));
            return;
        }
        let Some(session) = &mut client.session else { return };
        if header.zxid < session.seen {
            let sentence =
                format!("session {} saw {} and then only {}", session.id, session.seen, header.zxid);
            self.convict(Rule::SessionOrder, sentence);
            return;
        }
        session.seen = header.zxid;
        match self.clients[index].trade {
            Trade::Register(_) => self.on_register_reply(index, &purpose, header, body),
            Trade::Visitor(_) => self.on_visitor_reply(index, &purpose, header, body),
        }
    }

    fn on_register_reply(&mut self, index: usize, purpose: &Purpose, header: ReplyHeader, body: Reader) {
        if *purpose == Purpose::Goodbye {
            self.leave(index);
            return;
        }
        let answer = match answer_of(purpose, header, body) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(sentence) => {
                self.convict(Rule::Answer, sentence);
                return;
            }
        };
        if *purpose == Purpose::Sync {
            // The read behind a refused sync counts for nothing.
            if let Some((_, next)) = self.clients[index].awaited.front_mut() {
                *next = Purpose::Nothing;
            }
        }
        self.complete(index, &answer);
        self.think(index);
    }

    /// The session ended as it should.
    fn leave(&mut self, index: usize) {
        self.hang_up(index);
        let client = &mut self.clients[index];
        client.session = None;
        client.awaited.clear();
        if self.record.closing {
            client.gone = true;
        } else {
            self.on_lost(index, "left");
        }
    }

    fn act_as_visitor(&mut self, index: usize) {
        if self.record.quiet {
            self.set_timer(index, IDLE_US, Wake::Act);
            return;
        }
        if self.dice.chance(LEAVES) {
            self.walk_out(index);
            return;
        }
        let look = self.dice.chance(HALF);
        let pick = self.dice.between(0, u64::MAX);
        let client = &mut self.clients[index];
        let Trade::Visitor(visitor) = &mut client.trade else { return };
        visitor.busy = true;
        let known = u64::try_from(visitor.nodes.len()).unwrap_or(0);
        let frame = if known > 0 && (look || visitor.nodes.len() >= MAX_VISITS) {
            let chosen = usize::try_from(pick % known).expect("below a length");
            visitor.nodes.swap(0, chosen);
            let path = visitor.nodes[0].clone();
            client.revisit(path)
        } else {
            client.visit()
        };
        self.ask(index, vec![frame]);
    }

    /// A visitor ends its session, or forgets it so that it must expire.
    fn walk_out(&mut self, index: usize) {
        let polite = self.dice.chance(HALF);
        let Trade::Visitor(visitor) = &mut self.clients[index].trade else { return };
        visitor.nodes.clear();
        if polite {
            visitor.busy = true;
            let frame = self.clients[index].goodbye();
            self.ask(index, vec![frame]);
        } else {
            self.hang_up(index);
            self.clients[index].session = None;
            self.on_lost(index, "walked out");
        }
    }

    fn on_visitor_reply(&mut self, index: usize, purpose: &Purpose, header: ReplyHeader, mut body: Reader) {
        let client = &mut self.clients[index];
        let Trade::Visitor(visitor) = &mut client.trade else { return };
        visitor.busy = false;
        match purpose {
            Purpose::Goodbye => {
                self.leave(index);
                return;
            }
            Purpose::Visit if header.err == 0 => {
                let made = CreateResponse::decode(&mut body).expect("a member's answer is well formed").path;
                visitor.nodes.push(made.clone());
                self.counters.visits += 1;
                if !self.record.names.insert(made.clone()) {
                    self.convict(Rule::UniqueNames, format!("the name {made} was given twice"));
                }
                let finding = self.judge.acknowledged(header.zxid);
                self.judged(finding);
            }
            Purpose::Revisit if header.err == ErrorCode::NoNode.code() => {
                let path = visitor.nodes.first().cloned().unwrap_or_default();
                self.convict(Rule::Sessions, format!("the ephemeral {path} died before its session"));
            }
            _ => {}
        }
        self.think(index);
    }

    /// True when no client waits for an answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.clients.iter().all(|client| !client.is_busy())
    }
}

/// What a reply means for the operation it belongs to; nothing when the operation goes on.
fn answer_of(purpose: &Purpose, header: ReplyHeader, mut body: Reader) -> Result<Option<Answer>, String> {
    let zxid = header.zxid;
    if header.err != 0 {
        let code =
            ErrorCode::from_code(header.err).ok_or_else(|| format!("an unknown error {}", header.err))?;
        let refused = Answer::Refused { code, zxid: Some(zxid) };
        return Ok((*purpose != Purpose::Nothing).then_some(refused));
    }
    let malformed = |error| format!("a malformed answer: {error}");
    Ok(match purpose {
        Purpose::Sync | Purpose::Nothing | Purpose::Goodbye | Purpose::Visit | Purpose::Revisit => None,
        Purpose::Create => Some(Answer::Created { zxid }),
        Purpose::Read => {
            let read = GetDataResponse::decode(&mut body).map_err(malformed)?;
            Some(Answer::Read { data: read.data, version: read.stat.version, mzxid: read.stat.mzxid, zxid })
        }
        Purpose::Write => {
            let stat = SetDataResponse::decode(&mut body).map_err(malformed)?.stat;
            Some(Answer::Written { version: stat.version, mzxid: stat.mzxid, zxid })
        }
    })
}
