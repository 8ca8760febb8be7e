//! The workload `sequential`: numbers that are given once, and given back.
//!
//! Each request comes under a name of its own and is given a number by its place. Numbers are given back
//! while others are given, so that the count of those in use goes down as well as up: a numbering that counts
//! those in use gives a number twice. Half of them are bound to the session, and go with it too.
//!
//! A name is even when its number stays until somebody gives it back, and odd when it goes with the session.

use checker::history::{EventKind, Function, Op as Recorded, OpKind, Value};
use checker::verdict::{CheckResult, Verdict};
use checker::{durability, sequential};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, durable_elements};
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::workload::{Definition, Generator, as_agreed, of_operations};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "sequential",
    summary: "numbered nodes made and deleted: a number is given once, and in the order of time",
    object: Object::NUMBERS,
    functions: &[Function::CREATE, Function::DELETE],
    dispensable: &[],
    marks: &[Function::DELETE],
    words: &[],
    generator: |params, rng| Box::new(Sequential::new(params.keys, rng)),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_operations,
    promises: &[|case| sequential::check(case.history)],
    durability: Some(durable),
};

/// What was given and not given back is on every member at the end. Of a history whose end is missing nobody
/// knows what was given back.
fn durable(case: &Case<'_>) -> CheckResult {
    if case.extent.is_whole() {
        return durable_elements(case, lasting_number);
    }
    let summary = "the history does not say what was deleted after its end";
    CheckResult::new(durability::DURABILITY, Verdict::Unknown, summary)
}

/// Nodes that are known to live at most, for each place; more are deleted before another is made.
const MAX_LIVE: usize = 24;

/// A number that was given.
#[derive(Clone, Copy, Debug)]
struct Given {
    key: u64,
    name: i64,
    number: i64,
}

/// The generator.
#[derive(Clone, Debug)]
struct Sequential {
    rng: ChaCha8Rng,
    places: u64,
    next_name: i64,
    live: Vec<Given>,
}

impl Sequential {
    fn new(places: u64, rng: ChaCha8Rng) -> Self {
        Self { rng, places, next_name: 0, live: Vec::new() }
    }

    fn read(key: u64) -> Op {
        Op::new(Object::NUMBERS, key, Body::Read)
    }

    fn create(&mut self) -> Op {
        let key = self.rng.random_range(0..self.places);
        let name = self.next_name;
        self.next_name += 1;
        Op::new(Object::NUMBERS, key, Body::Next { name, lasts: is_persistent(name) })
    }

    fn delete(&mut self) -> Op {
        let chosen = self.rng.random_range(0..self.live.len());
        let Given { key, name, number } = self.live.swap_remove(chosen);
        Op::new(Object::NUMBERS, key, Body::Delete { name, number })
    }
}

impl Generator for Sequential {
    fn setup(&mut self) -> Vec<Op> {
        (0..self.places).map(|key| Op::new(Object::NUMBERS, key, Body::MakePlace)).collect()
    }

    /// One listing of each parent.
    fn final_reads(&self) -> Vec<Op> {
        (0..self.places).map(Self::read).collect()
    }

    fn next_read(&mut self) -> Op {
        Self::read(self.rng.random_range(0..self.places))
    }

    fn next_op(&mut self, _: u64) -> Op {
        let crowded = self.live.len() >= MAX_LIVE * usize::try_from(self.places).unwrap_or(1);
        match self.rng.random_range(0..100_u8) {
            0..15 => self.next_read(),
            15..50 if !self.live.is_empty() => self.delete(),
            _ if crowded => self.delete(),
            _ => self.create(),
        }
    }

    /// Remembers what was given.
    fn complete(&mut self, _: u64, op: &Op, outcome: &Outcome) {
        if let (EventKind::Ok, Body::Next { name, .. }, Value::Pair(_, number)) =
            (outcome.kind, &op.body, &outcome.value)
        {
            self.live.push(Given { key: op.key, name: *name, number: *number });
        }
    }
}

/// Whether the number under this name stays until it is given back.
#[must_use]
pub fn is_persistent(name: i64) -> bool {
    name % 2 == 0
}

/// The number of a node that stays until it is deleted.
fn lasting_number(op: &Recorded) -> Option<i64> {
    match op.kind() {
        OpKind::Create { name, number } if is_persistent(name) => number,
        _ => None,
    }
}
