//! A queue: `enqueue` at the end, `dequeue` from the head, which is answered by a value or by nothing.
//!
//! A `dequeue` whose answer is not known takes the head, whatever that is, or finds none. One that failed
//! found nothing only if it was answered so (`ok` with nothing); a failure for any other reason did not
//! happen.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::names::{Names, few};
pub use super::queue_op::QueueOp;
use super::{Call, Model, Shortcut, queue_order};
use crate::history::{EventKind, Record};

/// A queue that is empty at first.
#[derive(Debug, Default)]
pub struct Queue {
    names: Names,
}

/// What a queue holds: values in blocks that states share.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    blocks: Arc<Vec<Arc<Block>>>,
    /// The place of the head in the first block.
    start: usize,
    len: usize,
    /// The sum over all values of number x FACTOR^place, where the head has place 0; and FACTOR^len.
    hash: u128,
    power: Power,
}

#[derive(Clone, Copy, Debug)]
struct Power(u128);

impl Default for Power {
    fn default() -> Self {
        Self(1)
    }
}

const VALUES: usize = 64;
type Block = [u32; VALUES];
const FACTOR: u128 = 0x2d35_8dcc_aa6c_78a5_8bb8_4b93_962e_acc9;
/// The inverse of [`FACTOR`], which is odd, modulo 2^128.
const INVERSE: u128 = inverse(FACTOR);

/// Newton's iteration doubles the number of right bits, from 3.
const fn inverse(odd: u128) -> u128 {
    let mut inverse = odd;
    let mut right_bits = 3;
    while right_bits < 128 {
        inverse = inverse.wrapping_mul(2_u128.wrapping_sub(odd.wrapping_mul(inverse)));
        right_bits *= 2;
    }
    inverse
}

fn number_of(value: u32) -> u128 {
    let number = (u128::from(value) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    number ^ (number >> 61)
}

impl Waiting {
    fn at(&self, place: usize) -> Option<u32> {
        let at = self.start + place;
        (place < self.len).then(|| self.blocks[at / VALUES][at % VALUES])
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = u32> {
        (0..self.len).map(|place| self.at(place).unwrap_or_default())
    }

    fn push(&self, value: u32) -> Self {
        let mut pushed = self.clone();
        let at = self.start + self.len;
        let blocks = Arc::make_mut(&mut pushed.blocks);
        if blocks.len() <= at / VALUES {
            blocks.push(Arc::new([0; VALUES]));
        }
        Arc::make_mut(&mut blocks[at / VALUES])[at % VALUES] = value;
        pushed.len += 1;
        pushed.hash = self.hash.wrapping_add(number_of(value).wrapping_mul(self.power.0));
        pushed.power = Power(self.power.0.wrapping_mul(FACTOR));
        pushed
    }

    fn pop(&self) -> Option<(u32, Self)> {
        let head = self.at(0)?;
        let mut popped = self.clone();
        popped.start += 1;
        popped.len -= 1;
        if popped.start == VALUES {
            Arc::make_mut(&mut popped.blocks).remove(0);
            popped.start = 0;
        }
        popped.hash = self.hash.wrapping_sub(number_of(head)).wrapping_mul(INVERSE);
        popped.power = Power(self.power.0.wrapping_mul(INVERSE));
        Some((head, popped))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.len, self.hash) == (other.len, other.hash)
            && (self.start == other.start && Arc::ptr_eq(&self.blocks, &other.blocks)
                || self.iter().eq(other.iter()))
    }
}

impl Eq for Waiting {}

impl Hash for Waiting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.hash);
    }
}

impl Model for Queue {
    type Op = QueueOp;
    type State = Waiting;

    fn name(&self) -> &'static str {
        "queue"
    }

    fn initial(&self) -> Waiting {
        Waiting::default()
    }

    fn apply(&self, state: &Waiting, op: &QueueOp) -> Option<Waiting> {
        match *op {
            QueueOp::Enqueue(value) => Some(state.push(value)),
            QueueOp::Dequeue(value) => state.pop().filter(|&(head, _)| head == value).map(|(_, rest)| rest),
            QueueOp::Empty => (state.len == 0).then(|| state.clone()),
            QueueOp::Take => Some(state.pop().map_or_else(|| state.clone(), |(_, rest)| rest)),
        }
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<QueueOp>, String> {
        let failed = completed.is_some_and(|completed| completed.kind == EventKind::Fail);
        Ok(match (&*invoked.f, completed) {
            _ if failed => None,
            ("enqueue", _) => Some(QueueOp::Enqueue(self.names.number(&invoked.value)?)),
            ("dequeue", None) => Some(QueueOp::Take),
            ("dequeue", Some(answered)) if answered.value.is_nil() => Some(QueueOp::Empty),
            ("dequeue", Some(answered)) => Some(QueueOp::Dequeue(self.names.number(&answered.value)?)),
            (other, _) => return Err(format!("a queue has no {other}")),
        })
    }

    fn changes(&self, op: &QueueOp) -> bool {
        !matches!(op, QueueOp::Empty)
    }

    fn same(&self, one: &QueueOp, other: &QueueOp) -> bool {
        one == other
    }

    fn tells(&self, op: &QueueOp) -> bool {
        matches!(op, QueueOp::Dequeue(_) | QueueOp::Empty)
    }

    fn elements(&self, op: &QueueOp) -> Vec<u64> {
        match *op {
            QueueOp::Enqueue(value) | QueueOp::Dequeue(value) => vec![value.into()],
            QueueOp::Empty | QueueOp::Take => Vec::new(),
        }
    }

    /// Take all of a value out of an order: the others still come in the order in which they went, an empty
    /// queue is still empty, and a dequeue of unknown fate that took the value may as well never have
    /// happened.
    fn without(&self, op: &QueueOp, gone: &dyn Fn(u64) -> bool) -> Option<QueueOp> {
        (!self.elements(op).into_iter().any(gone)).then_some(*op)
    }

    fn describe(&self, op: &QueueOp) -> String {
        match *op {
            QueueOp::Enqueue(value) => format!("enqueue {}", self.names.name(value)),
            QueueOp::Dequeue(value) => format!("dequeue → {}", self.names.name(value)),
            QueueOp::Empty => "dequeue → nothing".to_owned(),
            QueueOp::Take => "dequeue".to_owned(),
        }
    }

    fn show(&self, state: &Waiting) -> Option<String> {
        Some(few(state.iter().map(|value| self.names.name(value).to_string()), ["[", "]"]))
    }

    fn shortcut(&self, calls: &[&Call<QueueOp>]) -> Shortcut {
        queue_order::shortcut(calls, &|op| self.describe(op))
    }
}
