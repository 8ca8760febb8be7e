//! The load's driver in a virtual world: what [`harness_core::load`] decides happens to slots and wires.
//!
//! Operations fall due at moments that were drawn before. Whoever is connected and free waits in a line, in
//! the order in which they became so; the first one asks the load when something falls due.

use std::collections::VecDeque;
use std::iter::Peekable;

use checker::history::Event as Line;
use harness_core::load::{self, ClientId, Due, Step, Terms};
use harness_core::virtual_ensemble::{Arrivals, Setting};
use runs::member::MemberId;
use workloads::{Op, Outcome, Workload};
use zookeeper_mapping::{Answer, outcome};

use super::super::{Event, World};
use super::slot::{Slot, Told, Wake};
use crate::part::Part;
use harness_world::dice::Dice;

/// Nothing falls due any more.
fn none() -> Peekable<Arrivals> {
    let nothing: Arrivals = Box::new(std::iter::empty());
    nothing.peekable()
}

/// All clients, and what they share.
pub(super) struct Load {
    pub(super) rules: load::Load,
    pub(super) slots: Vec<Slot>,
    /// Those that are connected and free, who became so first in front.
    pub(super) idle: VecDeque<usize>,
    /// What is still to fall due.
    arrivals: Peekable<Arrivals>,
}

impl Load {
    pub(super) fn new(setting: &Setting, workload: Workload) -> Self {
        let members = (1..).map(MemberId).take(setting.everybody()).collect();
        let patience_ns = setting.operation_timeout_us * 1000;
        let terms = Terms { members, clients: setting.clients, patience_ns };
        let rules = load::Load::new(terms, workload);
        Self { rules, slots: Vec::new(), idle: VecDeque::new(), arrivals: none() }
    }

    /// Nothing falls due any more.
    pub(super) fn end_arrivals(&mut self) {
        self.arrivals = none();
    }

    /// True when no operation is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.slots.iter().all(|slot| slot.open.is_none())
    }

    /// A process number above all that were used.
    pub(super) fn next_process(&self) -> u64 {
        let one_offs = self.slots.iter().filter_map(|slot| Some(slot.one_off.as_ref()?.process + 1));
        one_offs.max().unwrap_or(0).max(self.rules.next_process())
    }

    pub(super) fn one_off_over(&self, one_off: usize) -> Option<&[(Op, Outcome)]> {
        self.slots
            .get(one_off)?
            .one_off
            .as_ref()
            .filter(|one_off| one_off.over)
            .map(|one_off| &one_off.done[..])
    }

    /// Under which number a slot's operation is done.
    fn process(&self, slot: usize) -> u64 {
        let slot = &self.slots[slot];
        slot.one_off.as_ref().map_or_else(|| self.rules.process(slot.client), |one_off| one_off.process)
    }
}

impl World {
    pub(super) fn let_clients_in(&mut self, arrivals: Arrivals) {
        let (clients, members, seed) =
            (self.plan_of().setting.clients, self.ensemble.hosts.len(), self.plan_of().setting.seed);
        let load = &mut self.the_plan().load;
        load.arrivals = arrivals.peekable();
        load.rules.open();
        let first = load.slots.len();
        for client in 0..clients {
            let number = u64::try_from(client).expect("clients are few");
            load.slots.push(Slot::new(client, client % members, Dice::part(seed, Part::Client(number))));
        }
        for slot in first..first + clients {
            self.set_slot(slot, 0, Wake::connect);
        }
        self.plan_arrival();
    }

    fn plan_arrival(&mut self) {
        let now = self.clock.now.0;
        if let Some(at) = self.the_plan().load.arrivals.peek().copied() {
            self.clock.plan(at.saturating_sub(now), Event::Planned(Wake::Due));
        }
    }

    /// An operation falls due, and whoever became free first is asked to take it.
    pub(super) fn falls_due(&mut self) {
        let load = &mut self.the_plan().load;
        let Some(at) = load.arrivals.next().filter(|_| load.rules.is_open()) else { return };
        load.rules.falls_due(at * 1000);
        self.plan_arrival();
        while self.plan_of().load.rules.is_due() {
            let Some(slot) = self.the_plan().load.idle.pop_front() else { return };
            if self.carry_on(slot) {
                self.the_plan().load.idle.push_front(slot);
            }
        }
    }

