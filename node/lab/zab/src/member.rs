//! A member and its driver, as a process of a world.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use checker::history::{EventKind, Value};
use harness_protocols::{Broken, Id, Input, Io, Member, Protocol, Request};
use node_core::io::{ClientId, ConnId, Effect, Event, Input as Fact, Now};
use node_core::{ClientRules, Config, Machine, Maker, Role, TICK};
use node_wire::client::{
    ConnectRequest, ErrorCode, GetDataResponse, OpCode, PathWatch, ReplyHeader, Request as Asking,
    SetDataRequest,
};
use node_wire::ids::{ServerId, SessionId, Zxid};
use node_wire::jute::{Reader, encode};
use node_wire::quorum::PacketType;
use workloads::op::Body;
use workloads::{Kind, Op, Outcome};

use crate::judge::Memory;
use crate::message::{Connection, Message, Packets, Vote, encoded};
use crate::record::{self, Record};
use crate::words::dotted;

/// The members' own protocol: what makes them, be they sound or mutants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Members<M>(pub M);

/// What a member waits for, by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// It looks: for votes.
    Votes,
    /// It follows: for its leader.
    Leader,
    /// It leads: for its followers.
    Followers,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Votes => "votes",
            Self::Leader => "leader",
            Self::Followers => "followers",
        })
    }
}

/// How long a world lets them wait, in microseconds; in scripts no time passes.
const WAIT_US: u64 = 250_000;

/// Ticks of a wait, at most: beyond every deadline of a member.
const MOST_TICKS: u32 = 6_000;

/// A new session's time-out, in milliseconds: longer than any wait.
const SESSION_MS: i32 = 1_000_000;

/// This end of a connection on the quorum port.
#[derive(Clone, Debug, Hash)]
struct End {
    name: Connection,
    peer: Id,
    /// How often something was sent on it.
    sent: u32,
    /// How often something was taken from it.
    taken: u32,
    /// What came too early.
    early: BTreeMap<u32, Packets>,
    open: bool,
}

/// A client's request, on a connection of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    request: Request,
    op: Op,
    /// It has its session.
    connected: bool,
}

/// A member that runs, with its driver.
#[derive(Clone)]
pub struct Process<M: Maker> {
    member: M::Machine,
    /// Its clock: moves only while it waits.
    clock: Duration,
    life: usize,
    dials: u32,
    conns: u64,
    ends: BTreeMap<u64, End>,
    /// The last vote for each.
    votes: BTreeMap<Id, Vote>,
    asked: BTreeMap<u64, Asked>,
    clients: u64,
    waits: Option<Wait>,
    /// Why it stopped.
    halted: Option<String>,
}

impl<M: Maker> fmt::Debug for Process<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("status", &self.member.member().status()).finish_non_exhaustive()
    }
}

impl<M: Maker> Hash for Process<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { member, clock: _, life, dials, conns, ends, votes, asked, clients: _, waits, halted } =
            self;
        member.fingerprint(state);
        (life, dials, conns, ends, votes, waits, halted).hash(state);
        asked.keys().for_each(|client| client.hash(state));
    }
}

/// What a step sends and writes, in the order in which it leaves.
#[derive(Default)]
struct Outbox {
    votes: Vec<(Id, Vote)>,
    packets: BTreeMap<u64, (Vec<Bytes>, bool)>,
    writes: Vec<(u64, Record)>,
    answers: Vec<(Request, Outcome)>,
    /// Something that tells: a role, an epoch.
    tells: bool,
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.votes.is_empty() && self.packets.is_empty() && self.writes.is_empty() && !self.tells
    }
}

fn id_of(server: ServerId) -> Option<Id> {
    u8::try_from(server.0).ok().map(Id)
}

fn server_of(id: Id) -> ServerId {
    ServerId(u64::from(id.0))
}

impl<M: Maker> Process<M> {
    fn new(maker: M, me: Id, members: u8, disk: &[Record]) -> Self {
        let voters = Id::all(members).map(server_of).collect();
        let clients = ClientRules { local_sessions: true, ..ClientRules::default() };
        let config = Config {
            clients,
            session_timeouts_ms: Some((SESSION_MS, SESSION_MS)),
            snap_count: u64::MAX.into(),
            ..Config::usual(server_of(me), voters)
        };
        Self {
            member: maker.make(config, record::recover(disk), Now::default()),
            clock: Duration::ZERO,
            life: disk.len(),
            dials: 0,
            conns: 0,
            ends: BTreeMap::new(),
            votes: BTreeMap::new(),
            asked: BTreeMap::new(),
            clients: 0,
            waits: None,
            halted: None,
        }
    }

