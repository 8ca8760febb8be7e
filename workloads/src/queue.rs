//! The workload `queue`: unique elements put into queues, handed out, and done.
//!
//! A client puts an element at the end of a queue, or is handed the first one; then it puts one or two more
//! before it is done with it, so that elements are held for a while. There are two kinds of queues,
//! and the answer to a dequeue tells which:
//!
//! - It takes the element for good: the answer is the element.
//! - It hands the element out, until the client acknowledges that it is done: the answer is a list that
//!   begins with the element. What was handed out and not acknowledged may be handed out again. Where a claim
//!   tells more, the list goes on with its token, and with the moments since when and until when its holder
//!   is certain that nobody else has the element.
//!
//! A last read shows what is not done, whether it was handed out or not. What must be true, for each queue:
//!
//! - **`queue`**: what is handed out was put there, once it was done or taken it is not handed out again, and
//!   elements come out in the order in which they were put. Of two that are put one after the other the later
//!   one may be handed out first only if somebody may have had the earlier one then, whose dequeue has no
//!   answer that tells. Where a system promises no more than *at least once*, what is handed out was put, and
//!   nothing is said of its order, or of what comes back.
//! - **`exclusion`**: of two claims of an element the later one has the larger token, and no two overlap, as
//!   far as each holder was certain.
//! - **`durability`**: what was acknowledged to be put is there at the end, or was done, or may have been.
//!
//! That a dequeue is answered by nothing accuses nobody: somebody else may have been about to take what was
//! there. (Jepsen's `total-queue` counts what is lost, invented and doubled, too, and knows no order and no
//! claims.)

mod check;
mod claims;
mod order;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use checker::durability::FinalState;
use checker::history::{EventKind, Function, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::promise::Promise;
use crate::workload::{Applications, Definition, Generator, as_agreed, of_operations};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "queue",
    summary: "elements put into queues, handed out, done: none is lost, doubled or out of its order",
    object: Object::QUEUE,
    functions: &[Function::ENQUEUE, Function::DEQUEUE, Function::ACKNOWLEDGE],
    dispensable: &[Function::ACKNOWLEDGE],
    marks: &[Function::ENQUEUE],
    words: &[],
    generator: |params, rng| Box::new(Queues::new(params.keys, rng)),
    records_sessions: false,
    sessions_expire: true,
    goes_along: false,
    applications: Some(Applications::Queue),
    is_settled: as_agreed,
    judged_by: of_queues,
    promises: &[check::queue, check::exclusion],
    durability: Some(check::durable),
};

/// A promise as one of queues.
fn of_queues(promise: Promise) -> Option<Promise> {
    if promise == Promise::AtLeastOnce { Some(promise) } else { of_operations(promise) }
}

/// Elements of one process; those of the next one begin behind them.
const ELEMENTS_OF_A_PROCESS: i64 = 1 << 24;

/// With fewer elements in a queue one is put; with more one is asked for.
const FEWEST: i64 = 4;
const MOST: i64 = 40;

/// How many elements whoever was handed one puts before it is done; fewer where there are enough.
const WORK: RangeInclusive<u32> = 1..=2;
const LESS_WORK: RangeInclusive<u32> = 0..=1;

/// What a process was handed and is to acknowledge.
#[derive(Clone, Copy, Debug)]
struct Handed {
    key: u64,
    element: i64,
    /// What it puts before.
    work: u32,
}

/// The generator.
#[derive(Clone, Debug)]
struct Queues {
    rng: ChaCha8Rng,
    keys: u64,
    /// How many elements each process has made for each queue.
    made: BTreeMap<(u64, u64), i64>,
    handed: BTreeMap<u64, Handed>,
    /// How many elements there are at least to be done, as far as answers tell.
    waiting: BTreeMap<u64, i64>,
    /// What was put for certain and is not done, as far as answers tell.
    lasting: BTreeMap<u64, BTreeSet<i64>>,
    /// Dequeues that may have taken one, without an answer.
    may_have_taken: BTreeMap<u64, usize>,
}

impl Queues {
    fn new(keys: u64, rng: ChaCha8Rng) -> Self {
        Self {
            rng,
            keys,
            made: BTreeMap::new(),
            handed: BTreeMap::new(),
            waiting: BTreeMap::new(),
            lasting: BTreeMap::new(),
            may_have_taken: BTreeMap::new(),
        }
    }

    fn any(&mut self) -> u64 {
        self.rng.random_range(0..self.keys)
    }

