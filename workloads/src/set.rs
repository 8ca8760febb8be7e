//! The workload `set`: unique elements put into sets, and sets read whole.
//!
//! Nothing is ever taken out, so whatever is missing was lost. It shows lost writes, stale reads and
//! snapshots that miss a change; registers show the same, but forget what was overwritten.

use checker::history::{Function, Op as Recorded, OpKind};
use checker::set;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::durable_elements;
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::params::Params;
use crate::rotation::{Fill, Rotation};
use crate::workload::{Definition, Generator, as_agreed, of_operations};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "set",
    summary: "unique elements put into sets, and sets read whole: nothing is lost, nothing invented",
    object: Object::SET,
    functions: &[Function::READ, Function::ADD],
    dispensable: &[],
    marks: &[Function::ADD],
    words: &[],
    generator: |params, rng| Box::new(Set::new(params, rng)),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_operations,
    promises: &[|case| set::check(case.history, case.beside.reads())],
    durability: Some(|case| durable_elements(case, added)),
};

/// The element that an operation adds.
fn added(op: &Recorded) -> Option<i64> {
    match op.kind() {
        OpKind::Add { value } => Some(value),
        _ => None,
    }
}

/// The generator.
#[derive(Clone, Debug)]
struct Set {
    rng: ChaCha8Rng,
    places: Rotation,
    read_percent: u8,
    next_element: i64,
}

impl Set {
    fn new(&Params { keys, elements, read_percent, .. }: &Params, rng: ChaCha8Rng) -> Self {
        Self { rng, places: Rotation::new(Object::SET, keys, elements), read_percent, next_element: 0 }
    }

    fn read(key: u64) -> Op {
        Op::new(Object::SET, key, Body::Read)
    }

    fn add(&mut self, key: u64) -> Op {
        let element = self.next_element;
        self.next_element += 1;
        Op::new(Object::SET, key, Body::Add { element })
    }
}

impl Generator for Set {
    fn setup(&mut self) -> Vec<Op> {
        self.places.setup()
    }

    /// One read of each set that there ever was.
    fn final_reads(&self) -> Vec<Op> {
        self.places.all().map(Self::read).collect()
    }

    fn next_read(&mut self) -> Op {
        let key = self.places.any(&mut self.rng);
        Self::read(key)
    }

    fn next_op(&mut self, _: u64) -> Op {
        if let Some(creation) = self.places.creation_due() {
            return creation;
        }
        let key = self.places.any(&mut self.rng);
        if self.rng.random_range(0..100) < self.read_percent {
            return Self::read(key);
        }
        match self.places.fill(key) {
            Fill::Taken => self.add(key),
            Fill::Moved(key) => self.add(key),
            Fill::Full => Self::read(key),
        }
    }

    fn complete(&mut self, _: u64, op: &Op, outcome: &Outcome) {
        if op.makes_a_place() {
            self.places.creation_ended(op.key, outcome.is_there());
        }
    }
}
