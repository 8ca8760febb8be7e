//! One client of a planned run: a session that moves between members and comes home again.
//!
//! What it does next is the load's word (`load`); here is how: frames, answers, time-outs and pings. An
//! operation without an answer in time stays open, and the connection stays as well, unless it was the
//! session's end. Whoever moves gives its connection up first.

use bytes::Bytes;
use harness_core::load::{self, CONNECT_PATIENCE_NS, ClientId, Step};
use node_wire::client::{ErrorCode, XID_PING, XID_WATCH};
use node_wire::ids::{ServerId, SessionId, Zxid};
use workloads::Op;
use zookeeper_mapping::{Action, Answer, request};

use super::super::population::operations::answer_of;
use super::super::{Event, World};
use super::one_off::{CALM_PATIENCE_US, OneOff};
use crate::client::{self, Client, Flow, Purpose, Session};
use crate::network::HostIndex;
use crate::part::Part;
use harness_world::dice::Dice;
use harness_world::time::Time;

/// How long one member may take to answer a connect.
const CONNECT_PATIENCE_US: u64 = CONNECT_PATIENCE_NS / 1000;

/// A timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Wake {
    /// An operation falls due.
    Due,
    /// A client tries to connect.
    Connect { slot: usize, plan: u64 },
    /// It waited long enough, for a connection or for an answer.
    GiveUp { slot: usize, plan: u64 },
    /// It keeps the session of this connection alive.
    Ping { slot: usize, conn: usize },
    /// It thinks of home.
    Homesick { slot: usize, conn: usize },
}

impl Wake {
    pub(super) fn connect(slot: usize, plan: u64) -> Self {
        Self::Connect { slot, plan }
    }

    fn give_up(slot: usize, plan: u64) -> Self {
        Self::GiveUp { slot, plan }
    }
}

/// What is known of a session that began or ended.
pub(super) struct Told {
    pub(super) session: SessionId,
    /// When it was asked for; none where that is now.
    pub(super) since_ns: Option<u64>,
    /// Who said so, if anybody did.
    pub(super) member: Option<u64>,
}

/// A client.
pub(super) struct Slot {
    /// Its session, its connection and its frames.
    pub(super) wire: Client,
    /// Which of the load's clients it is; of no meaning to a one-off client.
    pub(super) client: ClientId,
    /// Counts plans: a timer of an earlier one is void.
    plan: u64,
    /// The operation under way.
    pub(super) open: Option<Op>,
    pub(super) one_off: Option<OneOff>,
    heard: Time,
}

impl Slot {
    pub(super) fn new(client: ClientId, home: HostIndex, dice: Dice) -> Self {
        let wire = Client::new(Vec::new(), home, 0, dice);
        Self { wire, client, plan: 0, open: None, one_off: None, heard: Time::default() }
    }

    /// The connection is gone; the session stays.
    fn leave(&mut self) {
        self.wire.conn = None;
        self.wire.ready = false;
        self.wire.awaited.clear();
    }
}

impl World {
    fn slot(&mut self, slot: usize) -> &mut Slot {
        &mut self.the_plan().load.slots[slot]
    }

    /// A client of its own begins, for these operations alone. Gives its slot.
    pub(super) fn begin_one_off(&mut self, member: ServerId, process: u64, todo: Vec<Op>) -> usize {
        let Some(host) = self.ensemble.index_of(member) else { return usize::MAX };
        let (until, seed) = (self.clock.now + CALM_PATIENCE_US, self.clock.drawn.seed);
        let index = self.plan_of().load.slots.len();
        let number = u64::try_from(index).expect("clients are few");
        let mut slot = Slot::new(index, host, Dice::part(seed, Part::Client(number)));
        slot.one_off = Some(OneOff::new(process, todo, until));
        self.the_plan().load.slots.push(slot);
        self.set_slot(index, 0, Wake::connect);
        index
    }

    /// The next operation of a one-off client, or its end.
    fn go_on_with_one_off(&mut self, index: usize) {
        let Some(one_off) = &mut self.slot(index).one_off else { return };
        match one_off.next_operation() {
            Some(op) => self.invoke_at(index, op, None),
            None => self.leave_slot(index),
        }
    }