    pub(super) fn send_clients_away(&mut self) {
        let load = &mut self.the_plan().load;
        load.rules.close();
        load.end_arrivals();
        load.idle.clear();
        for slot in 0..self.plan_of().load.slots.len() {
            if self.plan_of().load.slots[slot].open.is_none() {
                self.leave_slot(slot);
            }
        }
    }

    /// What the load has a client do now.
    pub(super) fn next_step(&mut self, slot: usize) -> Step {
        let now = self.clock.now.as_ns();
        let load = &mut self.the_plan().load;
        load.rules.next(load.slots[slot].client, now)
    }

    /// A client that is free does what the load says. True if that is to wait.
    pub(super) fn carry_on(&mut self, slot: usize) -> bool {
        loop {
            match self.next_step(slot) {
                Step::Do(due) => self.invoke_at(slot, due.op, Some(due.at)),
                Step::WriteOff(due, why) => {
                    self.never_sent(slot, &due, why);
                    continue;
                }
                Step::Connect(_) => self.go_home(slot),
                Step::Leave => self.leave_slot(slot),
                Step::Wait(_) => return true,
            }
            return false;
        }
    }

    /// Something became of a client's connection, of which the load is told.
    pub(super) fn tell(&mut self, slot: usize, told: fn(&mut load::Load, ClientId, u64)) {
        let now = self.clock.now.as_ns();
        let load = &mut self.the_plan().load;
        if load.slots[slot].one_off.is_none() {
            told(&mut load.rules, load.slots[slot].client, now);
        }
    }

    pub(super) fn never_sent(&mut self, slot: usize, due: &Due, reason: &str) {
        self.note_invoke(slot, &due.op, Some(due.at), false);
        self.note_answer(slot, &due.op, &Answer::NotSent { reason: reason.to_owned() }, false);
    }

    pub(super) fn note_invoke(&mut self, slot: usize, op: &Op, due_ns: Option<u64>, sent: bool) {
        let process = self.plan_of().load.process(slot);
        let mut line = op.event(process, self.clock.now.as_ns());
        line.due = due_ns;
        self.push_line(slot, line, sent);
    }

    /// Notes what came of an operation.
    pub(super) fn note_answer(&mut self, slot: usize, op: &Op, answer: &Answer, sent: bool) -> Outcome {
        let load = &mut self.the_plan().load;
        let process = load.process(slot);
        let outcome = outcome(op, answer);
        if load.slots[slot].one_off.is_some() {
            load.rules.workload_mut().complete(process, op, &outcome);
        } else {
            load.rules.completed(load.slots[slot].client, op, &outcome);
        }
        let line = outcome.event(op, process, self.clock.now.as_ns());
        self.push_line(slot, line, sent);
        outcome
    }

    /// Writes down what became of a session beside the workload's own operations, for workloads that judge
    /// sessions.
    pub(super) fn note_life(&mut self, slot: usize, op: &Op, answer: &Answer, told: &Told) {
        let now = self.clock.now.as_ns();
        let plan = self.the_plan();
        let load = &mut plan.load;
        if load.slots[slot].one_off.is_some() || !load.rules.workload().records_sessions() {
            return;
        }
        let (process, outcome) = (load.process(slot), outcome(op, answer));
        load.rules.workload_mut().complete(process, op, &outcome);
        let lines = [op.event(process, told.since_ns.unwrap_or(now)), outcome.event(op, process, now)].map(
            |mut line| {
                line.node = told.member;
                line.session = Some(told.session.0.cast_unsigned());
                line
            },
        );
        plan.lines.extend(lines);
    }

    fn push_line(&mut self, slot: usize, mut line: Line, sent: bool) {
        let plan = self.the_plan();
        let wire = &plan.load.slots[slot].wire;
        if sent {
            line.node = u64::try_from(wire.member + 1).ok();
            line.session = wire.session.as_ref().map(|session| session.id.0.cast_unsigned());
        }
        plan.lines.push(line);
    }
}
