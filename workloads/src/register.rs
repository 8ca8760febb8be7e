//! The workload `register`: a few registers that many clients read, overwrite and compare-and-set at once.
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

use checker::history::{EventKind, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;

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
    version: i64,
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

    /// What must be done, one by one and each with success, before the load begins: every key is created with a
    /// value of its own, at version 0. In the history this is a write like any other, so that the history alone
    /// says where each register began.
    pub fn setup(&mut self) -> Vec<Op> {
        let keys = 0..self.params.keys;
        keys.map(|key| register(key, Body::MakeRegister { value: self.fresh_value() })).collect()
    }

    /// One read of each key, to be done by a process of its own after everything has healed.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Op> {
        (0..self.params.keys).map(Self::read).collect()
    }

    /// A read, for a process that does nothing else.
    pub fn next_read(&mut self) -> Op {
        Self::read(self.rng.random_range(0..self.params.keys))
    }

    /// What `process` is to do next.
    pub fn next_op(&mut self, process: u64) -> Op {
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
            register(key, Body::Write { value: self.fresh_value() })
        }
    }

    /// Remembers what came of an operation.
    pub fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match outcome.kind {
            EventKind::Ok => self.remember(process, op, outcome),
            // What was refused is out of date: the next attempt on this key reads first, or knows better.
            EventKind::Fail if matches!(op.body, Body::Cas { .. }) => {
                self.own.remove(&(process, op.key));
            }
            EventKind::Info => self.own.retain(|&(owner, _), _| owner != process),
            EventKind::Fail | EventKind::Invoke => {}
        }
    }

    fn remember(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        let value = match outcome.value {
            Value::One(value) | Value::Pair(_, value) => value,
            Value::Null | Value::List(_) => return,
        };
        let Some(version) = outcome.claims.version else { return };
        let seen = Seen { version, value };
        self.own.insert((process, op.key), seen);
        let newest = self.newest.entry(op.key).or_insert(seen);
        if newest.version < version {
            *newest = seen;
        }
    }

    fn read(key: u64) -> Op {
        register(key, Body::Read)
    }

    fn cas(&mut self, key: u64, seen: Seen) -> Op {
        let to = self.fresh_value();
        register(key, Body::Cas { from: seen.value, to, basis: seen.version })
    }

    fn fresh_value(&mut self) -> i64 {
        let value = self.next_value;
        self.next_value += 1;
        value
    }
}

fn register(key: u64, body: Body) -> Op {
    Op::new(Object::Register, key, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Claims, Refusal};
    use checker::history::{BAD_VERSION, Event, Function, History};
    use checker::verdict::Verdict;
    use checker::{Budget, linearizable, versions};
    use rand::SeedableRng;
    use std::collections::{BTreeMap, BTreeSet};

    fn workload(seed: u64) -> Register {
        Register::new(RegisterParams::default(), ChaCha8Rng::seed_from_u64(seed)).unwrap()
    }

    /// Registers that keep their promises, for answers.
    #[derive(Default)]
    struct Registers(BTreeMap<u64, (i64, i64)>, u64);

    impl Registers {
        fn answer(&mut self, op: &Op) -> Outcome {
            self.1 += 1;
            let seen = Some(self.1);
            match op.body {
                Body::MakeRegister { value } => {
                    self.0.insert(op.key, (value, 0));
                    self.claimed(op, op.value(), seen)
                }
                Body::Read => self.claimed(op, Value::One(self.0[&op.key].0), seen),
                Body::Write { value } => self.set(op, value, seen),
                Body::Cas { basis, .. } if self.0[&op.key].1 != basis => Outcome {
                    claims: Claims { seen, ..Claims::default() },
                    refusal: Some(Refusal::Other),
                    ..Outcome::without_result(EventKind::Fail, op, BAD_VERSION.to_owned())
                },
                Body::Cas { to, .. } => self.set(op, to, seen),
                _ => panic!("no operation of a register: {op:?}"),
            }
        }

        fn set(&mut self, op: &Op, value: i64, seen: Option<u64>) -> Outcome {
            let version = self.0[&op.key].1 + 1;
            self.0.insert(op.key, (value, version));
            self.claimed(op, op.value(), seen)
        }

        fn claimed(&self, op: &Op, value: Value, seen: Option<u64>) -> Outcome {
            let claims = Claims { version: Some(self.0[&op.key].1), changed_at: None, seen };
            Outcome { claims, ..Outcome::told(value, seen) }
        }
    }

    /// Runs operations one after the other against registers.
    fn run(workload: &mut Register, ops: u64) -> Vec<Event> {
        let mut registers = Registers::default();
        let mut events = Vec::new();
        let mut now = 0;
        let mut perform = |workload: &mut Register, process: u64, op: &Op| {
            events.push(op.event(process, now));
            let outcome = registers.answer(op);
            workload.complete(process, op, &outcome);
            events.push(outcome.event(op, process, now + 1));
            now += 2;
        };
        for op in workload.setup() {
            perform(workload, 1000, &op);
        }
        for at in 0..ops {
            let op = workload.next_op(at % 20);
            perform(workload, at % 20, &op);
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
        assert_eq!(workload.next_op(0).function(), Function::Read);
        let setup = workload.setup().remove(0);
        workload.complete(9, &setup, &Registers::default().answer(&setup));
        let cas = (0..50).map(|_| workload.next_op(0)).find(|op| op.function() == Function::Cas).unwrap();
        assert_eq!((cas.basis(), cas.value()), (Some(0), Value::Pair(Some(0), 1)));
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
