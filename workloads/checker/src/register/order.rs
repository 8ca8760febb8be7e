//! Orders: confirming one, and placing refused compare-and-sets in one.
//!
//! [`verify`] is the only way to a valid verdict that does not come from a complete search.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use super::problem::{Action, Entry, NIL, Problem, Val, index};
use super::spares::Spares;
use crate::budget::{Budget, Exhausted, Meter};
use crate::confirm::{Span, Unfit, confirm};
use crate::history::{NEVER, Rank};
use crate::search::sabotage::{Rule, is_broken};

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
/// call before a gap only grows along the order and so does the earliest return after it. Taking for each
/// entry, by call, the first gap that is not before its predecessors' and where the register holds something
/// else gives the least solution, so for a given order nothing is missed, except that an unobserved open
/// write may be spent as the reason for a refusal in one way only: at the end of the value's time, where it
/// disturbs nobody.
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

/// The same as [`place_refused`], but a refusal that fits nowhere does not end it: it takes the first place
/// that real time allows.
pub(super) fn place_what_fits(
    problem: &Problem,
    order: &[usize],
    meter: &mut Meter,
) -> Result<Placed, Exhausted> {
    let mut placing = Placing {
        problem,
        order,
        gaps: Gaps::of(problem, order),
        spares: Spares::outside(problem, order),
        insertions: Vec::new(),
        spent: HashSet::new(),
    };
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
        let (first, last) = placing.gaps.range(entry.call, entry.ret);
        let start = if is_broken(Rule::PlacedWithoutFloor) { first } else { first.max(floor) };
        let gap = placing.fitting_gap(entry, from, start, last, meter)?.unwrap_or_else(|| {
            misfits += 1;
            start.min(last)
        });
        placing.insertions.push((gap, at));
        returned.push(Reverse((entry.ret, gap)));
    }
    Ok(Placed { order: placing.complete(), misfits })
}

/// Refusals on their way into an order.
struct Placing<'a> {
    problem: &'a Problem,
    order: &'a [usize],
    gaps: Gaps,
    /// Open writes that nobody observed.
    spares: Spares,
    /// By gap and, within a gap, by call; an excuse stands before what it excuses.
    insertions: Vec<(usize, usize)>,
    /// The gaps in which such a write stands.
    spent: HashSet<usize>,
}

impl Placing<'_> {
    /// The first gap from `start` to `last` in which the register does not hold `from`, or can be made not
    /// to.
    fn fitting_gap(
        &mut self,
        entry: &Entry,
        from: Val,
        start: usize,
        last: usize,
        meter: &mut Meter,
    ) -> Result<Option<usize>, Exhausted> {
        let mut gap = start;
        // The end of one value's time is followed by another value's, so two looks are enough, unless a value
        // is written twice in a row.
        while gap <= last
            && self.gaps.state[gap] == from
            && !self.spent.contains(&gap)
            && !is_broken(Rule::PlacedWithoutLooking)
        {
            meter.step()?;
            let end = index(self.gaps.end[gap]);
            if end < last && !self.spent.contains(&end) {
                gap = end + 1;
                continue;
            }
            let excused = end > last || self.spent.contains(&end) || self.excuse(entry, from, end);
            return Ok(Some(end).filter(|&end| excused && end <= last));
        }
        Ok(Some(gap).filter(|&gap| gap <= last))
    }

    /// Spends an open write at the end of a value's time, unless the change that ends it needs the value.
    fn excuse(&mut self, entry: &Entry, from: Val, end: usize) -> bool {
        let needs_it = |&next: &usize| matches!(self.problem.entries[next].action, Action::Cas { .. });
        if self.order.get(end).is_some_and(needs_it) {
            return false;
        }
        let limit = self.gaps.earliest_return[end].min(entry.ret);
        let Some(spare) = self.spares.take(from, limit) else { return false };
        self.insertions.push((end, spare));
        self.spent.insert(end)
    }

    /// The order with everything in it.
    fn complete(mut self) -> Vec<usize> {
        // Stable: what was put in one gap stays in the order of the calls.
        self.insertions.sort_by_key(|&(gap, _)| gap);
        let mut complete = Vec::with_capacity(self.order.len() + self.insertions.len());
        let mut inserted = self.insertions.into_iter().peekable();
        for gap in 0..=self.order.len() {
            while let Some((_, at)) = inserted.next_if(|&(at_gap, _)| at_gap == gap) {
                complete.push(at);
            }
            complete.extend(self.order.get(gap));
        }
        complete
    }
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
