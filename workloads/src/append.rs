//! The workload `append`: unique elements put at the end of lists, and lists read whole.
//!
//! To append is to write the list that some answer has shown with one element more, if the list is still that
//! one. So every success names the list that it built on, and two histories that both go on show as lists of
//! which neither is a beginning of the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use checker::history::{EventKind, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::rotation::{Fill, Rotation};

/// What a reply has shown of a list.
#[derive(Clone, Debug)]
struct Seen {
    version: i64,
    list: Arc<[i64]>,
}

/// The generator, with the memory of what its processes were told.
#[derive(Clone, Debug)]
pub struct Append {
    rng: ChaCha8Rng,
    places: Rotation,
    read_percent: u8,
    next_element: i64,
    newest: BTreeMap<u64, Seen>,
    own: BTreeMap<(u64, u64), Seen>,
}

impl Append {
    /// So many lists at a time, each of so many elements at most.
    #[must_use]
    pub fn new(lists: u64, elements: u64, read_percent: u8, rng: ChaCha8Rng) -> Self {
        Self {
            rng,
            places: Rotation::new(Object::List, lists, elements),
            read_percent,
            next_element: 0,
            newest: BTreeMap::new(),
            own: BTreeMap::new(),
        }
    }

    /// What must be there before the load begins: empty lists, at version 0.
    #[must_use]
    pub fn setup(&self) -> Vec<Op> {
        self.places.setup()
    }

    /// One read of each list that there ever was.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Op> {
        self.places.all().map(|key| self.read(key)).collect()
    }

    /// A read, for a process that does nothing else.
    pub fn next_read(&mut self) -> Op {
        let key = self.places.any(&mut self.rng);
        self.read(key)
    }

    /// What `process` is to do next.
    pub fn next_op(&mut self, process: u64) -> Op {
        if let Some(creation) = self.places.creation_due() {
            return creation;
        }
        let key = self.places.any(&mut self.rng);
        if self.rng.random_range(0..100) < self.read_percent {
            return self.read(key);
        }
        // As with registers: the newest list mostly succeeds, what the process saw last is mostly refused.
        let newest = self.rng.random_bool(0.7);
        let known = if newest { self.newest.get(&key) } else { self.own.get(&(process, key)) };
        let Some(seen) = known.cloned() else { return self.read(key) };
        match self.places.fill(key) {
            Fill::Taken => self.append(key, &seen),
            Fill::Moved(next) => {
                self.newest.remove(&key);
                self.own.retain(|&(_, of), _| of != key);
                self.read(next)
            }
            Fill::Full => self.read(key),
        }
    }

    /// Remembers what came of an operation.
    pub fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match (&op.body, outcome.kind) {
            (Body::MakePlace, _) => self.places.creation_ended(op.key, outcome.is_there()),
            (_, EventKind::Ok) => self.remember(process, op, outcome),
            (Body::Append { .. }, EventKind::Fail) => {
                self.own.remove(&(process, op.key));
            }
            (_, EventKind::Info) => self.own.retain(|&(owner, _), _| owner != process),
            (_, EventKind::Fail | EventKind::Invoke) => {}
        }
    }

    fn remember(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        let Some(version) = outcome.claims.version else { return };
        let list = match (&outcome.value, &op.body) {
            (Value::List(list), _) => Arc::clone(list),
            // What was acknowledged is what was written.
            (_, Body::Append { element, onto, .. }) => onto.iter().copied().chain([*element]).collect(),
            _ => return,
        };
        let seen = Seen { version, list };
        let newest = self.newest.entry(op.key).or_insert_with(|| seen.clone());
        if newest.version < version {
            *newest = seen.clone();
        }
        self.own.insert((process, op.key), seen);
    }

    fn read(&self, key: u64) -> Op {
        Op::new(Object::List, key, Body::Read)
    }

    fn append(&mut self, key: u64, seen: &Seen) -> Op {
        let element = self.next_element;
        self.next_element += 1;
        let onto = Arc::clone(&seen.list);
        Op::new(Object::List, key, Body::Append { element, onto, basis: seen.version })
    }
}
