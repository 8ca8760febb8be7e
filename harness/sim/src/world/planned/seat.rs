//! One client of a planned run: a session that moves between members and comes home again.
//!
//! What it does next is the load's word (`load`); here is how: frames, answers, time-outs and pings. An operation without
//! an answer in time stays open, and the connection stays as well, unless it was the session's end. Whoever moves gives its
//! connection up first.

use bytes::Bytes;
use harness_core::load::{self, CONNECT_PATIENCE_NS, ClientId, Step};
use node_core::Factory;
use node_wire::client::{ErrorCode, XID_PING, XID_WATCH};
use node_wire::ids::{ServerId, SessionId, Zxid};
use workloads::Op;
use zookeeper_mapping::{Action, Answer, request};

use super::super::operations::answer_of;
use super::super::{Event, World};
use super::errand::{CALM_PATIENCE_US, Errand};
use crate::client::{self, Client, Flow, Purpose, Session};
use crate::dice::{Dice, Part};
use crate::network::HostIndex;
use crate::time::Time;

/// How long one member may take to answer a connect.
const CONNECT_PATIENCE_US: u64 = CONNECT_PATIENCE_NS / 1000;

/// A timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Wake {
    /// An operation falls due.
    Due,
    /// A client tries to connect.
    Connect { seat: usize, plan: u64 },
    /// It waited long enough, for a connection or for an answer.
    GiveUp { seat: usize, plan: u64 },
    /// It keeps the session of this connection alive.
    Ping { seat: usize, conn: usize },
    /// It thinks of home.
    Homesick { seat: usize, conn: usize },
}

impl Wake {
    pub(super) fn connect(seat: usize, plan: u64) -> Self {
        Self::Connect { seat, plan }
    }

