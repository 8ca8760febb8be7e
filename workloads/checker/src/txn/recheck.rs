//! Judges the few transactions of a counterexample again.
//!
//! What other transactions appended is left out of the lists. That keeps an innocent history innocent (leave
//! the others out of a serial order, and the rest explains what is left of the answers), so what is a
//! violation afterwards was one before.

use super::brute::{self, Op, Tried};
use super::condition::Condition;
use super::intern::NONE;
use super::load::{History, What};
use crate::budget::{Budget, Meter};
use crate::history::{Datum, EventKind, NEVER, Outcome, Record};

/// Transactions that the plain search is tried on.
const MAX_TRIED: usize = 12;
/// Steps of the plain search.
const STEPS: u64 = 2_000_000;

/// Whether `members` (sorted) by themselves break a condition. Of the elements that nobody appended only
/// `garbage` is left in.
pub(super) fn is_violation(
    history: &History,
    members: &[u32],
    garbage: &[u32],
    condition: Condition,
    budget: &Budget,
) -> bool {
    if condition >= Condition::Serializable && members.len() <= MAX_TRIED {
        let tried = tried(history, members, garbage);
        let mut meter = Meter::new(&budget.with_steps(STEPS));
        if let Ok(serializable) = brute::serializable(&tried, condition.order(), &mut meter) {
            return !serializable;
        }
    }
    let records = records(history, members, garbage);
    let Ok(part) = super::load::load(records.into_iter().map(Ok), &budget.interrupt) else { return false };
    let mut meter = Meter::new(budget);
    super::Analysis::of(&part, &mut meter).is_ok_and(|analysis| analysis.breaks(condition))
}

/// The elements of a list that remain.
fn kept(history: &History, members: &[u32], garbage: &[u32], list: &[u32]) -> Vec<u32> {
    let stays = |element: &u32| match history.elements[*element as usize].writer {
        NONE => garbage.contains(element),
        writer => members.binary_search(&writer).is_ok(),
    };
    list.iter().copied().filter(stays).collect()
}

fn tried(history: &History, members: &[u32], garbage: &[u32]) -> Vec<Tried> {
    let happened = members.iter().filter(|&&txn| history.txns[txn as usize].outcome != Outcome::Fail);
    happened
        .map(|&txn| {
            let known = &history.txns[txn as usize];
            let ops = history.micros(txn).iter().filter_map(|micro| match micro.what {
                What::Append(element) => Some(Op::Append(micro.key, element)),
                _ => {
                    let list = history.read(micro)?;
                    Some(Op::Read(micro.key, kept(history, members, garbage, list)))
                }
            });
            let ret = if known.outcome == Outcome::Ok { known.ret } else { NEVER };
            Tried { process: known.process, call: known.call, ret, ops: ops.collect() }
        })
        .collect()
}

pub(super) fn records(history: &History, members: &[u32], garbage: &[u32]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for &txn in members {
        let known = &history.txns[txn as usize];
        let int = |number: u32| Datum::Int(number.into());
        let value = |answered: bool| {
            let micros = history.micros(txn).iter().map(|micro| {
                let (f, value) = match micro.what {
                    What::Append(element) => ("append", int(element)),
                    _ => match history.read(micro).filter(|_| answered) {
                        Some(list) => {
                            let list = kept(history, members, garbage, list);
                            ("r", Datum::List(list.into_iter().map(int).collect()))
                        }
                        None => ("r", Datum::Nil),
                    },
                };
                Datum::List(vec![Datum::text(f), int(micro.key), value])
            });
            Datum::List(micros.collect())
        };
        let record = |kind, rank, value| {
            let mut record = Record::new(known.process, kind, "txn", Datum::Nil, value);
            record.index = rank;
            record
        };
        records.push(record(EventKind::Invoke, known.call.into(), value(false)));
        let end = match known.outcome {
            Outcome::Ok => EventKind::Ok,
            Outcome::Fail => EventKind::Fail,
            Outcome::Info => continue,
        };
        records.push(record(end, known.ret.into(), value(true)));
    }
    records.sort_by_key(|record| record.index);
    records
}
