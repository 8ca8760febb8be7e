//! The workload `set`: unique elements put into sets, and sets read whole.
//!
//! Nothing is ever taken out, so whatever is missing was lost. It shows lost writes, stale reads and
//! snapshots that miss a change; registers show the same, but forget what was overwritten.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::rotation::{Fill, Rotation};

/// The generator.
#[derive(Clone, Debug)]
pub struct Set {
    rng: ChaCha8Rng,
    places: Rotation,
    read_percent: u8,
    next_element: i64,
}

impl Set {
    /// So many sets at a time, each of so many elements at most; the rest are adds.
    #[must_use]
    pub fn new(sets: u64, elements: u64, read_percent: u8, rng: ChaCha8Rng) -> Self {
        Self { rng, places: Rotation::new(Object::Set, sets, elements), read_percent, next_element: 0 }
    }

    /// What must be there before the load begins.
    #[must_use]
    pub fn setup(&self) -> Vec<Op> {
        self.places.setup()
    }

    /// One read of each set that there ever was.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Op> {
        self.places.all().map(|key| self.read(key)).collect()
    }

    /// A read, for a process that does nothing else.
    pub fn next_read(&mut self) -> Op {
        let key = self.places.any(&mut self.rng);
        self.read(key)
    }

    /// What to do next.
    pub fn next_op(&mut self) -> Op {
        if let Some(creation) = self.places.creation_due() {
            return creation;
        }
        let key = self.places.any(&mut self.rng);
        if self.rng.random_range(0..100) < self.read_percent {
            return self.read(key);
        }
        match self.places.fill(key) {
            Fill::Taken => self.add(key),
            Fill::Moved(key) => self.add(key),
            Fill::Full => self.read(key),
        }
    }

    /// Remembers what came of an operation.
    pub fn complete(&mut self, op: &Op, outcome: &Outcome) {
        if op.makes_a_place() {
            self.places.creation_ended(op.key, outcome.is_there());
        }
    }

    fn read(&self, key: u64) -> Op {
        Op::new(Object::Set, key, Body::Read)
    }

    fn add(&mut self, key: u64) -> Op {
        let element = self.next_element;
        self.next_element += 1;
        Op::new(Object::Set, key, Body::Add { element })
    }
}
