//! The workload `append`: unique elements put at the end of lists, and lists read whole.
//!
//! A list is a node's data; to append is to write the list that some reply has shown with one element more, if the
//! node still has that reply's version. So every success names the list that it built on, and two histories that both
//! go on show as lists of which neither is a beginning of the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use checker::history::{EventKind, Function, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::action::{self, Action, Answer, Completion, Invocation, Reading};
use crate::rotation::{Fill, Rotation};
use crate::set::is_there;

/// What a reply has shown of a list.
#[derive(Clone, Debug)]
struct Seen {
    version: i32,
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
            places: Rotation::new('l', lists, elements),
            read_percent,
            next_element: 0,
            newest: BTreeMap::new(),
            own: BTreeMap::new(),
        }
    }

    /// What must be there before the load begins: empty lists, at version 0.
    #[must_use]
    pub fn setup(&self) -> Vec<Invocation> {
        self.places.setup()
    }

    /// One read of each list that there ever was.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Invocation> {
        self.places.all().map(|key| self.read(key)).collect()
    }

    /// A read, for a process that does nothing else.
    pub fn next_read(&mut self) -> Invocation {
        let key = self.places.any(&mut self.rng);
        self.read(key)
    }

    /// What `process` is to do next.
    pub fn next_op(&mut self, process: u64) -> Invocation {
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

    /// Says what `answer` means, and remembers what it showed.
    pub fn complete(&mut self, process: u64, invocation: &Invocation, answer: &Answer) -> Completion {
        let completion = action::completion(invocation, answer);
        match (invocation.f, completion.kind) {
            (Function::Create, _) => {
                self.places.creation_ended(invocation.key, is_there(&completion, answer));
            }
            (_, EventKind::Ok) => self.remember(process, invocation, &completion),
            (Function::Append, EventKind::Fail) => {
                self.own.remove(&(process, invocation.key));
            }
            (_, EventKind::Info) => self.own.retain(|&(owner, _), _| owner != process),
            (_, EventKind::Fail | EventKind::Invoke) => {}
        }
        completion
    }

    fn remember(&mut self, process: u64, invocation: &Invocation, completion: &Completion) {
        let Some(version) = completion.version.and_then(|version| i32::try_from(version).ok()) else {
            return;
        };
        let list = match (&completion.value, &invocation.action) {
            (Value::List(list), _) => Arc::clone(list),
            // What was acknowledged is what was written.
            (_, Action::CasWrite { data, .. }) => match action::decode_list(data) {
                Some(list) => list.into(),
                None => return,
            },
            _ => return,
        };
        let seen = Seen { version, list };
        let newest = self.newest.entry(invocation.key).or_insert_with(|| seen.clone());
        if newest.version < version {
            *newest = seen.clone();
        }
        self.own.insert((process, invocation.key), seen);
    }

    fn read(&self, key: u64) -> Invocation {
        Invocation {
            f: Function::Read,
            key,
            value: Value::Null,
            expect: None,
            action: Action::SyncRead { path: self.places.path(key) },
            reading: Reading::Integers,
        }
    }

    fn append(&mut self, key: u64, seen: &Seen) -> Invocation {
        let element = self.next_element;
        self.next_element += 1;
        let mut list = seen.list.to_vec();
        list.push(element);
        Invocation {
            f: Function::Append,
            key,
            value: Value::One(element),
            expect: Some(seen.version),
            action: Action::CasWrite {
                path: self.places.path(key),
                data: action::encode_list(&list),
                expect: seen.version,
            },
            reading: Reading::Integers,
        }
    }
}