    /// Facts come to it, and those that follow from its effects.
    fn take(&mut self, me: Id, facts: impl IntoIterator<Item = Fact>, out: &mut Outbox) {
        let mut facts: VecDeque<Fact> = facts.into_iter().collect();
        let mut effects = Vec::new();
        while let Some(fact) = facts.pop_front().filter(|_| self.halted.is_none()) {
            let now = Now { mono: self.clock, wall_ms: 0 };
            self.member.step(now, fact, &mut effects);
            for effect in effects.drain(..) {
                if self.halted.is_none() {
                    self.carry_out(me, effect, &mut facts, out);
                }
            }
        }
    }

    fn carry_out(&mut self, me: Id, effect: Effect, facts: &mut VecDeque<Fact>, out: &mut Outbox) {
        match effect {
            Effect::Store { ticket, op } => out.writes.push((ticket, op.into())),
            Effect::Notify { to, notification } => {
                let Some(to) = id_of(to) else { return };
                out.votes.push((to, Vote::from(&notification)));
            }
            Effect::Dial { leader } => {
                let Some(peer) = id_of(leader) else { return };
                self.dials += 1;
                let name = Connection { dialler: me, life: self.life, dial: self.dials };
                let conn = ConnId(self.begin(name, peer));
                facts.push_back(Fact::Dialled { leader, conn });
            }
            Effect::Send { conn, packet } => {
                let is_open = self.ends.get(&conn.0).is_some_and(|end| end.open);
                if is_open && packet.kind != PacketType::Ping {
                    out.packets.entry(conn.0).or_default().0.push(encoded(&packet));
                }
            }
            Effect::Close { conn } => {
                if let Some(end) = self.ends.get_mut(&conn.0).filter(|end| end.open) {
                    end.open = false;
                    out.packets.entry(conn.0).or_default().1 = true;
                }
            }
            Effect::Reply { client, frame } => self.replied(client, frame, facts, out),
            Effect::CloseClient { client } => {
                if let Some(Asked { request, op, connected }) = self.asked.remove(&client.0) {
                    let outcome = if connected {
                        Outcome::lost(&op, "the member has no leader any more")
                    } else {
                        Outcome::not_sent(&op, "the member serves nobody")
                    };
                    out.answers.push((request, outcome));
                }
            }
            Effect::Event(event) => {
                out.tells |= !matches!(event, Event::Synchronizing { .. });
            }
            Effect::Halt { reason } => self.halted = Some(reason),
            // No tree is ever sent: the history in memory goes back to the beginning.
            Effect::SendImage { .. } | Effect::TakeSnapshot(_) | Effect::Ensemble { .. } => {}
        }
    }

    /// A connection stands.
    fn begin(&mut self, name: Connection, peer: Id) -> u64 {
        self.conns += 1;
        let end = End { name, peer, sent: 0, taken: 0, early: BTreeMap::new(), open: true };
        self.ends.insert(self.conns, end);
        self.conns
    }

    /// What came on a connection, or is the beginning of one.
    fn arrived(&mut self, me: Id, from: Id, packets: Packets, out: &mut Outbox) {
        let Packets { connection: name, number, .. } = packets;
        let known = self.ends.iter().find(|(_, end)| end.name == name && end.peer == from && end.open);
        let known = known.map(|(conn, _)| *conn);
        let conn = match known {
            // It dialled again, in a life that had no time to be told from the one before.
            Some(conn) if number == 0 && name.dialler != me && self.ends[&conn].taken > 0 => {
                self.lost(me, conn, out);
                self.begin(name, from)
            }
            Some(conn) => conn,
            None if name.dialler == me => return,
            None => self.begin(name, from),
        };
        if let Some(end) = self.ends.get_mut(&conn) {
            end.early.insert(number, packets);
        }
        while let Some(packets) = self.ends.get_mut(&conn).and_then(End::next) {
            let opens = packets.number == 0 && name.dialler != me;
            let conn = ConnId(conn);
            let accepted = opens.then_some(Fact::Accepted { conn });
            let said = packets.decoded().map(|packet| Fact::Packet { conn, packet });
            self.take(me, accepted.into_iter().chain(said), out);
            if packets.closes {
                self.lost(me, conn.0, out);
            }
        }
    }

