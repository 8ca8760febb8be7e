//! A simulated register (or several) with clients that wait for their answers: histories of any length.
//!
//! Linearizable by construction: every operation takes effect at one instant between its call and its return
//! (an operation whose fate stays unknown: at any later instant, or never), and is answered by what the
//! register held then. A line is made when its moment comes, so that a history of any length needs no memory
//! but what is open.
//!
//! No clock and no chance but the seed's: the same options give the same bytes everywhere. Shared by the
//! example `generate`, by tests and by benchmarks, which include this file.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use checker::chance::Chance;
use checker::history::{Event, EventKind, Function, Value};

/// Lines whose stamps would be equal are this far apart.
const LEAST_STEP_NS: u64 = 1;
/// A request takes at least this part of the mean latency.
const FLOOR: f64 = 0.2;
/// An operation whose fate is unknown takes effect this many times later, if it is one of the late ones.
const LATE: f64 = 20.0;
/// How many returned changes per client are remembered for the choice of a stale value.
const REMEMBERED: usize = 40;

/// How one answer is falsified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corruption {
    /// A value that had certainly been replaced, any of the last ones.
    Stale,
    /// The one that was replaced last.
    Inversion,
    /// A value that nobody wrote.
    Phantom,
}

/// What a history is like.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Operations.
    pub(crate) ops: u64,
    /// Clients.
    pub(crate) conc: u64,
    /// Registers.
    pub(crate) keys: u64,
    /// The part of writes.
    pub(crate) write: f64,
    /// The part of compare-and-sets.
    pub(crate) cas: f64,
    /// The part of changes whose fate stays unknown.
    pub(crate) info: f64,
    /// Mean pause between two operations, in mean latencies.
    pub(crate) think: f64,
    /// Mean latency.
    pub(crate) latency_ns: f64,
    /// The seed.
    pub(crate) seed: u64,
    /// Where in the history (from 0 to 1) an answer is falsified, and how.
    pub(crate) corrupt: Option<(Corruption, f64)>,
}

impl Options {
    /// A thousand reads and writes of one register by ten clients.
    pub(crate) const USUAL: Self = Self {
        ops: 1000,
        conc: 10,
        keys: 1,
        write: 0.5,
        cas: 0.0,
        info: 0.0,
        think: 0.1,
        latency_ns: 1e6,
        seed: 1,
        corrupt: None,
    };
}

impl Default for Options {
    fn default() -> Self {
        Self::USUAL
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A client asks.
    Invoke,
    /// What it asked for takes effect.
    Effect,
    /// It is told.
    Return,
    /// It gives up.
    GiveUp,
}

/// When, in what order of drawing, what, whose. The second makes the order total and repeatable.
type Due = Reverse<(u64, u64, Step, usize, Option<usize>)>;

#[derive(Clone, Copy)]
struct Operation {
    number: u64,
    process: u64,
    f: Function,
    key: usize,
    value: (Option<i64>, i64),
    called_ns: u64,
    /// What it will be told, once it has taken effect.
    kind: EventKind,
    read: Option<i64>,
}

/// A change that was acknowledged: called, returned, what it wrote.
type Acknowledged = (u64, u64, i64);

/// The history, line by line.
pub(crate) struct Simulation {
    options: Options,
    chance: Chance,
    /// Of its own, so that a falsified copy differs in one line.
    liar: Chance,
    registers: Vec<Option<i64>>,
    due: BinaryHeap<Due>,
    drawn: u64,
    /// Operations that are under way; free places are named in `free`.
    running: Vec<Operation>,
    free: Vec<usize>,
    /// For each client its process and the value that it last saw of each register.
    clients: Vec<(u64, Vec<Option<i64>>)>,
    issued: u64,
    next_value: i64,
    index: u64,
    last_ns: u64,
    acknowledged: Vec<VecDeque<Acknowledged>>,
    corrupted: Option<u64>,
}

impl Simulation {
    /// A history that begins here.
    pub(crate) fn new(options: Options) -> Self {
        let keys = usize::try_from(options.keys.max(1)).unwrap_or(1);
        let mut simulation = Self {
            chance: Chance(options.seed),
            liar: Chance(!options.seed),
            registers: vec![None; keys],
            due: BinaryHeap::new(),
            drawn: 0,
            running: Vec::new(),
            free: Vec::new(),
            clients: (0..options.conc).map(|process| (process, vec![None; keys])).collect(),
            issued: 0,
            next_value: 1,
            index: 0,
            last_ns: 0,
            acknowledged: vec![VecDeque::new(); keys],
            corrupted: None,
            options,
        };
        for client in 0..simulation.clients.len() {
            simulation.pause(client, 0);
        }
        simulation
    }

