//! The definition of serializability, tried out: any transaction that nothing else has to precede may come
//! next.
//!
//! For a handful of transactions only. It judges the part of a history that is shown as a violation, and is
//! the oracle of the fuzzer; it knows nothing of the inference.

use super::condition::Order;
use crate::budget::{Exhausted, Meter};
use crate::hash::FastMap;
use crate::history::{NEVER, Rank};

/// An operation with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Append(u32, u32),
    Read(u32, Vec<u32>),
}

/// A transaction that happened, or (its return is [`NEVER`]) may have.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub(super) process: u64,
    pub(super) call: Rank,
    pub(super) ret: Rank,
    pub(super) ops: Vec<Op>,
}

/// Whether some order of whole transactions explains every answer and keeps `order`.
///
/// # Errors
/// Why it gave up.
pub(super) fn serializable(txns: &[Tried], order: Order, meter: &mut Meter) -> Result<bool, Exhausted> {
    let mut search = Search { txns, order, placed: vec![false; txns.len()], lists: FastMap::default() };
    search.place_rest(meter)
}

struct Search<'a> {
    txns: &'a [Tried],
    order: Order,
    placed: Vec<bool>,
    lists: FastMap<u32, Vec<u32>>,
}

impl Search<'_> {
    /// Places every transaction that has no place yet, with a step back wherever none fits.
    fn place_rest(&mut self, meter: &mut Meter) -> Result<bool, Exhausted> {
        meter.step()?;
        if self.txns.iter().zip(&self.placed).all(|(txn, &placed)| placed || txn.ret == NEVER) {
            return Ok(true);
        }
        for at in 0..self.txns.len() {
            if self.placed[at] || !self.may_come_next(at) {
                continue;
            }
            let appended = self.apply(at);
            if let Ok(appended) = appended {
                self.placed[at] = true;
                if self.place_rest(meter)? {
                    return Ok(true);
                }
                self.placed[at] = false;
                self.undo(at, appended);
            }
        }
        Ok(false)
    }

    fn may_come_next(&self, at: usize) -> bool {
        let next = &self.txns[at];
        let before = |other: &Tried| match self.order {
            Order::Free => false,
            Order::Process => other.process == next.process && other.ret < next.call,
            Order::Realtime => other.ret < next.call,
        };
        !self.txns.iter().zip(&self.placed).any(|(other, &placed)| !placed && before(other))
    }

    /// Gives the number of operations that were applied, as an error if the next one does not fit.
    fn apply(&mut self, at: usize) -> Result<usize, ()> {
        for (done, op) in self.txns[at].ops.iter().enumerate() {
            match op {
                Op::Append(key, element) => self.lists.entry(*key).or_default().push(*element),
                Op::Read(key, list) => {
                    if self.lists.entry(*key).or_default() != list {
                        self.undo(at, done);
                        return Err(());
                    }
                }
            }
        }
        Ok(self.txns[at].ops.len())
    }

    fn undo(&mut self, at: usize, done: usize) {
        for op in self.txns[at].ops[..done].iter().rev() {
            if let Op::Append(key, _) = op {
                self.lists.entry(*key).or_default().pop();
            }
        }
    }
}
