//! The workload `register`: a few nodes that many clients read, overwrite and compare-and-set at once.
//!
//! Linearizability of a register is where lost writes, stale reads and split brains show, provided that
//! operations overlap on the same keys: hence few keys, and every written value different from every other, so
//! that a value read names the one write it came from.
//!
//! A compare-and-set asks for a version that some reply has shown. Half of them take the newest version that any
//! process of this run has seen, which mostly succeeds; the others take what their own process saw last, which
//! is mostly refused when keys are hot. Both outcomes are wanted: a success chains two values, a refusal is an
//! observation. A process that has seen nothing of the key reads it instead.

use std::collections::BTreeMap;

use checker::history::{EventKind, Function, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::action::{self, Action, Answer, Completion, CreateMode, Invocation, Reading};

/// Most keys; more of them are no longer hot.
pub const MAX_KEYS: u64 = 10_000;

/// What the workload is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegisterParams {
    /// How many keys.
    pub keys: u64,
    /// Share of reads, in percent.
    pub read_percent: u8,
    /// Share of compare-and-set, in percent; the rest are writes.
    pub cas_percent: u8,
}

impl Default for RegisterParams {
    fn default() -> Self {
        Self { keys: 5, read_percent: 40, cas_percent: 30 }
    }
}

/// Parameters that make no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// Too few or too many keys.
    #[error("the number of keys must be between 1 and {MAX_KEYS}, not {0}")]
    Keys(u64),
    /// The shares exceed the whole.
    #[error("reads ({0} %) and compare-and-sets ({1} %) are more than 100 %")]
    Shares(u8, u8),
}

/// What a reply has shown of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    version: i32,
    value: i64,
}

/// The generator, with the memory of what its processes were told.
#[derive(Clone, Debug)]
pub struct Register {
    params: RegisterParams,
    rng: ChaCha8Rng,
    next_value: i64,
    newest: BTreeMap<u64, Seen>,
    own: BTreeMap<(u64, u64), Seen>,
}

impl Register {
    /// A workload whose every choice comes from `rng`.
    ///
    /// # Errors
    /// [`ParamsError`] when the parameters make no sense.
    pub fn new(params: RegisterParams, rng: ChaCha8Rng) -> Result<Self, ParamsError> {
        if params.keys == 0 || params.keys > MAX_KEYS {
            return Err(ParamsError::Keys(params.keys));
        }
        if params.read_percent > 100 || params.cas_percent > 100 - params.read_percent {
            return Err(ParamsError::Shares(params.read_percent, params.cas_percent));
        }
        Ok(Self { params, rng, next_value: 0, newest: BTreeMap::new(), own: BTreeMap::new() })
    }

    /// The node that stands for `key`.
    #[must_use]
    pub fn path(key: u64) -> String {
        format!("/r{key}")
    }

    /// The paths of all keys.
    #[must_use]
    pub fn paths(&self) -> Vec<(u64, String)> {
        (0..self.params.keys).map(|key| (key, Self::path(key))).collect()
    }

    /// What must be done, one by one and each with success, before the load begins: every key is created with a
    /// value of its own, at version 0. In the history this is a write like any other, so that the history alone
    /// says where each register began.
    pub fn setup(&mut self) -> Vec<Invocation> {
        (0..self.params.keys)
            .map(|key| {
                let value = self.fresh_value();
                Invocation {
                    f: Function::Write,
                    key,
                    value: Value::One(value),
                    expect: None,
                    action: Action::Create {
                        path: Self::path(key),
                        data: action::encode(value),
                        mode: CreateMode::Persistent,
                    },
                    reading: Reading::Integer,
                }
            })
            .collect()
    }