    /// The number of the line that was falsified, once it has been.
    pub(crate) fn corrupted(&self) -> Option<u64> {
        self.corrupted
    }

    fn at(&mut self, ns: u64, step: Step, client: usize, operation: Option<usize>) {
        self.drawn += 1;
        self.due.push(Reverse((ns, self.drawn, step, client, operation)));
    }

    fn pause(&mut self, client: usize, now: u64) {
        let pause = nanoseconds(self.chance.wait() * self.options.think * self.options.latency_ns);
        self.at(now + pause, Step::Invoke, client, None);
    }

    fn invoke(&mut self, client: usize, now: u64) -> Option<Event> {
        if self.issued == self.options.ops {
            return None;
        }
        let key = usize::try_from(self.chance.below(self.options.keys)).unwrap_or(0);
        let (process, seen) = (self.clients[client].0, self.clients[client].1[key]);
        let roll = self.chance.part();
        let (f, value) = if roll < self.options.write {
            (Function::WRITE, (None, self.value()))
        } else if roll < self.options.write + self.options.cas && seen.is_some() {
            (Function::CAS, (seen, self.value()))
        } else {
            (Function::READ, (None, 0))
        };
        let operation = Operation {
            number: self.issued,
            process,
            f,
            key,
            value,
            called_ns: 0,
            kind: EventKind::Info,
            read: None,
        };
        self.issued += 1;
        let place = self.free.pop().unwrap_or(self.running.len());
        if place == self.running.len() {
            self.running.push(operation);
        } else {
            self.running[place] = operation;
        }
        let latency = self.options.latency_ns * (FLOOR + self.chance.wait() * (1.0 - FLOOR));
        let instant = self.chance.part() * latency;
        let event = self.line(&operation, EventKind::Invoke, now);
        self.running[place].called_ns = self.last_ns;
        if f != Function::READ && self.options.info > 0.0 && self.chance.part() < self.options.info {
            // Half of them never take effect.
            if self.chance.part() < 0.5 {
                let late = if self.chance.part() < 0.2 { LATE } else { 1.0 };
                let effect = nanoseconds(self.chance.part() * latency * late);
                self.at(now + effect, Step::Effect, client, Some(place));
            }
            self.at(now + nanoseconds(latency), Step::GiveUp, client, Some(place));
        } else {
            self.at(now + nanoseconds(instant), Step::Effect, client, Some(place));
            self.at(now + nanoseconds(latency), Step::Return, client, Some(place));
        }
        Some(event)
    }

    fn value(&mut self) -> i64 {
        self.next_value += 1;
        self.next_value - 1
    }

    fn take_effect(&mut self, place: usize) {
        let operation = &mut self.running[place];
        let register = &mut self.registers[operation.key];
        operation.kind = EventKind::Ok;
        match operation.f {
            Function::WRITE => *register = Some(operation.value.1),
            Function::CAS if *register == operation.value.0 => *register = Some(operation.value.1),
            Function::CAS => operation.kind = EventKind::Fail,
            _ => operation.read = *register,
        }
    }

