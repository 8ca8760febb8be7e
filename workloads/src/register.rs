//! The workload `register`: a few registers that many clients read, overwrite and compare-and-set at once.
//!
//! Linearizability of a register is where lost writes, stale reads and split brains show, provided that
//! operations overlap on the same keys: hence few keys, and every written value different from every other,
//! so that a value read names the one write it came from.
//!
//! A compare-and-set asks for a version that some reply has shown. Half of them take the newest version that
//! any process of this run has seen, which mostly succeeds; the others take what their own process saw last,
//! which is mostly refused when keys are hot. Both outcomes are wanted: a success chains two values, a
//! refusal is an observation. A process that has seen nothing of the key reads it instead.

use checker::history::{EventKind, Function, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{durable_registers, registers, version_order};
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::params::RegisterParams;
use crate::shown::{Seen, Shown};
use crate::workload::{Definition, Generator, as_agreed, of_registers};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "register",
    summary: "reads (sync and read as one), writes and compare-and-set by version on a few hot keys",
    object: Object::REGISTER,
    functions: &Function::REGISTER,
    dispensable: &[Function::CAS],
    marks: &[],
    words: &[],
    generator: |params, rng| Box::new(Register::new(params.of_registers(), rng)),
    records_sessions: false,
    sessions_expire: false,
    goes_along: true,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_registers,
    promises: &[registers, version_order],
    durability: Some(durable_registers),
};

/// The generator, with the memory of what its processes were told.
#[derive(Clone, Debug)]
struct Register {
    params: RegisterParams,
    rng: ChaCha8Rng,
    next_value: i64,
    shown: Shown<i64>,
}

impl Register {
    fn new(params: RegisterParams, rng: ChaCha8Rng) -> Self {
        Self { params, rng, next_value: 0, shown: Shown::new() }
    }

    fn remember(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        let value = match outcome.value {
            Value::One(value) | Value::Pair(_, value) => value,
            Value::Null | Value::List(_) | Value::Txn(_) => return,
        };
        let version = outcome.claims.version;
        self.shown.remember(process, op.key, &Seen { version, value });
    }

    fn read(key: u64) -> Op {
        register(key, Body::Read)
    }

    fn cas(&mut self, key: u64, seen: Seen<i64>) -> Op {
        let to = self.fresh_value();
        register(key, Body::Cas { from: seen.value, to, basis: seen.version })
    }

    fn fresh_value(&mut self) -> i64 {
        let value = self.next_value;
        self.next_value += 1;
        value
    }
}

impl Generator for Register {
    /// Every key is created with a value of its own, at version 0. In the history this is a write like any
    /// other, so that the history alone says where each register began.
    fn setup(&mut self) -> Vec<Op> {
        let keys = 0..self.params.keys;
        keys.map(|key| register(key, Body::MakeRegister { value: self.fresh_value() })).collect()
    }

    fn final_reads(&self) -> Vec<Op> {
        (0..self.params.keys).map(Self::read).collect()
    }

    fn next_read(&mut self) -> Op {
        Self::read(self.rng.random_range(0..self.params.keys))
    }

    fn next_op(&mut self, process: u64) -> Op {
        let key = self.rng.random_range(0..self.params.keys);
        let roll = self.rng.random_range(0..100_u8);
        if roll < self.params.read_percent {
            Self::read(key)
        } else if roll < self.params.read_percent + self.params.cas_percent {
            let newest = self.rng.random_bool(0.5);
            let known = if newest { self.shown.newest(key) } else { self.shown.own(process, key) };
            match known {
                Some(seen) => self.cas(key, seen),
                None => Self::read(key),
            }
        } else {
            register(key, Body::Write { value: self.fresh_value() })
        }
    }

    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match outcome.kind {
            EventKind::Ok => self.remember(process, op, outcome),
            // What was refused is out of date: the next attempt on this key reads first, or knows better.
            EventKind::Fail if matches!(op.body, Body::Cas { .. }) => {
                self.shown.refused(process, op.key);
            }
            EventKind::Info => self.shown.retire(process),
            EventKind::Fail | EventKind::Invoke => {}
        }
    }
}

fn register(key: u64, body: Body) -> Op {
    Op::new(Object::REGISTER, key, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Claims, Refusal};
    use checker::history::{BAD_VERSION, Event, History};
    use checker::verdict::Verdict;
    use checker::{Budget, linearizable, versions};
    use rand::SeedableRng;
    use std::collections::{BTreeMap, BTreeSet};

    fn workload(seed: u64) -> Register {
        Register::new(RegisterParams::default(), ChaCha8Rng::seed_from_u64(seed))
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
                Body::Cas { basis, .. } if Some(self.0[&op.key].1) != basis => Outcome {
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
            let claims = Claims { version: Some(self.0[&op.key].1), changed_at: None, seen, by: None };
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
        let written: Vec<i64> = history.ops().iter().filter_map(|op| op.kind().written()).collect();
        assert_eq!(written.iter().collect::<BTreeSet<_>>().len(), written.len());
        let refused = history.ops().iter().filter(|op| op.is_refused_cas()).count();
        let acknowledged = |f| {
            history.ops().iter().filter(move |op| op.f == f && op.outcome == checker::history::Outcome::Ok)
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
        let mut workload = Register::new(params, ChaCha8Rng::seed_from_u64(1));
        assert_eq!(workload.next_op(0).function(), Function::READ);
        let setup = workload.setup().remove(0);
        workload.complete(9, &setup, &Registers::default().answer(&setup));
        let cas = (0..50).map(|_| workload.next_op(0)).find(|op| op.function() == Function::CAS).unwrap();
        assert_eq!((cas.basis(), cas.value()), (Some(0), Value::Pair(Some(0), 1)));
    }
}
