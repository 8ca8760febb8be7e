//! What clients do: an open loop of operations over connections that move.
//!
//! Operations fall due at moments that do not depend on anybody ([`Arrivals`], [`Load::falls_due`]). Each
//! client asks what to do at its own moment ([`Load::next`]) and is told one [`Step`]: send this, connect
//! there, write that off, wait. Whoever is connected and free takes what fell due first. The drivers say what
//! became of connections and operations, and see to it that clients ask in the order in which they became
//! free, so that work goes round all of them, those beside a fault included.
//!
//! The rules:
//!
//! - An operation is handed out once. What became of it is in the history; nothing is tried again.
//! - An operation that nobody took within a client's patience is over before it began: it is handed out only
//!   to be written down as never sent. Clients without a connection do that too, between two attempts.
//! - Why it was never sent is written down with it: no client was free; its client was being replaced; or no
//!   member took its client, which alone is the members' doing.
//! - An operation whose fate stays unknown retires its process: the client goes on under a number that nobody
//!   used.
//! - A client tries one member after the other, home first, with a pause that grows; one that is away from
//!   home tries to go there about once a second, so that there are clients on every member again soon after a
//!   fault.
//! - Of every so many clients of a member one only reads, where they are no applications. Answers come in
//!   the order of the questions, so behind a write that can't be committed nothing is answered any more on
//!   its connection. Only a client that never writes can be told something stale by a leader that was deposed
//!   and does not know.

mod arrivals;
mod client;
mod connects;

use std::collections::VecDeque;

use runs::clock::RunNs;
use runs::member::MemberId;
use runs::observed::Shut;
use workloads::outcome::{CLIENT_REPLACED, NO_CLIENT_FREE, NO_MEMBER_TOOK};
use workloads::{Op, Outcome, Workload};

pub use arrivals::Arrivals;
use client::{Client, May};
use connects::Connects;

const MS: u64 = 1_000_000;

/// How long one member may take to answer a connect, in ns: a paused one accepts and says nothing.
pub const CONNECT_PATIENCE_NS: u64 = 200 * MS;
/// The pause after the first failed attempt to connect, and the longest, in ns.
pub const BACKOFF_NS: (u64, u64) = (5 * MS, 50 * MS);
/// How often a client that is away tries to go home, in ns.
pub const HOMESICK_NS: u64 = 1000 * MS;
/// Of every so many clients of a member, one only reads.
pub const READER_EACH: usize = 4;
/// Operations that wait at most; more than this means that nobody takes any, and then they are counted only.
const MAX_WAITING: usize = 100_000;
/// Expired operations that a client writes off between two attempts to connect.
const WRITE_OFF_AT_ONCE: usize = 64;

/// A client, by its number from zero.
pub type ClientId = usize;

/// What a client is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this, once, where it is connected.
    Do(Due),
    /// Write this down as never sent, for this reason. No connection is needed.
    WriteOff(Due, &'static str),
    /// Connect to a member, within [`CONNECT_PATIENCE_NS`]. Whoever is connected keeps that connection until
    /// the new one stands; a driver that can't says first that it is lost.
    Connect(MemberId),
    /// Ask again at this moment, when something falls due, or when the connection is lost.
    Wait(Option<RunNs>),
    /// The load is over.
    Leave,
}

/// An operation that fell due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: RunNs,
    /// Under which number it is done.
    pub process: u64,
    /// What is to be done.
    pub op: Op,
}

/// What a load is made of.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Whom clients connect to. A client's home follows from its number.
    pub members: Vec<MemberId>,
    /// How many clients there are: the step from a retired process to its successor.
    pub clients: usize,
    /// How long an operation may wait for a client, and a client for an answer.
    pub patience_ns: u64,
}

/// What all clients share.
#[derive(Debug)]
pub struct Load {
    terms: Terms,
    workload: Workload,
    clients: Vec<Client>,
    /// What fell due and was taken by nobody yet.
    due: VecDeque<RunNs>,
    shed: u64,
    open: bool,
    connects: Connects,
}

impl Load {
    /// A load that has not begun.
    ///
    /// # Panics
    /// Where there are no members.
    #[must_use]
    pub fn new(terms: Terms, workload: Workload) -> Self {
        let members = terms.members.len();
        assert!(members > 0, "clients need a member to connect to");
        let holds = workload.kind().applications().is_some();
        let client = |number: usize| {
            let only_reads = !holds && (number / members) % READER_EACH == READER_EACH - 1;
            Client::new(number % members, u64::try_from(number).unwrap_or(u64::MAX), only_reads)
        };
        let clients = (0..terms.clients).map(client).collect();
        Self {
            terms,
            workload,
            clients,
            due: VecDeque::new(),
            shed: 0,
            open: false,
            connects: Connects::default(),
        }
    }

    /// Lets clients in.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Nobody takes a further operation. What waits is dropped: it was never anybody's.
    pub fn close(&mut self) {
        self.open = false;
        self.due.clear();
    }