    /// Whether a connection that did not come about, or broke, ends a one-off client.
    fn one_off_failed_to_connect(&mut self, index: usize) -> bool {
        let now = self.clock.now;
        self.slot(index).one_off.as_mut().is_some_and(|one_off| one_off.failed_to_connect(now))
    }

    /// Sets a client's one timer.
    pub(super) fn set_slot(&mut self, slot: usize, delay_us: u64, wake: fn(usize, u64) -> Wake) {
        self.slot(slot).plan += 1;
        let plan = self.slot(slot).plan;
        self.clock.plan(delay_us, Event::Planned(wake(slot, plan)));
    }

    pub(in super::super) fn wake_slot(&mut self, wake: Wake) {
        match wake {
            Wake::Due => self.falls_due(),
            Wake::Connect { slot, plan } if self.slot(slot).plan == plan => self.attempt(slot),
            Wake::GiveUp { slot, plan } if self.slot(slot).plan == plan => self.give_up(slot),
            Wake::Connect { .. } | Wake::GiveUp { .. } => {}
            Wake::Ping { slot, conn } => self.ping_from(slot, conn),
            Wake::Homesick { slot, conn } => {
                if self.slot(slot).wire.conn == Some(conn) && self.slot(slot).open.is_none() {
                    self.the_plan().load.idle.retain(|idle| *idle != slot);
                    self.is_free(slot);
                }
            }
        }
    }

    fn has_work(&self, slot: usize) -> bool {
        let load = &self.plan_of().load;
        match &load.slots[slot].one_off {
            Some(one_off) => !one_off.over,
            None => load.rules.is_open(),
        }
    }

    /// Makes one attempt to connect.
    fn attempt(&mut self, index: usize) {
        if !self.has_work(index) {
            if self.slot(index).one_off.is_none() {
                self.leave_slot(index);
            }
            return;
        }
        let host = if self.slot(index).one_off.is_some() {
            self.slot(index).wire.member
        } else {
            loop {
                match self.next_step(index) {
                    Step::WriteOff(due, why) => self.never_sent(index, &due, why),
                    Step::Connect(member) => {
                        break self.ensemble.index_of(ServerId(member.0)).unwrap_or_default();
                    }
                    Step::Do(_) | Step::Wait(_) | Step::Leave => return,
                }
            }
        };
        self.slot(index).wire.member = host;
        self.set_slot(index, CONNECT_PATIENCE_US, Wake::give_up);
        if self.ensemble.hosts[host].process.is_none() {
            self.attempt_failed(index);
            return;
        }
        let now = self.clock.now;
        let conn = self.population.open_client_conn(&self.ensemble, &self.oracle, index, host);
        let timeout = i32::try_from(self.clock.drawn.session_timeout_ms).unwrap_or(i32::MAX);
        let wire = &mut self.slot(index).wire;
        wire.conn = Some(conn);
        wire.ready = false;
        wire.asked_at = now;
        let frame = wire.connect(timeout, None, false);
        self.population.send_to_member(&mut self.clock, conn, Flow::Frame(frame));
    }

    /// Pauses before the next attempt.
    fn attempt_failed(&mut self, index: usize) {
        self.close_slot(index);
        if self.one_off_failed_to_connect(index) {
            return;
        }
        self.tell(index, load::Load::refused);
        let backoff = match &mut self.slot(index).one_off {
            Some(one_off) => one_off.pause_us(),
            None => match self.next_step(index) {
                Step::Wait(Some(until)) => (until / 1000).saturating_sub(self.clock.now.0),
                _ => return,
            },
        };
        self.set_slot(index, backoff, Wake::connect);
    }

    /// Closes what connection there is; the session stays.
    fn close_slot(&mut self, index: usize) {
        if let Some(conn) = self.slot(index).wire.conn {
            self.population.client_conns[conn].client_open = false;
            self.population.client_conns[conn].to_client.lose();
            self.population.send_to_member(&mut self.clock, conn, Flow::Fin);
        }
        self.slot(index).leave();
        self.the_plan().load.idle.retain(|idle| *idle != index);
    }

