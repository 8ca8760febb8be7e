//! One client of a planned run: a session that moves between members and comes home again.
//!
//! It does what the bench's own clients do: attempts are short and bounded, one member after the other, home first;
//! a client that is away tries to go home about once a second; an operation without an answer in time stays open,
//! and the connection stays as well.

use bytes::Bytes;
use node_core::Plant;
use node_wire::client::{ErrorCode, XID_PING, XID_WATCH};
use node_wire::ids::{ServerId, Zxid};
use workloads::Op;
use zookeeper_mapping::Answer;

use super::super::operations::answer_of;
use super::super::{Event, World};
use super::errand::{CALM_PATIENCE_US, Errand};
use crate::client::{self, Client, Flow, Purpose, Session};
use crate::dice::{Dice, Part};
use crate::network::HostIndex;
use crate::time::Time;

/// How long one member may take to answer a connect: a paused one accepts and says nothing.
const CONNECT_PATIENCE_US: u64 = 200_000;
/// The pause after the first failed attempt, and the longest.
const BACKOFF_US: (u64, u64) = (5_000, 50_000);
/// How often a client that is away tries to go home.
const HOMESICK_US: u64 = 1_000_000;

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

/// A client.
pub(super) struct Seat {
    /// Its session, its connection and its frames.
    pub(super) wire: Client,
    home: HostIndex,
    /// How many members beyond home are tried next.
    next: usize,
    members: usize,
    backoff_us: u64,
    /// Counts plans: a timer of an earlier one is void.
    plan: u64,
    pub(super) process: u64,
    /// The operation under way.
    pub(super) open: Option<Op>,
    /// It changes nothing.
    pub(super) only_reads: bool,
    pub(super) errand: Option<Errand>,
    heard: Time,
    go_home_at: Time,
}

impl Seat {
    pub(super) fn new(home: HostIndex, members: usize, process: u64, dice: Dice) -> Self {
        Self {
            wire: Client::new(Vec::new(), home, 0, dice),
            home,
            next: 0,
            members,
            backoff_us: BACKOFF_US.0,
            plan: 0,
            process,
            open: None,
            only_reads: false,
            errand: None,
            heard: Time::default(),
            go_home_at: Time::default(),
        }
    }

    /// The connection is gone; the session stays.
    fn leave(&mut self) {
        self.wire.conn = None;
        self.wire.ready = false;
        self.wire.awaited.clear();
    }
}

impl<P: Plant> World<P> {
    fn seat(&mut self, seat: usize) -> &mut Seat {
        &mut self.the_plan().load.seats[seat]
    }

    /// A client of its own sets out on an errand. Gives its seat.
    pub(super) fn begin_errand(&mut self, member: ServerId, process: u64, todo: Vec<Op>) -> usize {
        let Some(host) = self.index_of(member) else { return usize::MAX };
        let (until, seed, members) = (self.now + CALM_PATIENCE_US, self.drawn.seed, self.hosts.len());
        let index = self.plan_of().load.seats.len();
        let number = u64::try_from(index).expect("clients are few");
        let mut seat = Seat::new(host, members, process, Dice::part(seed, Part::Client(number)));
        seat.errand = Some(Errand::new(todo, until));
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
                    self.go_home(seat);
                }
            }
        }
    }

    fn has_work(&self, seat: usize) -> bool {
        let load = &self.plan_of().load;
        match &load.seats[seat].errand {
            Some(errand) => !errand.over,
            None => load.open,
        }
    }

    /// Makes one attempt to connect.
    fn attempt(&mut self, index: usize) {
        if !self.has_work(index) {
            return;
        }
        if self.seat(index).errand.is_none() {
            self.write_off(index);
        }
        let seat = self.seat(index);
        let host = (seat.home + seat.next) % seat.members;
        if seat.errand.is_none() {
            seat.next = (seat.next + 1) % seat.members;
        }
        seat.wire.member = host;
        self.set_seat(index, CONNECT_PATIENCE_US, Wake::give_up);
        if self.hosts[host].process.is_none() {
            self.attempt_failed(index);
            return;
        }
        let conn = self.open_client_conn(index, host);
        let timeout = i32::try_from(self.drawn.session_timeout_ms).unwrap_or(i32::MAX);
        let wire = &mut self.seat(index).wire;
        wire.conn = Some(conn);
        wire.ready = false;
        let frame = wire.connect(timeout, None, false);
        self.send_to_member(conn, Flow::Frame(frame));
    }

    /// Pauses before the next attempt.
    fn attempt_failed(&mut self, index: usize) {
        self.close_seat(index);
        let backoff = self.seat(index).backoff_us;
        self.seat(index).backoff_us = (backoff * 3 / 2).min(BACKOFF_US.1);
        if self.errand_failed_to_connect(index) {
            return;
        }
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

    /// Goes away for good.
    pub(super) fn leave_seat(&mut self, index: usize) {
        self.close_seat(index);
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
        self.close_seat(index);
        let seat = self.seat(index);
        seat.next = 0;
        seat.backoff_us = BACKOFF_US.0;
        self.set_seat(index, 0, Wake::connect);
    }

    fn go_home(&mut self, index: usize) {
        self.close_seat(index);
        self.seat(index).next = 0;
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
        self.finish_operation(index, &op, &answer);
        self.is_free(index);
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

    fn finish_operation(&mut self, index: usize, op: &Op, answer: &Answer) {
        let outcome = self.note_answer(index, op, answer, true);
        if let Some(errand) = &mut self.seat(index).errand {
            errand.note(op.clone(), outcome);
        }
    }

    /// A connected client has nothing under way: it does its errand, goes home, or waits for what is due.
    fn is_free(&mut self, index: usize) {
        if self.seat(index).errand.is_some() {
            self.go_on_with_errand(index);
            return;
        }
        if !self.plan_of().load.open {
            self.leave_seat(index);
            return;
        }
        let now = self.now;
        let seat = self.seat(index);
        if seat.wire.member != seat.home && now >= seat.go_home_at {
            self.go_home(index);
            return;
        }
        self.the_plan().load.idle.push_back(index);
        self.hand_out();
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
        let now = self.now;
        let seat = self.seat(index);
        if response.timeout_ms <= 0 {
            seat.wire.session = None;
            self.attempt_failed(index);
            return;
        }
        match &mut seat.wire.session {
            Some(session) => session.timeout_ms = response.timeout_ms,
            None => {
                seat.wire.session = Some(Session {
                    id: response.session,
                    password: response.password,
                    timeout_ms: response.timeout_ms,
                    seen: Zxid::ZERO,
                });
            }
        }
        seat.wire.ready = true;
        seat.backoff_us = BACKOFF_US.0;
        seat.go_home_at = now + HOMESICK_US;
        seat.plan += 1;
        let away = seat.wire.member != seat.home && seat.errand.is_none();
        self.plan(1000, Event::Planned(Wake::Ping { seat: index, conn }));
        if away {
            self.plan(HOMESICK_US, Event::Planned(Wake::Homesick { seat: index, conn }));
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
        self.finish_operation(index, &op, &answer);
        let moved = matches!(
            answer,
            Answer::Refused { code: ErrorCode::SessionMoved | ErrorCode::SessionExpired, .. }
        );
        if moved {
            self.lose_seat(index, "the session is elsewhere");
        } else {
            self.is_free(index);
        }
    }
}
