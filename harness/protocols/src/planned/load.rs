//! Clients of a planned world: what [`harness_core::load`] decides happens to connections that are either
//! there or not.
//!
//! A client asks the member to which it is connected and no other; again, where a request that comes twice
//! takes effect once. An operation without an answer in time stays open, and the connection stays. A
//! connection is lost when its member's process ends; one that stands still takes none.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;

use harness_core::load::{self, CONNECT_PATIENCE_NS, ClientId, Due, Step, Terms};
use harness_core::virtual_ensemble::{Arrivals, Setting};
use runs::member::MemberId;
use workloads::{Op, Outcome, Workload};

use super::{Planned, id, name};
use crate::protocol::{Id, Protocol, Request};

/// How long a request, an answer and each half of a connection's beginning take.
const WAY_US: u64 = 200;
/// After how long a client asks again, where a request that comes twice takes effect once.
const AGAIN_US: u64 = 100_000;
/// How long a one-off client waits, for its member and for each answer.
const CALM_PATIENCE_US: u64 = 5_000_000;
/// Between two attempts of a one-off client.
const ONE_OFF_PAUSE_US: u64 = 20_000;

/// A timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// An operation falls due.
    Due,
    /// A client tries to connect, or asks what to do.
    Next { slot: usize, plan: u64 },
    /// Its connection stands, if the member takes it.
    Connected { slot: usize, plan: u64, to: Id },
    /// The member said nothing for long enough.
    Refused { slot: usize, plan: u64 },
    /// It asks again, if it was not answered.
    Again(Request),
    /// It waited long enough for an answer.
    GiveUp(Request),
    /// It thinks of home.
    Homesick { slot: usize, plan: u64 },
}

/// Who a slot is.
enum Who {
    /// One of the load's clients.
    Client(ClientId),
    /// Somebody who does some operations at one member, one by one.
    OneOff {
        member: Id,
        process: u64,
        todo: VecDeque<Op>,
        done: Vec<(Op, Outcome)>,
        over: bool,
        until_us: u64,
    },
}

/// A client.
struct Slot {
    who: Who,
    /// Where it is connected.
    at: Option<Id>,
    /// Counts plans: a timer of an earlier one is void.
    plan: u64,
    open: Option<Request>,
}

/// An operation under way.
struct Asked {
    slot: usize,
    op: Op,
    at: Id,
}

/// All clients, and what they share.
pub(super) struct Load {
    pub(super) rules: load::Load,
    slots: Vec<Slot>,
    /// Those that are connected and free, who became so first in front.
    idle: VecDeque<usize>,
    arrivals: Peekable<Arrivals>,
    open: BTreeMap<Request, Asked>,
    requests: u64,
    clients: usize,
    patience_us: u64,
}

/// Nothing falls due any more.
fn none() -> Peekable<Arrivals> {
    let nothing: Arrivals = Box::new(std::iter::empty());
    nothing.peekable()
}

impl Load {
    pub(super) fn new(setting: &Setting, workload: Workload) -> Self {
        let members = (1..).map(MemberId).take(setting.everybody()).collect();
        let patience_us = setting.operation_timeout_us;
        let terms =
            Terms { members, clients: setting.clients, patience_ns: patience_us.saturating_mul(1000) };
        Self {
            rules: load::Load::new(terms, workload),
            slots: Vec::new(),
            idle: VecDeque::new(),
            arrivals: none(),
            open: BTreeMap::new(),
            requests: 0,
            clients: setting.clients,
            patience_us,
        }
    }

    /// Nothing falls due any more.
    pub(super) fn end_arrivals(&mut self) {
        self.arrivals = none();
    }

    /// True when no operation is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.open.is_empty()
    }

    /// A process number above all that were used.
    pub(super) fn next_process(&self) -> u64 {
        let one_offs = self.slots.iter().filter_map(|slot| match slot.who {
            Who::OneOff { process, .. } => Some(process + 1),
            Who::Client(_) => None,
        });
        one_offs.max().unwrap_or(0).max(self.rules.next_process())
    }

    pub(super) fn one_off_over(&self, one_off: usize) -> Option<&[(Op, Outcome)]> {
        match &self.slots.get(one_off)?.who {
            Who::OneOff { done, over: true, .. } => Some(done),
            _ => None,
        }
    }

    fn process(&self, slot: usize) -> u64 {
        match &self.slots[slot].who {
            Who::Client(client) => self.rules.process(*client),
            Who::OneOff { process, .. } => *process,
        }
    }
}

impl<P: Protocol> Planned<P> {
    pub(super) fn let_clients_in(&mut self, arrivals: Arrivals) {
        self.load.arrivals = arrivals.peekable();
        self.load.rules.open();
        for client in 0..self.load.clients {
            self.begin_slot(Who::Client(client));
        }
        self.plan_arrival();
    }

