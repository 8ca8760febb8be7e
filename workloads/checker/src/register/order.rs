//! Orders: confirming one, and placing refused compare-and-sets in one.
//!
//! [`verify`] is the only way to a valid verdict that does not come from a complete search.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::mutant::{self, Mutant};
use super::problem::{Action, NIL, Problem, Val, index};
use super::reduce::Spares;
use crate::budget::{Budget, Exhausted, Meter};
use crate::confirm::{Span, Unfit, confirm};
use crate::history::{NEVER, Rank};

/// Confirms that `order` (indices of entries) is a linearization.
///
/// # Errors
/// [`Unfit`] names the first entry that does not fit.
pub fn verify(problem: &Problem, order: &[usize]) -> Result<(), Unfit> {
    let mut state = NIL;
    let span = |at: usize| Span::linear(problem.entries[at].call, problem.entries[at].ret);
    confirm(problem.entries.len(), span, order.iter().copied(), |at| {
        problem.entries[at].action.apply(state).map(|then| state = then).is_some()
    })
}

/// Adds the refused compare-and-sets to an order of everything else, or says that this order has no room for
/// them (which proves nothing: another order may).
///
/// A place is a gap of the order. The gaps that real time leaves to one entry are a range, because the latest
/// call before a gap only grows along the order and so does the earliest return after it. Taking for each entry,
/// by call, the first gap that is not before its predecessors' and where the register holds something else gives
/// the least solution, so for a given order nothing is missed, except that an unobserved open write may be spent
/// as the reason for a refusal in one way only: at the end of the value's time, where it disturbs nobody.
#[must_use]
pub fn place_refused(problem: &Problem, order: &[usize]) -> Option<Vec<usize>> {
    let placed = place_what_fits(problem, order, &mut Meter::new(&Budget::default())).ok()?;
    (placed.misfits == 0).then_some(placed.order)
}

/// An order with all refusals in it, at places that real time allows.
pub(super) struct Placed {
    pub(super) order: Vec<usize>,
    /// How many of them stand where the register holds what they did not find.
    pub(super) misfits: usize,
}

/// The same as [`place_refused`], but a refusal that fits nowhere does not end it: it takes the first place that
/// real time allows.
pub(super) fn place_what_fits(
    problem: &Problem,
    order: &[usize],
    meter: &mut Meter,
) -> Result<Placed, Exhausted> {
    let gaps = Gaps::of(problem, order);
    let mut spares = Spares::outside(problem, order);
    // By gap and, within a gap, by call; an excuse stands before what it excuses.
    let mut insertions: Vec<(usize, usize)> = Vec::new();
    let mut spent: HashMap<usize, usize> = HashMap::new();
    let mut returned: BinaryHeap<Reverse<(Rank, usize)>> = BinaryHeap::new();
    let (mut floor, mut misfits) = (0, 0);
    for (at, entry) in problem.entries.iter().enumerate() {
        let Action::Refused(from) = entry.action else { continue };
        meter.step()?;
        while let Some(&Reverse((ret, gap))) = returned.peek() {
            if ret > entry.call {
                break;
            }
            floor = floor.max(gap);
            returned.pop();
        }
        let (first, last) = gaps.range(entry.call, entry.ret);
        let start = if mutant::is(Mutant::PlacedWithoutFloor) { first } else { first.max(floor) };
        let mut gap = start;
        // The end of one value's time is followed by another value's, so two looks are enough, unless a value
        // is written twice in a row.
        while gap <= last
            && gaps.state[gap] == from
            && !spent.contains_key(&gap)
            && !mutant::is(Mutant::PlacedWithoutLooking)
        {
            meter.step()?;
            let end = index(gaps.end[gap]);
            if end < last && !spent.contains_key(&end) {
                gap = end + 1;
                continue;
            }
            gap = end;
            if end > last || spent.contains_key(&end) {
                break;
            }
            let needs_it = |&next: &usize| matches!(problem.entries[next].action, Action::Cas { .. });
            let limit = gaps.earliest_return[end].min(entry.ret);
            match order.get(end).is_some_and(needs_it) {
                false => match spares.take(from, limit) {
                    Some(spare) => {
                        insertions.push((gap, spare));
                        spent.insert(gap, spare);
                    }
                    None => gap = last + 1,
                },
                true => gap = last + 1,
            }
            break;
        }
        if gap > last {
            misfits += 1;
            gap = start.min(last);
        }
        insertions.push((gap, at));
        returned.push(Reverse((entry.ret, gap)));
    }
    // Stable: what was put in one gap stays in the order of the calls.
    insertions.sort_by_key(|&(gap, _)| gap);
    let mut complete = Vec::with_capacity(order.len() + insertions.len());
    let mut inserted = insertions.into_iter().peekable();
    for gap in 0..=order.len() {
        while let Some((_, at)) = inserted.next_if(|&(at_gap, _)| at_gap == gap) {
            complete.push(at);
        }
        complete.extend(order.get(gap));
    }
    Ok(Placed { order: complete, misfits })
}

/// What the gaps of an order are like; gap i stands before the order's i-th entry, the last one after all.
struct Gaps {
    /// The register's value in the gap.
    state: Vec<Val>,
    /// The last gap that belongs to the same stretch of that value.
    end: Vec<u32>,
    /// The latest call among the entries before, 0 for none.
    latest_call: Vec<Rank>,
    /// The earliest return among the entries after.
    earliest_return: Vec<Rank>,
}

impl Gaps {
    fn of(problem: &Problem, order: &[usize]) -> Self {
        let gaps = order.len() + 1;
        let (mut state, mut latest_call) = (vec![NIL; gaps], vec![0; gaps]);
        for (gap, &at) in order.iter().enumerate() {
            let entry = &problem.entries[at];
            state[gap + 1] = entry.action.written().unwrap_or(state[gap]);
            latest_call[gap + 1] = entry.call.max(latest_call[gap]);
        }
        let (mut end, mut earliest_return) = (vec![gap_number(order.len()); gaps], vec![NEVER; gaps]);
        for (gap, &at) in order.iter().enumerate().rev() {
            let entry = &problem.entries[at];
            end[gap] = if entry.action.written().is_some() { gap_number(gap) } else { end[gap + 1] };
            earliest_return[gap] = entry.ret.min(earliest_return[gap + 1]);
        }
        Self { state, end, latest_call, earliest_return }
    }

    /// The first and last gap that real time leaves to an entry.
    fn range(&self, call: Rank, ret: Rank) -> (usize, usize) {
        let first = self.earliest_return.partition_point(|&earliest| earliest < call);
        let last = self.latest_call.partition_point(|&latest| latest < ret);
        (first, last.saturating_sub(1))
    }
}

/// Gaps are fewer than ranks.
fn gap_number(gap: usize) -> u32 {
    u32::try_from(gap).unwrap_or(u32::MAX)
}