    /// Goes away for good. Its session is left to expire, and whoever judges sessions counts from here.
    pub(super) fn leave_slot(&mut self, index: usize) {
        self.close_slot(index);
        self.let_go(index, &Answer::Abandoned, None);
        self.slot(index).plan += 1;
    }

    /// The connection is gone, or is given up: what was under way is lost, and home is tried first.
    fn lose_slot(&mut self, index: usize, reason: &str) {
        let was_ready = self.slot(index).wire.ready;
        if let Some(op) = self.slot(index).open.take() {
            self.finish_operation(index, &op, &Answer::Lost { reason: reason.to_owned() });
        }
        if !was_ready {
            self.attempt_failed(index);
            return;
        }
        self.go_home(index);
    }

    /// A client's session is over for it, in a way that no operation of the workload says.
    fn let_go(&mut self, index: usize, answer: &Answer, member: Option<u64>) {
        if let Some(session) = self.slot(index).wire.session.take() {
            let told = Told { session: session.id, since_ns: None, member };
            self.note_life(index, &Op::abandon(), answer, &told);
        }
    }

    /// The member that a client is connected to, or was, as histories name it.
    fn member_of(&mut self, index: usize) -> Option<u64> {
        u64::try_from(self.slot(index).wire.member + 1).ok()
    }

    /// Gives its connection up, and connects again: at home, if home takes it.
    pub(super) fn go_home(&mut self, index: usize) {
        self.close_slot(index);
        self.tell(index, load::Load::lost);
        self.set_slot(index, 0, Wake::connect);
    }

    fn give_up(&mut self, index: usize) {
        let Some(op) = self.slot(index).open.take() else {
            if !self.slot(index).wire.ready {
                self.attempt_failed(index);
            }
            return;
        };
        // An answer that comes later is dropped.
        for (_, purpose) in &mut self.slot(index).wire.awaited {
            *purpose = Purpose::Nothing;
        }
        let answer = Answer::Lost { reason: "no answer in time".to_owned() };
        if self.finish_operation(index, &op, &answer) {
            self.go_home(index);
        } else {
            self.is_free(index);
        }
    }

    fn ping_from(&mut self, index: usize, conn: usize) {
        let now = self.clock.now;
        let slot = self.slot(index);
        let Some(session) = slot.wire.session.as_ref().filter(|_| slot.wire.conn == Some(conn)) else {
            return;
        };
        let every = u64::try_from(session.timeout_ms).unwrap_or(0).max(3) * 1000 / 3;
        if now.since(slot.heard) >= 2 * every {
            self.lose_slot(index, "the member is silent");
            return;
        }
        self.population.send_to_member(&mut self.clock, conn, Flow::Frame(client::ping()));
        self.clock.plan(every, Event::Planned(Wake::Ping { slot: index, conn }));
    }

    /// Sends an operation.
    pub(super) fn invoke_at(&mut self, index: usize, op: Op, due: Option<u64>) {
        self.note_invoke(index, &op, due, true);
        if request(&op) == Action::Abandon {
            // Silent from before the moment that is written down.
            self.close_slot(index);
            self.note_answer(index, &op, &Answer::Abandoned, true);
            self.slot(index).wire.session = None;
            self.go_home(index);
            return;
        }
        let frames = self.slot(index).wire.frames_of(&op);
        self.slot(index).open = Some(op);
        let Some(conn) = self.slot(index).wire.conn else { return };
        for frame in frames {
            self.population.send_to_member(&mut self.clock, conn, Flow::Frame(frame));
        }
        let one_off = self.slot(index).one_off.is_some();
        let patience = if one_off { CALM_PATIENCE_US } else { self.clock.drawn.op_timeout_us };
        self.set_slot(index, patience, Wake::give_up);
    }

    /// Notes what came of an operation. True if the session is over with it: the next one is a new one.
    fn finish_operation(&mut self, index: usize, op: &Op, answer: &Answer) -> bool {
        let outcome = self.note_answer(index, op, answer, true);
        if let Some(one_off) = &mut self.slot(index).one_off {
            one_off.note(op.clone(), outcome);
        }
        if !op.ends_session() {
            return false;
        }
        if matches!(answer, Answer::Closed { .. }) {
            self.slot(index).wire.session = None;
        } else {
            // Closed or not, nothing more is heard of it from here.
            let member = self.member_of(index);
            self.let_go(index, &Answer::Abandoned, member);
        }
        true
    }