    fn lost(&mut self, me: Id, conn: u64, out: &mut Outbox) {
        if let Some(end) = self.ends.get_mut(&conn).filter(|end| end.open) {
            end.open = false;
            self.take(me, [Fact::PeerLost { conn: ConnId(conn) }], out);
        }
    }

    /// Time passes until something comes of it.
    fn waits_no_longer(&mut self, me: Id, out: &mut Outbox) {
        for _ in 0..MOST_TICKS {
            self.clock += TICK;
            self.take(me, [Fact::Tick], out);
            // A vote that is told again is still on its way.
            let told = &self.votes;
            out.votes.retain(|(to, vote)| told.get(to).is_none_or(|last| !last.says_as(vote)));
            if !out.is_empty() {
                return;
            }
        }
    }

    // Clients.

    fn ask(&mut self, me: Id, request: Request, op: Op, out: &mut Outbox) {
        self.clients += 1;
        let client = ClientId(self.clients);
        self.asked.insert(client.0, Asked { request, op, connected: false });
        let connect = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: Zxid::ZERO,
            timeout_ms: SESSION_MS,
            session: SessionId::NONE,
            password: Bytes::new(),
            read_only: None,
        };
        self.take(me, [Fact::ClientConnect { client, request: connect, who: Vec::new() }], out);
    }

    /// The first answer is the session, the second that to the request.
    fn replied(&mut self, client: ClientId, frame: Bytes, facts: &mut VecDeque<Fact>, out: &mut Outbox) {
        let Some(asked) = self.asked.get_mut(&client.0) else { return };
        if !asked.connected {
            asked.connected = true;
            match asking(&asked.op) {
                Some(request) => facts.push_back(Fact::ClientRequest { client, request }),
                None => {
                    let outcome = Outcome::not_sent(&asked.op, "here clients write and read");
                    out.answers.push((asked.request, outcome));
                    self.asked.remove(&client.0);
                    facts.push_back(Fact::ClientLost { client });
                }
            }
            return;
        }
        if let Some(Asked { request, op, .. }) = self.asked.remove(&client.0) {
            out.answers.push((request, answered(&op, frame)));
            facts.push_back(Fact::ClientLost { client });
        }
    }

    /// Lets everything leave: what is written last, because nothing that a step sends waits for what the same
    /// step writes.
    fn leave<P>(&mut self, out: Outbox, io: &mut Io<'_, P>)
    where
        P: Protocol<Message = Message, Record = Record, Timer = Wait>,
    {
        for (to, vote) in out.votes {
            self.votes.insert(to, vote.clone());
            io.send(to, Message::Vote(vote));
        }
        for (conn, (packets, closes)) in out.packets {
            let Some(end) = self.ends.get_mut(&conn) else { continue };
            let packets = Packets { connection: end.name, number: end.sent, packets, closes };
            end.sent += 1;
            io.send(end.peer, Message::Packets(packets));
        }
        for (request, outcome) in out.answers {
            io.answer(request, outcome);
        }
        self.ends.retain(|_, end| end.open);
        let waits = match self.member.member().status().role {
            Role::Looking => Wait::Votes,
            Role::Following(_) => Wait::Leader,
            Role::Leading => Wait::Followers,
        };
        if self.waits != Some(waits) {
            self.waits.inspect(|before| io.cancel(*before));
            self.waits = Some(waits);
            io.set(waits, WAIT_US);
        }
        for (ticket, record) in out.writes {
            io.write(record);
            io.send(io.me, Message::Stored(ticket));
        }
    }
}

impl End {
    /// What comes next on it, if that is there.
    fn next(&mut self) -> Option<Packets> {
        let packets = self.early.remove(&self.taken).filter(|_| self.open)?;
        self.taken += 1;
        Some(packets)
    }
}

/// The request that an operation is.
fn asking(op: &Op) -> Option<Asking> {
    let path = format!("/{}", op.key).into();
    let (code, body) = match &op.body {
        Body::Write { value } => {
            let data = Some(Bytes::from(value.to_string()));
            (OpCode::SetData, encode(|w| w.write(&SetDataRequest { path, data, version: -1 })))
        }
        Body::Read => (OpCode::GetData, encode(|w| w.write(&PathWatch { path, watch: false }))),
        _ => return None,
    };
    Some(Asking { xid: 1, op: code.code(), body })
}