    /// Gives a one-off client's slot.
    pub(super) fn begin_one_off(&mut self, member: Id, process: u64, todo: Vec<Op>) -> usize {
        let until_us = self.ensemble.now.0 + CALM_PATIENCE_US;
        let todo = todo.into();
        self.begin_slot(Who::OneOff { member, process, todo, done: Vec::new(), over: false, until_us })
    }

    fn begin_slot(&mut self, who: Who) -> usize {
        let slot = self.load.slots.len();
        self.load.slots.push(Slot { who, at: None, plan: 0, open: None });
        self.plan_slot(slot, 0, |slot, plan| Wake::Next { slot, plan });
        slot
    }

    fn plan_slot(&mut self, slot: usize, after_us: u64, wake: impl FnOnce(usize, u64) -> Wake) {
        self.load.slots[slot].plan += 1;
        let wake = wake(slot, self.load.slots[slot].plan);
        self.ensemble.plan(self.ensemble.now + after_us, wake);
    }

    fn plan_arrival(&mut self) {
        if let Some(at) = self.load.arrivals.peek().copied() {
            let at = self.ensemble.now.max(harness_world::time::Time(at));
            self.ensemble.plan(at, Wake::Due);
        }
    }

    pub(super) fn send_clients_away(&mut self) {
        self.load.rules.close();
        self.load.end_arrivals();
        self.load.idle.clear();
    }

    pub(super) fn wake(&mut self, wake: Wake) {
        let counts = |slot: usize, plan: u64, load: &Load| load.slots[slot].plan == plan;
        match wake {
            Wake::Due => self.falls_due(),
            Wake::Again(request) => self.send(request),
            Wake::GiveUp(request) => {
                if let Some(asked) = self.load.open.get(&request) {
                    let outcome = Outcome::lost(&asked.op, "no answer in time");
                    self.completed(request, &outcome);
                }
            }
            Wake::Next { slot, plan } if counts(slot, plan, &self.load) => self.go_on_with(slot),
            Wake::Connected { slot, plan, to } if counts(slot, plan, &self.load) => self.reached(slot, to),
            Wake::Refused { slot, plan } if counts(slot, plan, &self.load) => self.refused(slot),
            Wake::Homesick { slot, plan } if counts(slot, plan, &self.load) => {
                self.load.idle.retain(|idle| *idle != slot);
                self.go_on_with(slot);
            }
            _ => {}
        }
    }

    /// An operation falls due, and whoever became free first is asked to take it.
    fn falls_due(&mut self) {
        let load = &mut self.load;
        let Some(at) = load.arrivals.next().filter(|_| load.rules.is_open()) else { return };
        load.rules.falls_due(at * 1000);
        self.plan_arrival();
        while self.load.rules.is_due() {
            let Some(slot) = self.load.idle.pop_front() else { return };
            self.go_on_with(slot);
            if self.load.idle.back() == Some(&slot) {
                // It took nothing.
                return;
            }
        }
    }

    /// A client that has nothing under way does what comes next.
    fn go_on_with(&mut self, slot: usize) {
        let now_us = self.ensemble.now.0;
        let Slot { who, at, .. } = &mut self.load.slots[slot];
        let client = match who {
            Who::Client(client) => *client,
            Who::OneOff { member, todo, over, .. } => {
                let (member, is_there) = (*member, at.is_some());
                return match todo.pop_front_if(|_| is_there) {
                    Some(op) => self.ask(slot, op, None),
                    None if is_there || todo.is_empty() => *over = true,
                    None => self.connect(slot, member),
                };
            }
        };
        loop {
            match self.load.rules.next(client, now_us * 1000) {
                Step::Do(due) => return self.ask(slot, due.op, Some(due.at)),
                Step::WriteOff(due, why) => self.never_sent(slot, &due, why),
                Step::Connect(member) => {
                    // One connection at a time.
                    if self.load.slots[slot].at.take().is_some() {
                        self.load.rules.lost(client, now_us * 1000);
                        continue;
                    }
                    return self.connect(slot, id(member));
                }
                Step::Leave => return,
                Step::Wait(until) => {
                    if self.load.slots[slot].at.is_some() {
                        self.load.idle.push_back(slot);
                    }
                    if let Some(until) = until {
                        let after_us = (until / 1000).saturating_sub(now_us).max(1);
                        self.plan_slot(slot, after_us, |slot, plan| Wake::Homesick { slot, plan });
                    }
                    return;
                }
            }
        }
    }

    fn connect(&mut self, slot: usize, to: Id) {
        if !self.runs(to) {
            return self.plan_slot(slot, 2 * WAY_US, |slot, plan| Wake::Refused { slot, plan });
        }
        if self.ensemble.is_paused(to) {
            let patience_us = CONNECT_PATIENCE_NS / 1000;
            return self.plan_slot(slot, patience_us, |slot, plan| Wake::Refused { slot, plan });
        }
        self.plan_slot(slot, 2 * WAY_US, |slot, plan| Wake::Connected { slot, plan, to });
    }

