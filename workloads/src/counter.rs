//! The workload `counter`: a few counters that many clients increase at once, and read.
//!
//! An increment is a compare-and-set of a register: it replaces a value that some answer has shown by a
//! larger one, if the register still has the version that was shown with it. The amount is the smallest that
//! makes a value which no attempt on this counter made before. So no two attempts make the same value,
//! whatever became of them: a value names its increment, and that one names the value that it built on. What
//! a counter shows says of each increment whether it is contained, although its value is only a sum.
//!
//! So a counter is judged as a register whose values are unique: acknowledged increments are contained in
//! whatever is there afterwards, each of them once, and no read goes back. The explanation of a register
//! says which increment was lost or doubled.
//!
//! A history alone looks like one of registers, because its functions are the same. It is judged as such
//! then, which is sound.

use std::collections::BTreeMap;

use checker::history::{EventKind, Function, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{durable_registers, registers, version_order};
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::params::Params;
use crate::shown::{Seen, Shown};
use crate::workload::{Definition, Generator, as_agreed, of_registers};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "counter",
    summary: "increments by compare-and-set, and reads: none is lost, none is doubled, no read goes back",
    object: Object::REGISTER,
    functions: &[Function::READ, Function::CAS],
    dispensable: &[],
    marks: &[],
    words: &[],
    generator: |params, rng| Box::new(Counter::new(params, rng)),
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
struct Counter {
    rng: ChaCha8Rng,
    keys: u64,
    read_percent: u8,
    /// For each counter the value that the next attempt makes.
    next_values: BTreeMap<u64, i64>,
    shown: Shown<i64>,
}

impl Counter {
    fn new(&Params { keys, read_percent, .. }: &Params, rng: ChaCha8Rng) -> Self {
        Self { rng, keys, read_percent, next_values: BTreeMap::new(), shown: Shown::new() }
    }

    fn remember(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        let (Value::One(value) | Value::Pair(_, value)) = outcome.value else { return };
        let version = outcome.claims.version;
        self.shown.remember(process, op.key, &Seen { version, value });
    }

    fn read(key: u64) -> Op {
        counter(key, Body::Read)
    }

    /// A value that no attempt on this counter made before, and larger than all of those.
    fn fresh_value(&mut self, key: u64) -> i64 {
        let next = self.next_values.entry(key).or_default();
        *next += 1;
        *next - 1
    }
}

impl Generator for Counter {
    /// Every counter begins at 0. In the history this is a write.
    fn setup(&mut self) -> Vec<Op> {
        (0..self.keys).map(|key| counter(key, Body::MakeRegister { value: self.fresh_value(key) })).collect()
    }

    fn next_op(&mut self, process: u64) -> Op {
        let key = self.rng.random_range(0..self.keys);
        if self.rng.random_range(0..100) < self.read_percent {
            return Self::read(key);
        }
        // As with registers: the newest value mostly succeeds, what the process saw last is mostly refused.
        let newest = self.rng.random_bool(0.7);
        let known = if newest { self.shown.newest(key) } else { self.shown.own(process, key) };
        let Some(seen) = known else { return Self::read(key) };
        let to = self.fresh_value(key);
        counter(key, Body::Cas { from: seen.value, to, basis: seen.version })
    }

    fn next_read(&mut self) -> Op {
        Self::read(self.rng.random_range(0..self.keys))
    }

    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match (&op.body, outcome.kind) {
            (_, EventKind::Ok) => self.remember(process, op, outcome),
            (Body::Cas { .. }, EventKind::Fail) => self.shown.refused(process, op.key),
            (_, EventKind::Info) => self.shown.retire(process),
            (_, EventKind::Fail | EventKind::Invoke) => {}
        }
    }

    fn final_reads(&self) -> Vec<Op> {
        (0..self.keys).map(Self::read).collect()
    }
}

fn counter(key: u64, body: Body) -> Op {
    Op::new(Object::REGISTER, key, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use checker::Budget;
    use checker::history::{BAD_VERSION, Event, History};
    use checker::verdict::Verdict;
    use rand::SeedableRng;

    use crate::judge::{Beside, judge};
    use crate::outcome::{Claims, Refusal};
    use crate::workload::Kind;

    /// Registers with their versions, which answer one operation after the other.
    #[derive(Default)]
    struct Registers(BTreeMap<u64, (i64, i64)>);

    impl Registers {
        fn answer(&mut self, op: &Op) -> Outcome {
            let register = self.0.entry(op.key).or_default();
            let value = match op.body {
                Body::Cas { basis, .. } if basis != Some(register.1) => {
                    let refused = Outcome::without_result(EventKind::Fail, op, BAD_VERSION.to_owned());
                    return Outcome { refusal: Some(Refusal::Other), ..refused };
                }
                Body::MakeRegister { value } => {
                    *register = (value, 0);
                    op.value()
                }
                Body::Cas { to, .. } => {
                    *register = (to, register.1 + 1);
                    op.value()
                }
                Body::Read => Value::One(register.0),
                _ => panic!("no operation of a counter: {op:?}"),
            };
            let claims = Claims { version: Some(register.1), ..Claims::default() };
            Outcome { claims, ..Outcome::told(value, None) }
        }
    }

    fn recorded(ops: u64) -> History {
        let mut workload = Counter::new(&Params::of_keys(2), ChaCha8Rng::seed_from_u64(4));
        let (mut registers, mut events): (Registers, Vec<Event>) = Default::default();
        let mut perform = |workload: &mut Counter, process: u64, op: &Op| {
            let now = u64::try_from(events.len()).unwrap();
            let outcome = registers.answer(op);
            workload.complete(process, op, &outcome);
            events.extend([op.event(process, now), outcome.event(op, process, now + 1)]);
        };
        for op in workload.setup() {
            perform(&mut workload, 0, &op);
        }
        for at in 0..ops {
            let op = workload.next_op(at % 7);
            perform(&mut workload, at % 7, &op);
        }
        for op in workload.final_reads() {
            perform(&mut workload, 8, &op);
        }
        History::from_events(events).unwrap()
    }

    #[test]
    fn every_attempt_makes_a_larger_value_that_is_its_own_and_some_are_refused() {
        let history = recorded(2000);
        let mut made = BTreeSet::new();
        for op in history.ops() {
            if let checker::history::OpKind::Cas { from, to } = op.kind() {
                assert!(from < Some(to) && made.insert((op.key, to)), "{op:?}");
            }
        }
        let refused = history.ops().iter().filter(|op| op.is_refused_cas()).count();
        assert!(made.len() > 1000 && refused > 200, "{} {refused}", made.len());
    }

    #[test]
    fn counters_that_keep_their_promises_are_valid() {
        let results = judge(Kind::COUNTER, &recorded(2000), &Beside::default(), &Budget::default());
        let names: Vec<&str> = results.iter().take(3).map(|result| result.name.as_str()).collect();
        assert_eq!(names, ["linearizable", "version-order", "session-order"]);
        for result in &results[..3] {
            assert_eq!(result.verdict, Verdict::Valid, "{}: {}", result.name, result.summary);
        }
    }

    #[test]
    fn a_history_of_counters_passes_for_one_of_registers_and_for_nothing_else() {
        let functions = recorded(200).ops().iter().map(|op| op.f).collect::<Vec<_>>();
        assert_eq!(Kind::of_functions(functions), Kind::REGISTER);
    }
}
