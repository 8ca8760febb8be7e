//! The workload `sequential`: nodes that get a number, made and deleted again.
//!
//! Each create asks for a name of its own and is given a number by its parent. Nodes are deleted while others are
//! made, so that the number of children goes down as well as up: a numbering that counts children gives a number
//! twice. Half of the nodes are ephemeral, and go with their sessions too.
//!
//! A name is even when its node stays until somebody deletes it, and odd when it is ephemeral.

use bytes::Bytes;
use checker::history::{EventKind, Function, OpKind, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::action::{self, Action, Answer, Completion, CreateMode, Invocation, Reading};

/// Nodes that are known to live at most, for each place; more are deleted before another is made.
const MAX_LIVE: usize = 24;

/// A node that was made.
#[derive(Clone, Debug)]
struct Made {
    key: u64,
    name: i64,
    path: String,
}

/// The generator.
#[derive(Clone, Debug)]
pub struct Sequential {
    rng: ChaCha8Rng,
    places: u64,
    next_name: i64,
    live: Vec<Made>,
}

impl Sequential {
    /// So many parents.
    #[must_use]
    pub fn new(places: u64, rng: ChaCha8Rng) -> Self {
        Self { rng, places, next_name: 0, live: Vec::new() }
    }

    fn path(key: u64) -> String {
        format!("/q{key}")
    }

    /// What must be there before the load begins.
    #[must_use]
    pub fn setup(&self) -> Vec<Invocation> {
        (0..self.places).map(|key| place(key, Self::path(key))).collect()
    }

    /// One listing of each parent.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Invocation> {
        (0..self.places).map(Self::read).collect()
    }

    /// A listing, for a process that does nothing else.
    pub fn next_read(&mut self) -> Invocation {
        Self::read(self.rng.random_range(0..self.places))
    }

    /// What to do next.
    pub fn next_op(&mut self) -> Invocation {
        let crowded = self.live.len() >= MAX_LIVE * usize::try_from(self.places).unwrap_or(1);
        match self.rng.random_range(0..100_u8) {
            0..15 => self.next_read(),
            15..50 if !self.live.is_empty() => self.delete(),
            _ if crowded => self.delete(),
            _ => self.create(),
        }
    }

    /// Says what `answer` means, and remembers what was made.
    pub fn complete(&mut self, invocation: &Invocation, answer: &Answer) -> Completion {
        let completion = action::completion(invocation, answer);
        if let (EventKind::Ok, &Value::One(name), Answer::Created { path, .. }) =
            (completion.kind, &invocation.value, answer)
        {
            self.live.push(Made { key: invocation.key, name, path: path.to_string() });
        }
        completion
    }

    fn read(key: u64) -> Invocation {
        Invocation {
            f: Function::Read,
            key,
            value: Value::Null,
            expect: None,
            action: Action::SyncChildren { path: Self::path(key) },
            reading: Reading::Numbers,
        }
    }

    fn create(&mut self) -> Invocation {
        let key = self.rng.random_range(0..self.places);
        let name = self.next_name;
        self.next_name += 1;
        let mode = if is_persistent(name) { CreateMode::Sequential } else { CreateMode::EphemeralSequential };
        Invocation {
            f: Function::Create,
            key,
            value: Value::One(name),
            expect: None,
            action: Action::Create {
                path: format!("{}/{}-", Self::path(key), action::encode_name(name)),
                data: Bytes::new(),
                mode,
            },
            reading: Reading::Numbers,
        }
    }

    fn delete(&mut self) -> Invocation {
        let chosen = self.rng.random_range(0..self.live.len());
        let Made { key, name, path } = self.live.swap_remove(chosen);
        Invocation {
            f: Function::Delete,
            key,
            value: Value::One(name),
            expect: None,
            action: Action::Delete { path },
            reading: Reading::Numbers,
        }
    }
}

/// What makes a place that never fills up.
pub(crate) fn place(key: u64, path: String) -> Invocation {
    Invocation {
        f: Function::Create,
        key,
        value: Value::Null,
        expect: None,
        action: Action::Create { path, data: Bytes::new(), mode: CreateMode::Persistent },
        reading: Reading::Numbers,
    }
}

fn is_persistent(name: i64) -> bool {
    name % 2 == 0
}

/// The number of a node that stays until it is deleted.
pub(crate) fn lasting_number(op: &checker::history::Op) -> Option<i64> {
    match op.kind {
        OpKind::Create { name, number } if is_persistent(name) => number,
        _ => None,
    }
}