    /// Whether clients are let in.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// An operation falls due. False if it is only counted, because too many wait.
    pub fn falls_due(&mut self, at: RunNs) -> bool {
        let room = self.due.len() < MAX_WAITING;
        if room {
            self.due.push_back(at);
        } else {
            self.shed += 1;
        }
        room
    }

    /// Whether something waits for a client.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Operations that were dropped because nobody took any.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.shed
    }

    /// What a client does next. It must say what became of it before it asks again, waiting aside.
    pub fn next(&mut self, client: ClientId, now: RunNs) -> Step {
        if !self.open {
            return Step::Leave;
        }
        let mine = &mut self.clients[client];
        match mine.may(&self.terms.members, now) {
            May::Rest(until) => Step::Wait(until),
            May::Connect(member) => {
                if mine.written_off < WRITE_OFF_AT_ONCE && self.expires(now) {
                    self.clients[client].written_off += 1;
                    let replaced = self.clients[client].is_replaced;
                    return self.write_off(client, if replaced { CLIENT_REPLACED } else { NO_MEMBER_TOOK });
                }
                self.clients[client].sets_out(self.terms.members.len(), now);
                Step::Connect(member)
            }
            May::MoveHome(member) => {
                mine.sets_out(self.terms.members.len(), now);
                Step::Connect(member)
            }
            May::Take { .. } if self.expires(now) => self.write_off(client, NO_CLIENT_FREE),
            May::Take { homesick_at } => match self.due.pop_front() {
                Some(at) => Step::Do(self.operation(client, at)),
                None => Step::Wait(homesick_at),
            },
        }
    }

    /// Whether what fell due first waited for longer than a client would.
    fn expires(&self, now: RunNs) -> bool {
        self.due.front().is_some_and(|at| now.saturating_sub(*at) > self.terms.patience_ns)
    }

    fn write_off(&mut self, client: ClientId, why: &'static str) -> Step {
        let at = self.due.pop_front().unwrap_or_default();
        Step::WriteOff(self.operation(client, at), why)
    }

    fn operation(&mut self, client: ClientId, at: RunNs) -> Due {
        let Client { process, only_reads, .. } = self.clients[client];
        let op = if only_reads { self.workload.next_look(process) } else { self.workload.next_op(process) };
        Due { at, process, op }
    }

    /// When a connected client thinks of going home; none where it is at home.
    #[must_use]
    pub fn homesick_at(&self, client: ClientId) -> Option<RunNs> {
        self.clients[client].homesick_at()
    }

    /// The member that a client was sent to took it.
    pub fn connected(&mut self, client: ClientId, now: RunNs) {
        if let Some(member) = self.clients[client].goes_to(&self.terms.members) {
            self.connects.succeeded(member);
        }
        self.clients[client].connected(now);
    }

    /// The member that a client was sent to did not take it.
    pub fn refused(&mut self, client: ClientId, now: RunNs) {
        if let Some(member) = self.clients[client].goes_to(&self.terms.members) {
            self.connects.failed(member, now);
        }
        self.clients[client].refused(now);
    }

    /// A client could not set out to where it was sent, because it was being replaced itself: no member had
    /// a part in that.
    pub fn not_there(&mut self, client: ClientId, now: RunNs) {
        self.clients[client].refused(now);
        self.clients[client].is_replaced = true;
    }

    /// When members took no connection of any client.
    #[must_use]
    pub fn shut(&self) -> Vec<Shut> {
        self.connects.shut()
    }

    /// What a client is was replaced by a new one: it acts under a number that nobody used, and is nowhere.
    pub fn is_new(&mut self, client: ClientId, now: RunNs) {
        self.clients[client].process += u64::try_from(self.terms.clients).unwrap_or(u64::MAX);
        self.clients[client].lost(now);
    }

    /// A client's connection is gone, or it gave it up.
    pub fn lost(&mut self, client: ClientId, now: RunNs) {
        self.clients[client].lost(now);
    }

    /// What became of a client's operation.
    pub fn completed(&mut self, client: ClientId, op: &Op, outcome: &Outcome) {
        let mine = &mut self.clients[client];
        self.workload.complete(mine.process, op, outcome);
        if outcome.retires() {
            mine.process += u64::try_from(self.terms.clients).unwrap_or(u64::MAX);
        }
    }

    /// A fault hits what a client is: it gives nothing up before it has changed something once more.
    pub fn works_on(&mut self, client: ClientId) {
        self.workload.works_on(self.clients[client].process);
    }

    /// What a client is was replaced: the new one holds nothing.
    pub fn begins_anew(&mut self, client: ClientId) {
        self.workload.begins_anew(self.clients[client].process);
    }

    /// The number under which a client acts.
    #[must_use]
    pub fn process(&self, client: ClientId) -> u64 {
        self.clients[client].process
    }

    /// A number above all that clients have used.
    #[must_use]
    pub fn next_process(&self) -> u64 {
        self.clients.iter().map(|client| client.process + 1).max().unwrap_or(1)
    }

    /// The workload, for the first and the last operations.
    pub fn workload_mut(&mut self) -> &mut Workload {
        &mut self.workload
    }

    /// The same, to look at.
    #[must_use]
    pub fn workload(&self) -> &Workload {
        &self.workload
    }
}
