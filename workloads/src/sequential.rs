//! The workload `sequential`: numbers that are given once, and given back.
//!
//! Each request comes under a name of its own and is given a number by its place. Numbers are given back
//! while others are given, so that the count of those in use goes down as well as up: a numbering that counts
//! those in use gives a number twice. Half of them are bound to the session, and go with it too.
//!
//! A name is even when its number stays until somebody gives it back, and odd when it goes with the session.

use checker::history::{EventKind, OpKind, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;

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
pub struct Sequential {
    rng: ChaCha8Rng,
    places: u64,
    next_name: i64,
    live: Vec<Given>,
}

impl Sequential {
    /// So many parents.
    #[must_use]
    pub fn new(places: u64, rng: ChaCha8Rng) -> Self {
        Self { rng, places, next_name: 0, live: Vec::new() }
    }

    /// What must be there before the load begins.
    #[must_use]
    pub fn setup(&self) -> Vec<Op> {
        (0..self.places).map(|key| Op::new(Object::Numbers, key, Body::MakePlace)).collect()
    }

    /// One listing of each parent.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Op> {
        (0..self.places).map(Self::read).collect()
    }

    /// A listing, for a process that does nothing else.
    pub fn next_read(&mut self) -> Op {
        Self::read(self.rng.random_range(0..self.places))
    }

    /// What to do next.
    pub fn next_op(&mut self) -> Op {
        let crowded = self.live.len() >= MAX_LIVE * usize::try_from(self.places).unwrap_or(1);
        match self.rng.random_range(0..100_u8) {
            0..15 => self.next_read(),
            15..50 if !self.live.is_empty() => self.delete(),
            _ if crowded => self.delete(),
            _ => self.create(),
        }
    }

    /// Remembers what was given.
    pub fn complete(&mut self, op: &Op, outcome: &Outcome) {
        if let (EventKind::Ok, Body::Next { name, .. }, Value::Pair(_, number)) =
            (outcome.kind, &op.body, &outcome.value)
        {
            self.live.push(Given { key: op.key, name: *name, number: *number });
        }
    }

    fn read(key: u64) -> Op {
        Op::new(Object::Numbers, key, Body::Read)
    }

    fn create(&mut self) -> Op {
        let key = self.rng.random_range(0..self.places);
        let name = self.next_name;
        self.next_name += 1;
        Op::new(Object::Numbers, key, Body::Next { name, lasts: is_persistent(name) })
    }

    fn delete(&mut self) -> Op {
        let chosen = self.rng.random_range(0..self.live.len());
        let Given { key, name, number } = self.live.swap_remove(chosen);
        Op::new(Object::Numbers, key, Body::Delete { name, number })
    }
}

/// Whether the number under this name stays until it is given back.
#[must_use]
pub fn is_persistent(name: i64) -> bool {
    name % 2 == 0
}

/// The number of a node that stays until it is deleted.
pub(crate) fn lasting_number(op: &checker::history::Op) -> Option<i64> {
    match op.kind {
        OpKind::Create { name, number } if is_persistent(name) => number,
        _ => None,
    }
}
