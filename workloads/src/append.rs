//! The workload `append`: unique elements put at the end of lists, and lists read whole.
//!
//! To append is to write the list that some answer has shown with one element more, if the list is still that
//! one. So every success names the list that it built on, and two histories that both go on show as lists of
//! which neither is a beginning of the other.

use std::sync::Arc;

use checker::append;
use checker::history::{EventKind, Function, Op as Recorded, OpKind, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{durable_elements, version_order};
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::params::Params;
use crate::rotation::{Fill, Rotation};
use crate::shown::{Seen, Shown};
use crate::workload::{Definition, Generator, as_agreed, of_operations};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "append",
    summary: "unique elements put at the end of lists by version: all reads agree on one order",
    object: Object::LIST,
    functions: &[Function::READ, Function::APPEND],
    dispensable: &[],
    marks: &[Function::APPEND],
    words: &[],
    generator: |params, rng| Box::new(Append::new(params, rng)),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_operations,
    promises: &[|case| append::check(case.history, case.beside.reads()), version_order],
    durability: Some(|case| durable_elements(case, appended)),
};

/// The element that an operation appends.
fn appended(op: &Recorded) -> Option<i64> {
    match op.kind() {
        OpKind::Append { value } => Some(value),
        _ => None,
    }
}

/// The generator, with the memory of what its processes were told.
#[derive(Clone, Debug)]
struct Append {
    rng: ChaCha8Rng,
    places: Rotation,
    read_percent: u8,
    next_element: i64,
    shown: Shown<Arc<[i64]>>,
}

impl Append {
    fn new(&Params { keys, elements, read_percent, .. }: &Params, rng: ChaCha8Rng) -> Self {
        let places = Rotation::new(Object::LIST, keys, elements);
        Self { rng, places, read_percent, next_element: 0, shown: Shown::new() }
    }

    fn remember(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        let version = outcome.claims.version;
        let list = match (&outcome.value, &op.body) {
            (Value::List(list), _) => Arc::clone(list),
            // What was acknowledged is what was written.
            (_, Body::Append { element, onto, .. }) => onto.iter().copied().chain([*element]).collect(),
            _ => return,
        };
        self.shown.remember(process, op.key, &Seen { version, value: list });
    }

    fn read(key: u64) -> Op {
        Op::new(Object::LIST, key, Body::Read)
    }

    fn append(&mut self, key: u64, seen: &Seen<Arc<[i64]>>) -> Op {
        let element = self.next_element;
        self.next_element += 1;
        let onto = Arc::clone(&seen.value);
        Op::new(Object::LIST, key, Body::Append { element, onto, basis: seen.version })
    }
}

impl Generator for Append {
    /// Empty lists, at version 0.
    fn setup(&mut self) -> Vec<Op> {
        self.places.setup()
    }

    /// One read of each list that there ever was.
    fn final_reads(&self) -> Vec<Op> {
        self.places.all().map(Self::read).collect()
    }

    fn next_read(&mut self) -> Op {
        let key = self.places.any(&mut self.rng);
        Self::read(key)
    }

    fn next_op(&mut self, process: u64) -> Op {
        if let Some(creation) = self.places.creation_due() {
            return creation;
        }
        let key = self.places.any(&mut self.rng);
        if self.rng.random_range(0..100) < self.read_percent {
            return Self::read(key);
        }
        // As with registers: the newest list mostly succeeds, what the process saw last is mostly refused.
        let newest = self.rng.random_bool(0.7);
        let known = if newest { self.shown.newest(key) } else { self.shown.own(process, key) };
        let Some(seen) = known else { return Self::read(key) };
        match self.places.fill(key) {
            Fill::Taken => self.append(key, &seen),
            Fill::Moved(next) => {
                self.shown.forget(key);
                Self::read(next)
            }
            Fill::Full => Self::read(key),
        }
    }

    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match (&op.body, outcome.kind) {
            (Body::MakePlace, _) => self.places.creation_ended(op.key, outcome.is_there()),
            (_, EventKind::Ok) => self.remember(process, op, outcome),
            (Body::Append { .. }, EventKind::Fail) => {
                self.shown.refused(process, op.key);
            }
            (_, EventKind::Info) => self.shown.retire(process),
            (_, EventKind::Fail | EventKind::Invoke) => {}
        }
    }
}