    /// One read of each key, to be done by a process of its own after everything has healed.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Invocation> {
        (0..self.params.keys).map(Self::read).collect()
    }

    /// A read, for a process that does nothing else.
    pub fn next_read(&mut self) -> Invocation {
        Self::read(self.rng.random_range(0..self.params.keys))
    }

    /// What `process` is to do next.
    pub fn next_op(&mut self, process: u64) -> Invocation {
        let key = self.rng.random_range(0..self.params.keys);
        let roll = self.rng.random_range(0..100_u8);
        if roll < self.params.read_percent {
            Self::read(key)
        } else if roll < self.params.read_percent + self.params.cas_percent {
            let newest = self.rng.random_bool(0.5);
            let known = if newest { self.newest.get(&key) } else { self.own.get(&(process, key)) };
            match known.copied() {
                Some(seen) => self.cas(key, seen),
                None => Self::read(key),
            }
        } else {
            let value = self.fresh_value();
            Invocation {
                f: Function::Write,
                key,
                value: Value::One(value),
                expect: None,
                action: Action::Write { path: Self::path(key), data: action::encode(value) },
                reading: Reading::Integer,
            }
        }
    }

    /// Says what `answer` means, and remembers what it showed.
    pub fn complete(&mut self, process: u64, invocation: &Invocation, answer: &Answer) -> Completion {
        let completion = action::completion(invocation, answer);
        match completion.kind {
            EventKind::Ok => self.remember(process, invocation, &completion),
            // What was refused is out of date: the next attempt on this key reads first, or knows better.
            EventKind::Fail if invocation.f == Function::Cas => {
                self.own.remove(&(process, invocation.key));
            }
            EventKind::Info => self.own.retain(|&(owner, _), _| owner != process),
            EventKind::Fail | EventKind::Invoke => {}
        }
        completion
    }

    fn remember(&mut self, process: u64, invocation: &Invocation, completion: &Completion) {
        let value = match completion.value {
            Value::One(value) | Value::Pair(_, value) => value,
            Value::Null | Value::List(_) => return,
        };
        let Some(version) = completion.version.and_then(|version| i32::try_from(version).ok()) else {
            return;
        };
        let seen = Seen { version, value };
        self.own.insert((process, invocation.key), seen);
        let newest = self.newest.entry(invocation.key).or_insert(seen);
        if newest.version < version {
            *newest = seen;
        }
    }

    fn read(key: u64) -> Invocation {
        Invocation {
            f: Function::Read,
            key,
            value: Value::Null,
            expect: None,
            action: Action::SyncRead { path: Self::path(key) },
            reading: Reading::Integer,
        }
    }

    fn cas(&mut self, key: u64, seen: Seen) -> Invocation {
        let value = self.fresh_value();
        Invocation {
            f: Function::Cas,
            key,
            value: Value::Pair(Some(seen.value), value),
            expect: Some(seen.version),
            action: Action::CasWrite {
                path: Self::path(key),
                data: action::encode(value),
                expect: seen.version,
            },
            reading: Reading::Integer,
        }
    }

    fn fresh_value(&mut self) -> i64 {
        let value = self.next_value;
        self.next_value += 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::{Event, History};
    use checker::verdict::Verdict;
    use checker::{Budget, linearizable, versions};
    use node_wire::client::ErrorCode;
    use node_wire::ids::Zxid;
    use rand::SeedableRng;
    use std::collections::{BTreeMap, BTreeSet};

    fn workload(seed: u64) -> Register {
        Register::new(RegisterParams::default(), ChaCha8Rng::seed_from_u64(seed)).unwrap()
    }

    /// A tree of one member, for answers.
    #[derive(Default)]
    struct Tree(BTreeMap<String, (bytes::Bytes, i32)>, u64);

    impl Tree {
        fn answer(&mut self, action: &Action) -> Answer {
            self.1 += 1;
            let zxid = Zxid(self.1);
            match action {
                Action::Create { path, data, .. } => {
                    self.0.insert(path.clone(), (data.clone(), 0));
                    Answer::Created { path: path.as_str().into(), zxid }
                }
                Action::SyncRead { path } => {
                    let (data, version) = self.0[path].clone();
                    Answer::Read { data: Some(data), version, mzxid: Zxid(1), zxid }
                }
                Action::Write { path, data } => self.set(path, data, zxid),
                Action::CasWrite { path, expect, .. } if self.0[path].1 != *expect => {
                    Answer::Refused { code: ErrorCode::BadVersion, zxid: Some(zxid) }
                }
                Action::CasWrite { path, data, .. } => self.set(path, data, zxid),
                other => panic!("no action of a register: {other:?}"),
            }
        }

        fn set(&mut self, path: &str, data: &bytes::Bytes, zxid: Zxid) -> Answer {
            let version = self.0[path].1 + 1;
            self.0.insert(path.to_owned(), (data.clone(), version));
            Answer::Written { version, mzxid: zxid, zxid }
        }
    }

    /// Runs operations one after the other against a tree.
    fn run(workload: &mut Register, ops: u64) -> Vec<Event> {
        let mut tree = Tree::default();
        let mut events = Vec::new();
        let mut now = 0;
        let mut perform = |workload: &mut Register, process: u64, invocation: &Invocation| {
            events.push(invocation.event(process, now));
            let answer = tree.answer(&invocation.action);
            let completion = workload.complete(process, invocation, &answer);
            let mut event = completion.event(invocation, process, now + 1);
            event.mzxid = None;
            events.push(event);
            now += 2;
        };
        for invocation in workload.setup() {
            perform(workload, 1000, &invocation);
        }
        for at in 0..ops {
            let invocation = workload.next_op(at % 20);
            perform(workload, at % 20, &invocation);
        }
        events
    }

    #[test]
    fn the_same_seed_gives_the_same_operations() {
        assert_eq!(run(&mut workload(7), 200), run(&mut workload(7), 200));
        assert_ne!(run(&mut workload(7), 200), run(&mut workload(8), 200));
    }

    #[test]
    fn every_written_value_is_unique_and_all_outcomes_occur() {
        let events = run(&mut workload(1), 2000);
        let history = History::from_events(events).unwrap();
        let written: Vec<i64> = history.ops().iter().filter_map(|op| op.kind.written()).collect();
        assert_eq!(written.iter().collect::<BTreeSet<_>>().len(), written.len());
        let refused = history.ops().iter().filter(|op| op.is_refused_cas()).count();
        let acknowledged = |f| {
            history
                .ops()
                .iter()
                .filter(move |op| op.kind.function() == f && op.outcome == checker::history::Outcome::Ok)
        };
        assert!(refused > 20, "{refused}");
        for f in Function::REGISTER {
            assert!(acknowledged(f).count() > 200, "{f}");
        }
        assert_eq!(linearizable::check(&history, &Budget::default()).verdict, Verdict::Valid);
        assert_eq!(versions::check(&history).verdict, Verdict::Valid);
    }

    #[test]
    fn a_process_that_saw_nothing_of_a_key_reads_it_first() {
        let params = RegisterParams { keys: 1, read_percent: 0, cas_percent: 100 };
        let mut workload = Register::new(params, ChaCha8Rng::seed_from_u64(1)).unwrap();
        assert_eq!(workload.next_op(0).f, Function::Read);
        let setup = workload.setup().remove(0);
        workload.complete(9, &setup, &Answer::Created { path: "/r0".into(), zxid: Zxid(1) });
        let cas = (0..50).map(|_| workload.next_op(0)).find(|op| op.f == Function::Cas).unwrap();
        assert_eq!((cas.expect, cas.value), (Some(0), Value::Pair(Some(0), 1)));
    }

    #[test]
    fn parameters_that_make_no_workload_are_refused() {
        let new = |params| Register::new(params, ChaCha8Rng::seed_from_u64(1)).map(|_| ());
        let params = RegisterParams::default();
        assert_eq!(new(RegisterParams { keys: 0, ..params }), Err(ParamsError::Keys(0)));
        let shares = RegisterParams { read_percent: 60, cas_percent: 60, ..params };
        assert_eq!(new(shares), Err(ParamsError::Shares(60, 60)));
        let huge = RegisterParams { read_percent: 200, cas_percent: 0, ..params };
        assert!(new(huge).is_err());
    }
}