    fn give_up(seat: usize, plan: u64) -> Self {
        Self::GiveUp { seat, plan }
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
pub(super) struct Seat {
    /// Its session, its connection and its frames.
    pub(super) wire: Client,
    /// Which of the load's clients it is; of no meaning to an errand.
    pub(super) client: ClientId,
    /// Counts plans: a timer of an earlier one is void.
    plan: u64,
    /// The operation under way.
    pub(super) open: Option<Op>,
    pub(super) errand: Option<Errand>,
    heard: Time,
}

impl Seat {
    pub(super) fn new(client: ClientId, home: HostIndex, dice: Dice) -> Self {
        let wire = Client::new(Vec::new(), home, 0, dice);
        Self { wire, client, plan: 0, open: None, errand: None, heard: Time::default() }
    }

    /// The connection is gone; the session stays.
    fn leave(&mut self) {
        self.wire.conn = None;
        self.wire.ready = false;
        self.wire.awaited.clear();
    }
}

impl<F: Factory> World<F> {
    fn seat(&mut self, seat: usize) -> &mut Seat {
        &mut self.the_plan().load.seats[seat]
    }

    /// A client of its own sets out on an errand. Gives its seat.
    pub(super) fn begin_errand(&mut self, member: ServerId, process: u64, todo: Vec<Op>) -> usize {
        let Some(host) = self.index_of(member) else { return usize::MAX };
        let (until, seed) = (self.now + CALM_PATIENCE_US, self.drawn.seed);
        let index = self.plan_of().load.seats.len();
        let number = u64::try_from(index).expect("clients are few");
        let mut seat = Seat::new(index, host, Dice::part(seed, Part::Client(number)));
        seat.errand = Some(Errand::new(process, todo, until));
        self.the_plan().load.seats.push(seat);
        self.set_seat(index, 0, Wake::connect);
        index
    }

    /// The next operation of an errand, or its end.
    fn go_on_with_errand(&mut self, index: usize) {
        let Some(errand) = &mut self.seat(index).errand else { return };
        match errand.next_operation() {
            Some(op) => self.invoke_at(index, op, None),
            None => self.leave_seat(index),
        }
    }

    /// Whether a connection that did not come about, or broke, ends an errand.
    fn errand_failed_to_connect(&mut self, index: usize) -> bool {
        let now = self.now;
        self.seat(index).errand.as_mut().is_some_and(|errand| errand.failed_to_connect(now))
    }

    /// Sets a client's one timer.
    pub(super) fn set_seat(&mut self, seat: usize, delay_us: u64, wake: fn(usize, u64) -> Wake) {
        self.seat(seat).plan += 1;
        let plan = self.seat(seat).plan;
        self.plan(delay_us, Event::Planned(wake(seat, plan)));
    }

    pub(in super::super) fn wake_seat(&mut self, wake: Wake) {
        match wake {
            Wake::Due => self.falls_due(),
            Wake::Connect { seat, plan } if self.seat(seat).plan == plan => self.attempt(seat),
            Wake::GiveUp { seat, plan } if self.seat(seat).plan == plan => self.give_up(seat),
            Wake::Connect { .. } | Wake::GiveUp { .. } => {}
            Wake::Ping { seat, conn } => self.ping_from(seat, conn),
            Wake::Homesick { seat, conn } => {
                if self.seat(seat).wire.conn == Some(conn) && self.seat(seat).open.is_none() {
                    self.the_plan().load.idle.retain(|idle| *idle != seat);
                    self.is_free(seat);
                }
            }
        }
    }

    fn has_work(&self, seat: usize) -> bool {
        let load = &self.plan_of().load;
        match &load.seats[seat].errand {
            Some(errand) => !errand.over,
            None => load.rules.is_open(),
        }
    }

    /// Makes one attempt to connect.
    fn attempt(&mut self, index: usize) {
        if !self.has_work(index) {
            if self.seat(index).errand.is_none() {
                self.leave_seat(index);
            }
            return;
        }
        let host = if self.seat(index).errand.is_some() {
            self.seat(index).wire.member
        } else {
            loop {
                match self.next_step(index) {
                    Step::WriteOff(due, why) => self.never_sent(index, &due, why),
                    Step::Connect(member) => break self.index_of(ServerId(member.0)).unwrap_or_default(),
                    Step::Do(_) | Step::Wait(_) | Step::Leave => return,
                }
            }
        };
        self.seat(index).wire.member = host;
        self.set_seat(index, CONNECT_PATIENCE_US, Wake::give_up);
        if self.hosts[host].process.is_none() {
            self.attempt_failed(index);
            return;
        }
        let now = self.now;
        let conn = self.open_client_conn(index, host);
        let timeout = i32::try_from(self.drawn.session_timeout_ms).unwrap_or(i32::MAX);
        let wire = &mut self.seat(index).wire;
        wire.conn = Some(conn);
        wire.ready = false;
        wire.asked_at = now;
        let frame = wire.connect(timeout, None, false);
        self.send_to_member(conn, Flow::Frame(frame));
    }

    /// Pauses before the next attempt.
    fn attempt_failed(&mut self, index: usize) {
        self.close_seat(index);
        if self.errand_failed_to_connect(index) {
            return;
        }
        self.tell(index, load::Load::refused);
        let backoff = match &mut self.seat(index).errand {
            Some(errand) => errand.pause_us(),
            None => match self.next_step(index) {
                Step::Wait(Some(until)) => (until / 1000).saturating_sub(self.now.0),
                _ => return,
            },
        };
        self.set_seat(index, backoff, Wake::connect);
    }

    /// Closes what connection there is; the session stays.
    fn close_seat(&mut self, index: usize) {
        if let Some(conn) = self.seat(index).wire.conn {
            self.client_conns[conn].client_open = false;
            self.client_conns[conn].to_client.lose();
            self.send_to_member(conn, Flow::Fin);
        }
        self.seat(index).leave();
        self.the_plan().load.idle.retain(|idle| *idle != index);
    }

    /// Goes away for good. Its session is left to expire, and whoever judges sessions counts from here.
    pub(super) fn leave_seat(&mut self, index: usize) {
        self.close_seat(index);
        self.let_go(index, &Answer::Abandoned, None);
        self.seat(index).plan += 1;
    }

    /// The connection is gone, or is given up: what was under way is lost, and home is tried first.
    fn lose_seat(&mut self, index: usize, reason: &str) {
        let was_ready = self.seat(index).wire.ready;
        if let Some(op) = self.seat(index).open.take() {
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
        if let Some(session) = self.seat(index).wire.session.take() {
            let told = Told { session: session.id, since_ns: None, member };
            self.note_life(index, &Op::abandon(), answer, &told);
        }
    }

    /// The member that a client is connected to, or was, as histories name it.
    fn member_of(&mut self, index: usize) -> Option<u64> {
        u64::try_from(self.seat(index).wire.member + 1).ok()
    }

    /// Gives its connection up, and connects again: at home, if home takes it.
    pub(super) fn go_home(&mut self, index: usize) {
        self.close_seat(index);
        self.tell(index, load::Load::lost);
        self.set_seat(index, 0, Wake::connect);
    }

    fn give_up(&mut self, index: usize) {
        let Some(op) = self.seat(index).open.take() else {
            if !self.seat(index).wire.ready {
                self.attempt_failed(index);
            }
            return;
        };
        // An answer that comes later is dropped.
        for (_, purpose) in &mut self.seat(index).wire.awaited {
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
        let now = self.now;
        let seat = self.seat(index);
        let Some(session) = seat.wire.session.as_ref().filter(|_| seat.wire.conn == Some(conn)) else {
            return;
        };
        let every = u64::try_from(session.timeout_ms).unwrap_or(0).max(3) * 1000 / 3;
        if now.since(seat.heard) >= 2 * every {
            self.lose_seat(index, "the member is silent");
            return;
        }
        self.send_to_member(conn, Flow::Frame(client::ping()));
        self.plan(every, Event::Planned(Wake::Ping { seat: index, conn }));
    }

    /// Sends an operation.
    pub(super) fn invoke_at(&mut self, index: usize, op: Op, due: Option<u64>) {
        self.note_invoke(index, &op, due, true);
        if request(&op) == Action::Abandon {
            // Silent from before the moment that is written down.
            self.close_seat(index);
            self.note_answer(index, &op, &Answer::Abandoned, true);
            self.seat(index).wire.session = None;
            self.go_home(index);
            return;
        }
        let frames = self.seat(index).wire.frames_of(&op);
        self.seat(index).open = Some(op);
        let Some(conn) = self.seat(index).wire.conn else { return };
        for frame in frames {
            self.send_to_member(conn, Flow::Frame(frame));
        }
        let errand = self.seat(index).errand.is_some();
        let patience = if errand { CALM_PATIENCE_US } else { self.drawn.op_timeout_us };
        self.set_seat(index, patience, Wake::give_up);
    }

    /// Notes what came of an operation. True if the session is over with it: the next one is a new one.
    fn finish_operation(&mut self, index: usize, op: &Op, answer: &Answer) -> bool {
        let outcome = self.note_answer(index, op, answer, true);
        if let Some(errand) = &mut self.seat(index).errand {
            errand.note(op.clone(), outcome);
        }
        if !op.ends_session() {
            return false;
        }
        if matches!(answer, Answer::Closed { .. }) {
            self.seat(index).wire.session = None;
        } else {
            // Closed or not, nothing more is heard of it from here.
            let member = self.member_of(index);
            self.let_go(index, &Answer::Abandoned, member);
        }
        true
    }

    /// A connected client has nothing under way: it does its errand, goes home, or waits for what is due.
    fn is_free(&mut self, index: usize) {
        if self.seat(index).errand.is_some() {
            self.go_on_with_errand(index);
            return;
        }
        if self.carry_on(index) {
            self.the_plan().load.idle.push_back(index);
        }
    }

    /// What arrived at a client.
    pub(in super::super) fn member_to_seat(&mut self, conn: usize) {
        let index = self.client_conns[conn].client;
        while self.client_conns[conn].client_open {
            let now = self.now;
            let Some(flow) = self.client_conns[conn].to_client.receive(now) else { return };
            self.seat(index).heard = now;
            match flow {
                Flow::Fin => {
                    self.client_conns[conn].client_open = false;
                    self.lose_seat(index, "the connection broke");
                }
                Flow::Frame(frame) if self.seat(index).wire.ready => self.seat_hears(index, frame),
                Flow::Frame(frame) => self.seat_connected(index, conn, frame),
            }
        }
    }

    fn seat_connected(&mut self, index: usize, conn: usize, frame: Bytes) {
        let response = client::connect_response(frame).expect("a member's answer is well formed");
        let member = self.member_of(index);
        if response.timeout_ms <= 0 {
            self.let_go(index, &Answer::Expired, member);
            self.attempt_failed(index);
            return;
        }
        let seat = self.seat(index);
        if let Some(session) = &mut seat.wire.session {
            session.timeout_ms = response.timeout_ms;
        } else {
            let (id, timeout_ms) = (response.session, response.timeout_ms);
            seat.wire.session =
                Some(Session { id, password: response.password, timeout_ms, seen: Zxid::ZERO });
            let told = Told { session: id, since_ns: Some(seat.wire.asked_at.as_ns()), member };
            self.note_life(index, &Op::open(), &Answer::Opened { timeout_ms }, &told);
        }
        let seat = self.seat(index);
        seat.wire.ready = true;
        seat.plan += 1;
        if let Some(errand) = &mut seat.errand {
            errand.connected();
        }
        let client = seat.errand.is_none().then_some(seat.client);
        self.tell(index, load::Load::connected);
        self.plan(1000, Event::Planned(Wake::Ping { seat: index, conn }));
        if let Some(at) = client.and_then(|client| self.plan_of().load.rules.homesick_at(client)) {
            let until = (at / 1000).saturating_sub(self.now.0);
            self.plan(until, Event::Planned(Wake::Homesick { seat: index, conn }));
        }
        self.is_free(index);
    }

    fn seat_hears(&mut self, index: usize, frame: Bytes) {
        let (header, body) = client::reply(frame);
        if header.xid == XID_WATCH || header.xid == XID_PING {
            return;
        }
        let wire = &mut self.seat(index).wire;
        let expected = wire.awaited.pop_front();
        let Some((_, purpose)) = expected.filter(|(xid, _)| *xid == header.xid) else {
            // What can't be matched is no answer to anything, and the connection is worth nothing any more.
            self.lose_seat(index, "an answer out of order");
            return;
        };
        if let Some(session) = &mut wire.session {
            session.seen = session.seen.max(header.zxid);
        }
        let answer = match answer_of(purpose, header, body) {
            Ok(Some(answer)) => answer,
            Ok(None) => return,
            Err(_) => {
                self.lose_seat(index, "a malformed answer");
                return;
            }
        };
        let Some(op) = self.seat(index).open.take() else { return };
        if purpose == Purpose::Sync {
            // The read behind a refused sync counts for nothing.
            if let Some((_, next)) = self.seat(index).wire.awaited.front_mut() {
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
            self.lose_seat(index, "the session is elsewhere");
        } else {
            self.is_free(index);
        }
    }
}
