//! The workload `set`: unique elements put into sets, and sets read whole.
//!
//! An element is a node of its own name, a set the children of a node. Nothing is ever taken out, so whatever is
//! missing was lost. It shows lost writes, stale reads and snapshots that miss a change; registers show the same, but
//! forget what was overwritten.

use bytes::Bytes;
use checker::history::{EventKind, Function, Value};
use node_wire::client::ErrorCode;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::action::{self, Action, Answer, Completion, CreateMode, Invocation, Reading};
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
        Self { rng, places: Rotation::new('s', sets, elements), read_percent, next_element: 0 }
    }

    /// What must be there before the load begins.
    #[must_use]
    pub fn setup(&self) -> Vec<Invocation> {
        self.places.setup()
    }

    /// One read of each set that there ever was.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Invocation> {
        self.places.all().map(|key| self.read(key)).collect()
    }

    /// A read, for a process that does nothing else.
    pub fn next_read(&mut self) -> Invocation {
        let key = self.places.any(&mut self.rng);
        self.read(key)
    }

    /// What to do next.
    pub fn next_op(&mut self) -> Invocation {
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

    /// Says what `answer` means.
    pub fn complete(&mut self, invocation: &Invocation, answer: &Answer) -> Completion {
        let completion = action::completion(invocation, answer);
        if invocation.f == Function::Create {
            self.places.creation_ended(invocation.key, is_there(&completion, answer));
        }
        completion
    }

    fn read(&self, key: u64) -> Invocation {
        Invocation {
            f: Function::Read,
            key,
            value: Value::Null,
            expect: None,
            action: Action::SyncChildren { path: self.places.path(key) },
            reading: Reading::Names,
        }
    }

    fn add(&mut self, key: u64) -> Invocation {
        let element = self.next_element;
        self.next_element += 1;
        Invocation {
            f: Function::Add,
            key,
            value: Value::One(element),
            expect: None,
            action: Action::Create {
                path: format!("{}/{}", self.places.path(key), action::encode_name(element)),
                data: Bytes::new(),
                mode: CreateMode::Persistent,
            },
            reading: Reading::Names,
        }
    }
}

/// Whether a place is certainly there after its creation ended like this.
pub(crate) fn is_there(completion: &Completion, answer: &Answer) -> bool {
    completion.kind == EventKind::Ok || matches!(answer, Answer::Refused { code: ErrorCode::NodeExists, .. })
}