    fn reached(&mut self, slot: usize, to: Id) {
        if !self.runs(to) {
            return self.refused(slot);
        }
        self.load.slots[slot].at = Some(to);
        if let Who::Client(client) = self.load.slots[slot].who {
            self.load.rules.connected(client, self.ensemble.now.as_ns());
        }
        self.go_on_with(slot);
    }

    fn refused(&mut self, slot: usize) {
        let now = self.ensemble.now;
        match &mut self.load.slots[slot].who {
            Who::Client(client) => {
                self.load.rules.refused(*client, now.as_ns());
                self.go_on_with(slot);
            }
            Who::OneOff { over, until_us, .. } if now.0 >= *until_us => *over = true,
            Who::OneOff { .. } => {
                self.plan_slot(slot, ONE_OFF_PAUSE_US, |slot, plan| Wake::Next { slot, plan });
            }
        }
    }

    fn ask(&mut self, slot: usize, op: Op, due_ns: Option<u64>) {
        let Some(at) = self.load.slots[slot].at else { return };
        let now = self.ensemble.now;
        self.load.requests += 1;
        let request = Request(self.load.requests);
        let mut line = op.event(self.load.process(slot), now.as_ns());
        (line.due, line.node) = (due_ns, Some(name(at).0));
        self.lines.push(line);
        let one_off = matches!(self.load.slots[slot].who, Who::OneOff { .. });
        let patience_us = if one_off { CALM_PATIENCE_US } else { self.load.patience_us };
        // What it was waiting for before is void.
        self.load.slots[slot].plan += 1;
        self.load.slots[slot].open = Some(request);
        self.load.open.insert(request, Asked { slot, op, at });
        self.ensemble.plan(now + patience_us, Wake::GiveUp(request));
        self.send(request);
    }

    /// The request of an operation that is open sets out, maybe not for the first time.
    fn send(&mut self, request: Request) {
        let Some(Asked { op, at, .. }) = self.load.open.get(&request) else { return };
        let now = self.ensemble.now;
        self.ensemble.plan_request(now + WAY_US, *at, request, op.clone());
        if self.ensemble.configuration.protocol().knows_requests() {
            self.ensemble.plan(now + AGAIN_US, Wake::Again(request));
        }
    }

    /// What came of an operation; nothing where nobody waits for it any more.
    pub(super) fn completed(&mut self, request: Request, outcome: &Outcome) {
        let Some(Asked { slot, op, at }) = self.load.open.remove(&request) else { return };
        self.load.slots[slot].open = None;
        self.write_down(slot, &op, outcome, Some(at));
        if let Who::OneOff { todo, done, .. } = &mut self.load.slots[slot].who {
            // One that stays open is the last: its process must not go on.
            if outcome.retires() {
                todo.clear();
            }
            done.push((op, outcome.clone()));
        }
        self.go_on_with(slot);
    }

    fn write_down(&mut self, slot: usize, op: &Op, outcome: &Outcome, at: Option<Id>) {
        let process = self.load.process(slot);
        match self.load.slots[slot].who {
            Who::Client(client) => self.load.rules.completed(client, op, outcome),
            Who::OneOff { .. } => self.load.rules.workload_mut().complete(process, op, outcome),
        }
        let mut line = outcome.event(op, process, self.ensemble.now.as_ns());
        line.node = at.map(|at| name(at).0);
        self.lines.push(line);
    }

    fn never_sent(&mut self, slot: usize, due: &Due, why: &str) {
        let mut line = due.op.event(self.load.process(slot), self.ensemble.now.as_ns());
        line.due = Some(due.at);
        self.lines.push(line);
        let outcome = Outcome::not_sent(&due.op, why);
        self.write_down(slot, &due.op, &outcome, None);
    }

    /// A member's process has ended: whoever was connected to it is so no more.
    pub(super) fn connections_break(&mut self, member: Id) {
        for slot in 0..self.load.slots.len() {
            if self.load.slots[slot].at != Some(member) {
                continue;
            }
            self.load.slots[slot].at = None;
            self.load.idle.retain(|idle| *idle != slot);
            if let Who::Client(client) = self.load.slots[slot].who {
                self.load.rules.lost(client, self.ensemble.now.as_ns());
            }
            match self.load.slots[slot].open {
                Some(request) => {
                    let Some(asked) = self.load.open.get(&request) else { continue };
                    let outcome = Outcome::lost(&asked.op, "the connection broke");
                    self.completed(request, &outcome);
                }
                None => self.plan_slot(slot, 0, |slot, plan| Wake::Next { slot, plan }),
            }
        }
    }
}