    fn complete(&mut self, client: usize, place: usize, now: u64) -> Event {
        let mut operation = self.running[place];
        self.free.push(place);
        let seen = if operation.f == Function::READ { operation.read } else { Some(operation.value.1) };
        if operation.kind == EventKind::Ok {
            self.clients[client].1[operation.key] = seen;
        }
        if operation.f == Function::READ && operation.kind == EventKind::Ok {
            self.falsify(&mut operation);
        }
        let event = self.line(&operation, operation.kind, now);
        if operation.f != Function::READ && operation.kind == EventKind::Ok {
            let most = REMEMBERED * self.clients.len();
            let acknowledged = &mut self.acknowledged[operation.key];
            acknowledged.push_back((operation.called_ns, self.last_ns, operation.value.1));
            if acknowledged.len() > most {
                acknowledged.pop_front();
            }
        }
        self.pause(client, now);
        event
    }

    /// The fate stays unknown and another process takes the client's place.
    fn give_up(&mut self, client: usize, place: usize, now: u64) -> Event {
        let operation = self.running[place];
        self.clients[client].0 += self.options.conc;
        // An effect may still be due, and what comes after it must not find another operation in its place; a
        // place that was given up is therefore never used again.
        self.pause(client, now);
        self.line(&operation, EventKind::Info, now)
    }

    fn falsify(&mut self, operation: &mut Operation) {
        let Some((corruption, at)) = self.options.corrupt else { return };
        let begin = nanoseconds(at * f64::from(u32::try_from(self.options.ops).unwrap_or(u32::MAX)));
        if self.corrupted.is_some() || operation.number < begin || operation.read.is_none() {
            return;
        }
        let before: Vec<Acknowledged> = self.acknowledged[operation.key]
            .iter()
            .copied()
            .filter(|&(_, returned, _)| returned < operation.called_ns)
            .collect();
        let replaced = |by: Acknowledged| -> Vec<Acknowledged> {
            before.iter().copied().filter(|&(_, returned, _)| returned < by.0).collect()
        };
        let wrong = match corruption {
            Corruption::Phantom => Some(self.next_value + 1_000_000_000_000),
            Corruption::Stale => before.iter().max_by_key(|by| by.1).and_then(|&by| {
                let candidates = replaced(by);
                let count = u64::try_from(candidates.len()).unwrap_or(0);
                let chosen = usize::try_from(self.liar.below(count)).unwrap_or(0);
                candidates.get(chosen).map(|&(_, _, value)| value)
            }),
            Corruption::Inversion => before.iter().max_by_key(|by| by.0).and_then(|&by| {
                replaced(by).into_iter().max_by_key(|candidate| candidate.1).map(|(_, _, value)| value)
            }),
        };
        if wrong.is_some() {
            operation.read = wrong;
            self.corrupted = Some(self.index);
        }
    }

    fn line(&mut self, operation: &Operation, kind: EventKind, now: u64) -> Event {
        let value = match (operation.f, kind) {
            (Function::READ, EventKind::Invoke) => Value::Null,
            (Function::READ, _) => operation.read.map_or(Value::Null, Value::One),
            (Function::CAS, _) => Value::Pair(operation.value.0, operation.value.1),
            _ => Value::One(operation.value.1),
        };
        self.last_ns = now.max(self.last_ns + LEAST_STEP_NS);
        let key = u64::try_from(operation.key).unwrap_or(0);
        let mut event = Event::new(operation.process, kind, operation.f, key, value, self.last_ns);
        event.index = self.index;
        self.index += 1;
        event
    }
}

impl Iterator for Simulation {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while let Some(Reverse((now, _, step, client, place))) = self.due.pop() {
            let event = match (step, place) {
                (Step::Effect, Some(place)) => {
                    self.take_effect(place);
                    None
                }
                (Step::Return, Some(place)) => Some(self.complete(client, place, now)),
                (Step::GiveUp, Some(place)) => Some(self.give_up(client, place, now)),
                _ => self.invoke(client, now),
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }
}

/// A duration as whole nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "durations are positive and small"
)]
fn nanoseconds(duration: f64) -> u64 {
    duration as u64
}