    /// An element that nobody else puts into this queue.
    fn element(&mut self, process: u64, key: u64) -> i64 {
        let made = self.made.entry((process, key)).or_default();
        *made += 1;
        let first = i64::try_from(process).unwrap_or(i64::MAX).saturating_mul(ELEMENTS_OF_A_PROCESS);
        first.saturating_add(*made)
    }

    fn put(&mut self, process: u64, key: u64) -> Op {
        let element = self.element(process, key);
        queue(key, Body::Enqueue { element })
    }

    fn waiting(&self, key: u64) -> i64 {
        self.waiting.get(&key).copied().unwrap_or_default()
    }

    /// What an answer says of what will be there at the end.
    fn note(&mut self, op: &Op, outcome: &Outcome) {
        let lasting = self.lasting.entry(op.key).or_default();
        match (&op.body, outcome.kind, &outcome.value) {
            (Body::Enqueue { element }, EventKind::Ok, _) => {
                lasting.insert(*element);
            }
            (Body::Dequeue, EventKind::Ok, Value::One(element)) => {
                lasting.remove(element);
            }
            (Body::Dequeue, EventKind::Info, _) => *self.may_have_taken.entry(op.key).or_default() += 1,
            (Body::Acknowledge { element }, EventKind::Ok | EventKind::Info, _) => {
                lasting.remove(element);
            }
            _ => {}
        }
    }

    fn wait(&mut self, key: u64, more: i64) {
        *self.waiting.entry(key).or_default() += more;
    }
}

impl Generator for Queues {
    fn setup(&mut self) -> Vec<Op> {
        (0..self.keys).map(|key| queue(key, Body::MakePlace)).collect()
    }

    fn next_op(&mut self, process: u64) -> Op {
        let key = self.any();
        if let Some(handed) = self.handed.get_mut(&process) {
            if handed.work == 0 {
                return queue(handed.key, Body::Acknowledge { element: handed.element });
            }
            handed.work -= 1;
            return self.put(process, key);
        }
        let waiting = self.waiting(key);
        if waiting < FEWEST || waiting < MOST && self.rng.random_bool(0.5) {
            return self.put(process, key);
        }
        queue(key, Body::Dequeue)
    }

    fn next_read(&mut self) -> Op {
        let key = self.any();
        queue(key, Body::Read)
    }

    /// What was handed out is to be acknowledged, until that has an end or the process has none.
    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        let key = op.key;
        self.note(op, outcome);
        match (&op.body, outcome.kind, &outcome.value) {
            (Body::Enqueue { .. }, EventKind::Ok, _) => self.wait(key, 1),
            (Body::Dequeue, EventKind::Ok, Value::One(_)) => self.wait(key, -1),
            (Body::Dequeue, EventKind::Ok, Value::List(told)) => {
                let Some(&element) = told.first() else { return };
                let work = if self.waiting(key) < MOST { WORK } else { LESS_WORK };
                let work = self.rng.random_range(work);
                self.handed.insert(process, Handed { key, element, work });
            }
            // There is nothing, or less than was thought.
            (Body::Dequeue, EventKind::Ok, _) => {
                self.waiting.insert(key, 0);
            }
            (Body::Dequeue, EventKind::Fail, _) if outcome.refusal.is_some() => self.wait(key, -1),
            (Body::Acknowledge { .. }, EventKind::Ok, _) => {
                self.handed.remove(&process);
                self.wait(key, -1);
            }
            (Body::Acknowledge { .. }, EventKind::Fail, _) if outcome.refusal.is_some() => {
                self.handed.remove(&process);
            }
            _ => {}
        }
        if outcome.retires() {
            self.begins_anew(process);
        }
    }

    fn begins_anew(&mut self, process: u64) {
        self.handed.remove(&process);
        self.made.retain(|(whose, _), _| *whose != process);
    }

    /// What is not done in each queue.
    fn final_reads(&self) -> Vec<Op> {
        (0..self.keys).map(|key| queue(key, Body::Read)).collect()
    }

    /// Somebody who was handed an element may be gone before the system knows it: until then it may show that
    /// element to nobody.
    fn is_told(&self, states: &[FinalState]) -> bool {
        states.iter().all(|state| {
            let shown: BTreeSet<i64> = state.list.iter().flatten().copied().collect();
            let hidden = self.lasting.get(&state.key).map_or(0, |lasting| lasting.difference(&shown).count());
            hidden <= self.may_have_taken.get(&state.key).copied().unwrap_or_default()
        })
    }
}

fn queue(key: u64, body: Body) -> Op {
    Op::new(Object::QUEUE, key, body)
}

#[cfg(test)]
mod tests;
