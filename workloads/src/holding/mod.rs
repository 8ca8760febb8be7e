//! What the workloads of applications have in common: one holds at a time, by a token that grows.
//!
//! An application acquires: it waits until a lock is its own, or the lead. The answer tells a token, and
//! since when and until when it is certain that nobody else holds. It writes a few times to a store that sees
//! the token, each time after a look at its own clock, and releases. Applications are processes that may be
//! stopped, cut off and killed in the middle of it, and go on later (Kleppmann: "How to do distributed
//! locking"). What must be true all the same, for each key:
//!
//! - **`tokens`**: a token is given once, and whoever holds later has a larger one.
//! - **`exclusion`**: two never hold at the same moment, as far as each is certain by its own clock, and
//!   nobody writes that is not certain any more.
//! - **`guarded-store`**: the store takes no write by a smaller token after one by a larger token.
//! - **`left-behind`**: nothing is left of whoever released or is gone.

mod check;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use checker::durability::FinalState;
use checker::history::{EventKind, Function, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::workload::{Definition, Generator, of_operations};

/// What clients do.
pub(crate) const FUNCTIONS: [Function; 3] = [Function::ACQUIRE, Function::STORE, Function::RELEASE];

/// What these workloads have in common.
pub(crate) const COMMON: Definition = Definition {
    name: "",
    summary: "",
    object: Object::LOCK,
    functions: &FUNCTIONS,
    dispensable: &[],
    marks: &[],
    words: &[],
    generator: |params, rng| Box::new(Holding::new(params.keys, 1..=1, rng)),
    records_sessions: false,
    sessions_expire: true,
    goes_along: false,
    applications: None,
    is_settled: all_gone,
    judged_by: of_operations,
    promises: &[check::tokens, check::exclusion, check::guarded_store, check::left_behind],
    durability: None,
};

/// Nobody stands in line at the end.
fn all_gone(states: &[FinalState]) -> bool {
    states.iter().all(|state| state.list.as_ref().is_some_and(Vec::is_empty))
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    key: u64,
    token: i64,
    /// Writes that are still to come.
    writes: u32,
}

/// The generator.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    rng: ChaCha8Rng,
    keys: u64,
    /// Whether a process always stands in the same line.
    stays: bool,
    /// Writes of one term.
    writes: RangeInclusive<u32>,
    next_value: i64,
    held: BTreeMap<u64, Held>,
}

impl Holding {
    pub(crate) fn new(keys: u64, writes: RangeInclusive<u32>, rng: ChaCha8Rng) -> Self {
        Self { rng, keys, stays: false, writes, next_value: 0, held: BTreeMap::new() }
    }

    /// The same, whose processes each stay with one key.
    pub(crate) fn that_stays(self) -> Self {
        Self { stays: true, ..self }
    }

    fn acquire(&mut self, process: u64) -> Op {
        let key = if self.stays { process % self.keys } else { self.rng.random_range(0..self.keys) };
        lock(key, Body::Acquire)
    }
}

impl Generator for Holding {
    fn setup(&mut self) -> Vec<Op> {
        (0..self.keys).map(|key| lock(key, Body::MakePlace)).collect()
    }

    fn next_op(&mut self, process: u64) -> Op {
        let Some(held) = self.held.get_mut(&process) else { return self.acquire(process) };
        let Held { key, token, .. } = *held;
        if held.writes == 0 {
            return lock(key, Body::Release { token });
        }
        held.writes -= 1;
        self.next_value += 1;
        lock(key, Body::Store { token, value: self.next_value })
    }

    fn next_read(&mut self) -> Op {
        let key = self.rng.random_range(0..self.keys);
        lock(key, Body::Read)
    }

    /// Whoever was told that it does not hold, holds no more. What was never sent changes nothing.
    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match (&op.body, outcome.kind) {
            (Body::Acquire, EventKind::Ok) => {
                let Value::List(told) = &outcome.value else { return };
                let Some(&token) = told.first() else { return };
                let writes = self.rng.random_range(self.writes.clone());
                self.held.insert(process, Held { key: op.key, token, writes });
            }
            (Body::Release { .. }, EventKind::Ok) | (_, EventKind::Info) => {
                self.held.remove(&process);
            }
            (Body::Store { .. } | Body::Release { .. }, EventKind::Fail) if outcome.refusal.is_some() => {
                self.held.remove(&process);
            }
            _ => {}
        }
    }

    fn works_on(&mut self, process: u64) {
        if let Some(held) = self.held.get_mut(&process) {
            held.writes = held.writes.max(1);
        }
    }

    fn begins_anew(&mut self, process: u64) {
        self.held.remove(&process);
    }

    /// Who stands in each line.
    fn final_reads(&self) -> Vec<Op> {
        (0..self.keys).map(|key| lock(key, Body::Read)).collect()
    }
}

fn lock(key: u64, body: Body) -> Op {
    Op::new(Object::LOCK, key, body)
}

#[cfg(test)]
mod tests;
