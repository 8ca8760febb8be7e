//! Clients of a world: each has one operation at a time, asks one member after the other, and gives up.

use std::collections::BTreeMap;

use checker::history::{Event, History};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use workloads::op::{Body, Object};
use workloads::{Kind, Op, Outcome, Params, Workload};

use crate::protocol::Request;

/// An operation under way.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) client: usize,
    process: u64,
    pub(crate) op: Op,
}

/// All clients, and what they were told.
pub(crate) struct Clients {
    /// What they do; none where each proposes one value.
    workload: Option<Workload>,
    /// Operations of the set-up that are not done.
    setup: Vec<Op>,
    /// The process of each client: another one after each operation of unknown fate.
    processes: Vec<u64>,
    next_process: u64,
    requests: u64,
    pub(crate) open: BTreeMap<Request, Asked>,
    events: Vec<Event>,
    pub(crate) acknowledged: u64,
    /// By client: how many operations were acknowledged since the world healed.
    pub(crate) since_healed: Vec<u64>,
}

impl Clients {
    pub(crate) fn new(kind: Option<Kind>, count: usize, seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let mut workload = kind.and_then(|kind| Workload::new(kind, Params::of_keys(2), rng).ok());
        let mut setup = workload.as_mut().map(Workload::setup).unwrap_or_default();
        setup.reverse();
        Self {
            workload,
            setup,
            processes: (0..).take(count).collect(),
            next_process: u64::try_from(count).unwrap_or(u64::MAX),
            requests: 0,
            open: BTreeMap::new(),
            events: Vec::new(),
            acknowledged: 0,
            since_healed: vec![0; count],
        }
    }

    /// Whether the load may begin.
    pub(crate) fn are_set_up(&self) -> bool {
        self.setup.is_empty()
    }

    /// What a client does next; nothing when it has done all that it does.
    pub(crate) fn next(&mut self, client: usize, time_ns: u64) -> Option<(Request, Op)> {
        let process = self.processes[client];
        let op = match &mut self.workload {
            Some(_) if !self.setup.is_empty() => {
                let first = client == 0;
                self.setup.last().filter(|_| first)?.clone()
            }
            Some(workload) => workload.next_op(process),
            None => {
                let value = i64::try_from(client).unwrap_or_default() + 1;
                Op::new(Object::REGISTER, 0, Body::Write { value })
            }
        };
        self.requests += 1;
        let request = Request(self.requests);
        self.events.push(op.event(process, time_ns));
        self.open.insert(request, Asked { client, process, op: op.clone() });
        Some((request, op))
    }

    /// What came of an operation; its client, when nobody knew yet.
    pub(crate) fn ended(&mut self, request: Request, outcome: &Outcome, time_ns: u64) -> Option<usize> {
        let asked = self.open.remove(&request)?;
        self.events.push(outcome.event(&asked.op, asked.process, time_ns));
        let is_done = outcome.is_there();
        if !self.setup.is_empty() && is_done {
            self.setup.pop();
        } else if let Some(workload) = self.workload.as_mut().filter(|_| self.setup.is_empty()) {
            workload.complete(asked.process, &asked.op, outcome);
        }
        if is_done {
            self.acknowledged += 1;
            self.since_healed[asked.client] += 1;
        }
        if outcome.retires() {
            self.processes[asked.client] = self.next_process;
            self.next_process += 1;
        }
        Some(asked.client)
    }

    /// What they were told.
    ///
    /// # Errors
    /// Why that is no history.
    pub(crate) fn history(&self) -> Result<History, String> {
        let mut events = self.events.clone();
        for (index, event) in (0..).zip(&mut events) {
            event.index = index;
        }
        History::from_events(events).map_err(|error| error.to_string())
    }

    /// Which workload it is of.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.workload.as_ref().map(Workload::kind)
    }
}
