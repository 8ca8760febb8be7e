//! An open loop of operations: they fall due at moments that were drawn before, whether or not anybody is free.
//!
//! Whoever is connected and free takes the next one, in the order in which they became free. One that nobody took
//! within a client's patience is written down as never sent. As on a real cluster nothing is retried, and an
//! operation whose fate is unknown retires its process.

use std::collections::VecDeque;
use std::iter::Peekable;

use checker::history::Event as Line;
use node_core::Plant;
use workloads::{Op, Outcome, Workload};
use zookeeper_mapping::{Answer, outcome};

use super::super::{Event, World};
use super::Arrivals;
use super::seat::{Seat, Wake};
use crate::dice::{Dice, Part};

/// Operations that wait at most; more than this means that nobody takes any, and then they are counted only.
const MAX_WAITING: usize = 100_000;

/// Expired operations that are written off between two attempts to connect.
const WRITE_OFF_AT_ONCE: usize = 64;

/// Nothing falls due any more.
fn none() -> Peekable<Arrivals> {
    let nothing: Arrivals = Box::new(std::iter::empty());
    nothing.peekable()
}

/// All clients, and what they share.
pub(super) struct Load {
    pub(super) workload: Workload,
    pub(super) seats: Vec<Seat>,
    /// Those that are connected and free, who became so first in front.
    pub(super) idle: VecDeque<usize>,
    /// What is still to fall due.
    arrivals: Peekable<Arrivals>,
    /// What is due and was taken by nobody yet.
    due: VecDeque<u64>,
    pub(super) shed: u64,
    /// True while clients take operations.
    pub(super) open: bool,
    pub(super) clients: u64,
}

impl Load {
    pub(super) fn new(workload: Workload) -> Self {
        Self {
            workload,
            seats: Vec::new(),
            idle: VecDeque::new(),
            arrivals: none(),
            due: VecDeque::new(),
            shed: 0,
            open: false,
            clients: 0,
        }
    }

    /// True when no operation is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.seats.iter().all(|seat| seat.open.is_none())
    }

    /// A process number above all that were used.
    pub(super) fn next_process(&self) -> u64 {
        self.seats.iter().map(|seat| seat.process + 1).max().unwrap_or(1)
    }

    pub(super) fn errand_over(&self, errand: usize) -> Option<&[(Op, Outcome)]> {
        self.seats.get(errand)?.errand.as_ref().filter(|errand| errand.over).map(|errand| &errand.done[..])
    }
}

impl<P: Plant> World<P> {
    pub(super) fn let_clients_in(&mut self, arrivals: Arrivals) {
        let members = self.hosts.len();
        let (clients, reader_each, seed) = {
            let setting = &self.plan_of().setting;
            (setting.clients, setting.reader_each, setting.seed)
        };
        let load = &mut self.the_plan().load;
        load.arrivals = arrivals.peekable();
        load.open = true;
        load.clients = u64::try_from(clients).expect("clients are few");
        let first = load.seats.len();
        for slot in 0..clients {
            let number = u64::try_from(slot).expect("clients are few");
            let mut seat = Seat::new(slot % members, members, number, Dice::part(seed, Part::Client(number)));
            // Behind a write that can't be committed nothing is answered on its connection: only a client that
            // never writes can be told something stale by a leader that was deposed and does not know.
            if (slot / members) % reader_each == reader_each - 1 {
                seat.only_reads = true;
            }
            load.seats.push(seat);
        }
        for seat in first..first + clients {
            self.set_seat(seat, 0, Wake::connect);
        }
        self.plan_arrival();
    }

    fn plan_arrival(&mut self) {
        let now = self.now.0;
        if let Some(at) = self.the_plan().load.arrivals.peek().copied() {
            self.plan(at.saturating_sub(now), Event::Planned(Wake::Due));
        }
    }

    /// An operation falls due.
    pub(super) fn falls_due(&mut self) {
        let load = &mut self.the_plan().load;
        let Some(at) = load.arrivals.next().filter(|_| load.open) else { return };
        if load.due.len() < MAX_WAITING {
            load.due.push_back(at);
        } else {
            load.shed += 1;
        }
        self.plan_arrival();
        self.hand_out();
    }

    pub(super) fn send_clients_away(&mut self) {
        let load = &mut self.the_plan().load;
        load.open = false;
        load.arrivals = none();
        load.due.clear();
        load.idle.clear();
        for seat in 0..self.plan_of().load.seats.len() {
            if self.plan_of().load.seats[seat].open.is_none() {
                self.leave_seat(seat);
            }
        }
    }

    fn expired(&self, due_us: u64) -> bool {
        self.now.0.saturating_sub(due_us) > self.plan_of().setting.operation_timeout_us
    }

    /// Gives what is due to those who are free.
    pub(super) fn hand_out(&mut self) {
        loop {
            let load = &mut self.the_plan().load;
            if load.due.is_empty() || load.idle.is_empty() {
                return;
            }
            let (Some(due), Some(seat)) = (load.due.pop_front(), load.idle.pop_front()) else { return };
            if self.expired(due) {
                self.never_sent(seat, due, "no client was free in time");
                self.the_plan().load.idle.push_front(seat);
            } else {
                let op = self.next_of(seat);
                self.invoke_at(seat, op, Some(due));
            }
        }
    }

    /// Without a connection, what expired is written down as never sent.
    pub(super) fn write_off(&mut self, seat: usize) {
        for _ in 0..WRITE_OFF_AT_ONCE {
            let Some(due) = self.plan_of().load.due.front().copied() else { return };
            if !self.expired(due) {
                return;
            }
            self.the_plan().load.due.pop_front();
            self.never_sent(seat, due, "no member took the client's session in time");
        }
    }

    /// What a client does next.
    fn next_of(&mut self, seat: usize) -> Op {
        let load = &mut self.the_plan().load;
        let client = &mut load.seats[seat];
        if client.only_reads { load.workload.next_read() } else { load.workload.next_op(client.process) }
    }

    fn never_sent(&mut self, seat: usize, due: u64, reason: &str) {
        let op = self.next_of(seat);
        self.note_invoke(seat, &op, Some(due), false);
        self.note_answer(seat, &op, &Answer::NotSent { reason: reason.to_owned() }, false);
    }

    pub(super) fn note_invoke(&mut self, seat: usize, op: &Op, due: Option<u64>, sent: bool) {
        let process = self.plan_of().load.seats[seat].process;
        let mut line = op.event(process, self.now.as_ns());
        line.due = due.map(|due| due * 1000);
        self.push_line(seat, line, sent);
    }

    /// Notes what came of an operation; a process whose operation stays open is never heard of again.
    pub(super) fn note_answer(&mut self, seat: usize, op: &Op, answer: &Answer, sent: bool) -> Outcome {
        let load = &mut self.the_plan().load;
        let process = load.seats[seat].process;
        let outcome = outcome(op, answer);
        load.workload.complete(process, op, &outcome);
        let line = outcome.event(op, process, self.now.as_ns());
        self.push_line(seat, line, sent);
        let load = &mut self.the_plan().load;
        if outcome.retires() && load.seats[seat].errand.is_none() {
            load.seats[seat].process += load.clients;
        }
        outcome
    }

    fn push_line(&mut self, seat: usize, mut line: Line, sent: bool) {
        let plan = self.the_plan();
        let wire = &plan.load.seats[seat].wire;
        if sent {
            line.node = u64::try_from(wire.member + 1).ok();
            line.session = wire.session.as_ref().map(|session| session.id.0.cast_unsigned());
        }
        plan.lines.push(line);
    }
}