    /// A connected client has nothing under way: it goes on with its own operations, goes home, or waits for
    /// what is due.
    fn is_free(&mut self, index: usize) {
        if self.slot(index).one_off.is_some() {
            self.go_on_with_one_off(index);
            return;
        }
        if self.carry_on(index) {
            self.the_plan().load.idle.push_back(index);
        }
    }

    /// What arrived at a client.
    pub(in super::super) fn member_to_slot(&mut self, conn: usize) {
        let index = self.population.client_conns[conn].client;
        while self.population.client_conns[conn].client_open {
            let now = self.clock.now;
            let Some(flow) = self.population.client_conns[conn].to_client.receive(now) else { return };
            self.slot(index).heard = now;
            match flow {
                Flow::Fin => {
                    self.population.client_conns[conn].client_open = false;
                    self.lose_slot(index, "the connection broke");
                }
                Flow::Frame(frame) if self.slot(index).wire.ready => self.slot_hears(index, frame),
                Flow::Frame(frame) => self.slot_connected(index, conn, frame),
            }
        }
    }

    fn slot_connected(&mut self, index: usize, conn: usize, frame: Bytes) {
        let response = client::connect_response(frame).expect("a member's answer is well formed");
        let member = self.member_of(index);
        if response.timeout_ms <= 0 {
            self.let_go(index, &Answer::Expired, member);
            self.attempt_failed(index);
            return;
        }
        let slot = self.slot(index);
        if let Some(session) = &mut slot.wire.session {
            session.timeout_ms = response.timeout_ms;
        } else {
            let (id, timeout_ms) = (response.session, response.timeout_ms);
            slot.wire.session =
                Some(Session { id, password: response.password, timeout_ms, seen: Zxid::ZERO });
            let told = Told { session: id, since_ns: Some(slot.wire.asked_at.as_ns()), member };
            self.note_life(index, &Op::open(), &Answer::Opened { timeout_ms }, &told);
        }
        let slot = self.slot(index);
        slot.wire.ready = true;
        slot.plan += 1;
        if let Some(one_off) = &mut slot.one_off {
            one_off.connected();
        }
        let client = slot.one_off.is_none().then_some(slot.client);
        self.tell(index, load::Load::connected);
        self.clock.plan(1000, Event::Planned(Wake::Ping { slot: index, conn }));
        if let Some(at) = client.and_then(|client| self.plan_of().load.rules.homesick_at(client)) {
            let until = (at / 1000).saturating_sub(self.clock.now.0);
            self.clock.plan(until, Event::Planned(Wake::Homesick { slot: index, conn }));
        }
        self.is_free(index);
    }

    fn slot_hears(&mut self, index: usize, frame: Bytes) {
        let (header, body) = client::reply(frame);
        if header.xid == XID_WATCH || header.xid == XID_PING {
            return;
        }
        let wire = &mut self.slot(index).wire;
        let expected = wire.awaited.pop_front();
        let Some((_, purpose)) = expected.filter(|(xid, _)| *xid == header.xid) else {
            // What can't be matched is no answer to anything, and the connection is worth nothing any more.
            self.lose_slot(index, "an answer out of order");
            return;
        };
        if let Some(session) = &mut wire.session {
            session.seen = session.seen.max(header.zxid);
        }
        let answer = match answer_of(purpose, header, body) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(_) => {
                self.lose_slot(index, "a malformed answer");
                return;
            }
        };
        let Some(op) = self.slot(index).open.take() else { return };
        if purpose == Purpose::Sync {
            // The read behind a refused sync counts for nothing.
            if let Some((_, next)) = self.slot(index).wire.awaited.front_mut() {
                *next = Purpose::Nothing;
            }
        }
        let over = self.finish_operation(index, &op, &answer);
        let moved = matches!(
            answer,
            Answer::Refused { code: ErrorCode::SessionMoved | ErrorCode::SessionExpired, .. }
        );
        if over {
            self.go_home(index);
        } else if moved {
            self.lose_slot(index, "the session is elsewhere");
        } else {
            self.is_free(index);
        }
    }
}
