//! Confirms a witness: goes through the transactions in a claimed order and compares every answer with what
//! the lists then hold.
//!
//! It knows nothing of dependencies. All it shares with the inference is the form of the history: of a read,
//! that it was so long a beginning of the longest list.

use super::condition::{Condition, Order};
use super::intern::NONE;
use super::load::{History, What};
use crate::hash::FastMap;
use crate::history::Outcome;

/// A list while the order is gone through.
#[derive(Clone, Copy)]
struct Held {
    length: u32,
    /// Where it first differs from the longest list.
    differs: u32,
}

impl Held {
    /// Whether it is the beginning of that length.
    fn is(self, length: u32) -> bool {
        self.length == length && self.length <= self.differs
    }
}

struct Lists<'a> {
    history: &'a History,
    held: Vec<Held>,
}

impl<'a> Lists<'a> {
    fn new(history: &'a History) -> Self {
        Self { history, held: vec![Held { length: 0, differs: NONE }; history.lists.len()] }
    }

    fn append(&mut self, key: u32, element: u32) {
        let held = &mut self.held[key as usize];
        let expected = self.history.lists[key as usize].order.get(held.length as usize);
        if expected != Some(&element) {
            held.differs = held.differs.min(held.length);
        }
        held.length += 1;
    }
}

/// A moment of a transaction: its start (where conditions tell these apart) or its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) txn: u32,
    pub(super) commits: bool,
}

/// Replays moments under a condition.
///
/// # Errors
/// What does not fit.
pub(super) fn replay(history: &History, moments: &[Moment], condition: Condition) -> Result<(), String> {
    everyone(history, moments)?;
    let mut lists = Lists::new(history);
    match condition {
        Condition::SnapshotIsolation => return snapshots(&mut lists, moments),
        Condition::ReadUncommitted | Condition::ReadCommitted => {
            return versions(history, moments, condition == Condition::ReadCommitted);
        }
        _ => {}
    }
    kept(history, moments, condition.order())?;
    for &Moment { txn, .. } in moments {
        for (at, micro) in history.micros(txn).iter().enumerate() {
            match micro.what {
                What::Append(element) => lists.append(micro.key, element),
                What::Read(length) if lists.held[micro.key as usize].is(length) => {}
                What::Unread if history.txns[txn as usize].outcome != Outcome::Ok => {}
                What::Read(_) | What::Odd(_) | What::Unread => return Err(misfit(history, txn, at)),
            }
        }
    }
    Ok(())
}

fn misfit(history: &History, txn: u32, at: usize) -> String {
    format!("operation {at} of the transaction of record {} does not fit", history.txns[txn as usize].index)
}

/// All that was acknowledged is there once, and nothing that failed.
fn everyone(history: &History, moments: &[Moment]) -> Result<(), String> {
    let mut there = vec![false; history.txns.len()];
    for moment in moments.iter().filter(|moment| moment.commits) {
        if std::mem::replace(&mut there[moment.txn as usize], true) {
            return Err(format!("transaction {} commits twice", moment.txn));
        }
    }
    for (txn, &there) in history.txns.iter().zip(&there) {
        match txn.outcome {
            Outcome::Ok if !there => return Err(format!("record {} is missing", txn.index)),
            Outcome::Fail if there => return Err(format!("record {} failed", txn.index)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether an order outside the data is kept.
fn kept(history: &History, moments: &[Moment], order: Order) -> Result<(), String> {
    let mut latest_call = 0;
    let mut processes: FastMap<u64, u32> = FastMap::default();
    for &Moment { txn, .. } in moments {
        let known = &history.txns[txn as usize];
        let broken = match order {
            Order::Free => false,
            Order::Process => {
                processes.insert(known.process, known.call).is_some_and(|call| call > known.call)
            }
            Order::Realtime => known.ret < latest_call,
        };
        if broken {
            return Err(format!("record {} comes too late", known.index));
        }
        latest_call = latest_call.max(known.call);
    }
    Ok(())
}

/// Snapshot isolation: what is read is what was there at the start, and own appends; nobody else has appended
/// to the same list when a transaction commits.
fn snapshots(lists: &mut Lists<'_>, moments: &[Moment]) -> Result<(), String> {
    let history = lists.history;
    let mut started: FastMap<u32, Vec<Held>> = FastMap::default();
    for &Moment { txn, commits } in moments {
        let micros = history.micros(txn);
        if !commits {
            let held = micros.iter().map(|micro| lists.held[micro.key as usize]).collect();
            started.insert(txn, held);
            continue;
        }
        let snapshot = started.remove(&txn).ok_or("a transaction commits before it starts")?;
        let mut own: FastMap<u32, Held> = FastMap::default();
        for (at, (micro, &start)) in micros.iter().zip(&snapshot).enumerate() {
            let held = own.entry(micro.key).or_insert(start);
            match micro.what {
                What::Append(element) => {
                    if lists.held[micro.key as usize].length != start.length {
                        return Err(format!(
                            "{}: another transaction appended to its list meanwhile",
                            misfit(history, txn, at)
                        ));
                    }
                    let expected = history.lists[micro.key as usize].order.get(held.length as usize);
                    if expected != Some(&element) {
                        held.differs = held.differs.min(held.length);
                    }
                    held.length += 1;
                }
                What::Read(length) if held.is(length) => {}
                What::Unread if history.txns[txn as usize].outcome != Outcome::Ok => {}
                What::Read(_) | What::Odd(_) | What::Unread => return Err(misfit(history, txn, at)),
            }
        }
        for (key, held) in own {
            let list = &mut lists.held[key as usize];
            if held.length > list.length {
                *list = held;
            }
        }
    }
    Ok(())
}

/// The two weakest conditions are about versions: transactions append in the order of the lists and, where it
/// is asked, read only what was committed and final.
fn versions(history: &History, moments: &[Moment], committed: bool) -> Result<(), String> {
    // For each key how much of the longest list was appended; what did not take effect is stepped over.
    let mut placed = vec![0_usize; history.lists.len()];
    for &Moment { txn, .. } in moments {
        for (at, micro) in history.micros(txn).iter().enumerate() {
            let order = &history.lists[micro.key as usize].order;
            let placed = &mut placed[micro.key as usize];
            let is_void = |&element: &u32| history.writer(element).is_none();
            while order.get(*placed).is_some_and(is_void) {
                *placed += 1;
            }
            match micro.what {
                What::Append(element) if history.elements[element as usize].place == NONE => {
                    if *placed < order.len() {
                        return Err(misfit(history, txn, at));
                    }
                }
                What::Append(element) if order.get(*placed) == Some(&element) => *placed += 1,
                What::Append(_) | What::Odd(_) => return Err(misfit(history, txn, at)),
                What::Read(length) => {
                    let last =
                        length.checked_sub(1).map(|last| &history.elements[order[last as usize] as usize]);
                    let is_final = last.is_none_or(|last| last.writer == txn || !last.intermediate);
                    if committed && (length as usize > *placed || !is_final) {
                        return Err(misfit(history, txn, at));
                    }
                }
                What::Unread if history.txns[txn as usize].outcome == Outcome::Ok => {
                    return Err(misfit(history, txn, at));
                }
                What::Unread => {}
            }
        }
    }
    Ok(())
}