/// What the frame of an answer says.
fn answered(op: &Op, mut frame: Bytes) -> Outcome {
    let length = size_of::<i32>().min(frame.len());
    let mut reader = Reader::new(frame.split_off(length));
    let Ok(header) = reader.read::<ReplyHeader>() else { return Outcome::wrong_answer(op) };
    if header.err != 0 {
        let name = ErrorCode::from_code(header.err).map(|code| format!("{code:?}"));
        let name = name.unwrap_or_else(|| header.err.to_string());
        return Outcome::without_result(EventKind::Fail, op, name);
    }
    if !matches!(op.body, Body::Read) {
        return Outcome::told(op.value(), None);
    }
    let Ok(read) = reader.read::<GetDataResponse>() else { return Outcome::wrong_answer(op) };
    let text = String::from_utf8_lossy(read.data.as_deref().unwrap_or_default()).into_owned();
    let value = text.parse().map_or(Value::Null, Value::One);
    Outcome::told(value, None)
}

impl<M> Protocol for Members<M>
where
    M: Maker + fmt::Debug + Eq + Hash + Send + Sync,
    M::Machine: Send,
{
    type Member = Process<M>;
    type Message = Message;
    type Record = Record;
    type Timer = Wait;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        crate::NAME
    }

    fn start(&self, disk: &[Record], io: &mut Io<'_, Self>) -> Process<M> {
        let mut process = Process::new(self.0, io.me, io.members, disk);
        let mut out = Outbox::default();
        // The first fact begins the first lookup; this one does nothing else.
        process.take(io.me, [Fact::ClientLost { client: ClientId(u64::MAX) }], &mut out);
        process.leave(out, io);
        process
    }

    fn step(&self, process: &mut Process<M>, input: Input<Self>, io: &mut Io<'_, Self>) {
        let (me, mut out) = (io.me, Outbox::default());
        match input {
            Input::Message { from, message: Message::Vote(vote) } => {
                let from = server_of(from);
                let fact = vote.notification().map(|notification| Fact::Notification { from, notification });
                process.take(me, fact, &mut out);
            }
            Input::Message { from, message: Message::Packets(packets) } => {
                process.arrived(me, from, packets, &mut out);
            }
            Input::Message { message: Message::Stored(ticket), .. } => {
                process.take(me, [Fact::Stored { ticket }], &mut out);
            }
            Input::Timer(_) => {
                process.waits = None;
                process.waits_no_longer(me, &mut out);
            }
            Input::Request { request, op } => process.ask(me, request, op, &mut out),
        }
        process.leave(out, io);
    }

    fn disk(&self, words: &str) -> Result<Vec<Record>, String> {
        record::read(words)
    }

    fn hears_itself_at_once(&self) -> bool {
        true
    }

    fn judge(&self, memory: &mut Memory, members: &[Member<'_, Self>]) -> Result<(), Broken> {
        for Member { id, running, .. } in members {
            if let Some(reason) = running.and_then(|process| process.halted.as_ref()) {
                return Err(Broken::new("halt", format!("{id} stops: {reason}")));
            }
            memory.see(*id, running.map(|process| process.member.member()))?;
        }
        Ok(())
    }

    fn look(&self, memory: &Memory) -> String {
        memory.look()
    }

    fn workload(&self) -> Option<Kind> {
        None
    }

    fn leads(&self, process: &Process<M>) -> Option<u64> {
        let status = process.member.member().status();
        (status.established && status.role == Role::Leading).then_some(u64::from(status.current_epoch.0))
    }

    fn shows(&self, process: &Process<M>) -> Option<String> {
        let status = process.member.member().status();
        let epoch = status.current_epoch;
        let role = match status.role {
            Role::Looking => {
                let vote = process.votes.values().max_by_key(|vote| vote.round());
                return vote.map(|vote| format!("votes s{}, round {}", vote.leader(), vote.round()));
            }
            Role::Leading if status.established && status.last_logged == Zxid::ZERO => {
                return Some(format!("leads epoch {epoch}"));
            }
            Role::Leading if status.established => format!("leads {epoch}"),
            Role::Leading => return Some("elected".to_owned()),
            Role::Following(leader) if status.established => format!("follows s{leader}"),
            Role::Following(leader) => return Some(format!("goes to s{leader}")),
        };
        let (logged, applied) = (status.last_logged, status.last_applied);
        Some(match (logged > applied, applied > Zxid::ZERO) {
            (true, _) => format!("{role}: logged {}", dotted(logged)),
            (false, true) => format!("{role}: delivered {}", dotted(applied)),
            (false, false) => role,
        })
    }
}
