//! What happened during many intervals of a history, from one pass over it.
//!
//! A run has faults in proportion to its length, and around each of them operations are counted. To look
//! through the history once for each would make that quadratic, so all intervals are asked about together:
//! operations go by once, in the order of their calls, and every other step is a binary search.

use std::collections::BTreeMap;

use super::{History, Op};

/// Moments from one to another, both included, in ns.
pub type Interval = (u64, u64);

/// For each interval, how many operations were invoked and completed within it, by class. What `class` gives
/// none for is not counted; it is asked once for each operation, however many the intervals are.
#[must_use]
pub fn counts_during<K: Copy + Ord>(
    history: &History,
    intervals: &[Interval],
    mut class: impl FnMut(&Op) -> Option<K>,
) -> Vec<BTreeMap<K, u64>> {
    let mut counts = vec![BTreeMap::new(); intervals.len()];
    let mut ends: Vec<u64> = intervals.iter().map(|(_, to)| *to).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut by_begin: Vec<usize> = (0..intervals.len()).collect();
    by_begin.sort_by_key(|at| intervals[*at].0);
    let mut waiting = by_begin.into_iter().peekable();
    // Of the operations gone by, how many had completed by each end.
    let mut completed: BTreeMap<K, Sums> = BTreeMap::new();
    let by = |sums: &Sums, to: u64| sums.up_to(ends.partition_point(|end| *end < to));
    for op in in_order(history) {
        // What was invoked before an interval does not count in it, whenever it completed.
        while let Some(at) = waiting.next_if(|at| intervals[*at].0 <= op.invoke_ns) {
            let to = intervals[at].1;
            counts[at] = completed.iter().map(|(class, sums)| (*class, by(sums, to))).collect();
        }
        if let (Some(complete), Some(class)) = (op.complete_ns, class(op)) {
            let sums = completed.entry(class).or_insert_with(|| Sums::new(ends.len()));
            sums.add(ends.partition_point(|end| *end < complete));
        }
    }
    // The intervals that begin behind the last call hold nothing.
    let beyond: Vec<usize> = waiting.collect();
    for (count, (_, to)) in counts.iter_mut().zip(intervals) {
        let before = std::mem::take(count);
        let within = |(class, sums): (&K, &Sums)| {
            let within = by(sums, *to).saturating_sub(before.get(class).copied().unwrap_or(0));
            (within > 0).then_some((*class, within))
        };
        *count = completed.iter().filter_map(within).collect();
    }
    for at in beyond {
        counts[at].clear();
    }
    counts
}

/// The operations in the order of the moments of their calls, which is their own unless a history from
/// elsewhere says otherwise.
fn in_order(history: &History) -> Vec<&Op> {
    let mut ops: Vec<&Op> = history.ops().iter().collect();
    ops.sort_by_key(|op| op.invoke_ns);
    ops
}

/// Counters of which any beginning can be added up in logarithmic time (a Fenwick tree).
struct Sums {
    sums: Vec<u64>,
}

impl Sums {
    fn new(length: usize) -> Self {
        Self { sums: vec![0; length + 1] }
    }

    /// Counts one more at this place; a place beyond the last is none.
    fn add(&mut self, place: usize) {
        let mut at = place + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// How many were counted from the first place to this one.
    fn up_to(&self, place: usize) -> u64 {
        let mut at = place + 1;
        let mut total = 0;
        while at > 0 {
            total += self.sums.get(at).copied().unwrap_or(0);
            at &= at - 1;
        }
        total
    }
}

/// When clients of each member asked and were answered, to be asked about any interval by binary search.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    members: BTreeMap<u64, Moments>,
}

#[derive(Clone, Debug, Default)]
struct Moments {
    invoked: Vec<u64>,
    completed: Vec<u64>,
}

impl Presence {
    /// Notes the moments of all operations that name their member.
    #[must_use]
    pub fn of(history: &History) -> Self {
        let mut members: BTreeMap<u64, Moments> = BTreeMap::new();
        for op in history.ops() {
            if let Some(node) = op.node {
                let moments = members.entry(node).or_default();
                moments.invoked.push(op.invoke_ns);
                moments.completed.extend(op.complete_ns);
            }
        }
        for moments in members.values_mut() {
            moments.invoked.sort_unstable();
            moments.completed.sort_unstable();
        }
        Self { members }
    }

    /// Operations at a member that were under way at some moment of the interval. One that never completed
    /// is, for ever.
    #[must_use]
    pub fn under_way(&self, member: u64, (from, to): Interval) -> u64 {
        let Some(Moments { invoked, completed }) = self.members.get(&member) else { return 0 };
        let begun = invoked.partition_point(|at| *at <= to);
        let over = completed.partition_point(|at| *at < from);
        u64::try_from(begun.saturating_sub(over)).unwrap_or(u64::MAX)
    }

    /// Whether an operation at a member was invoked or completed within the interval.
    #[must_use]
    pub fn is_within(&self, member: u64, (from, to): Interval) -> bool {
        let Some(Moments { invoked, completed }) = self.members.get(&member) else { return false };
        let within = |moments: &[u64]| {
            moments.get(moments.partition_point(|at| *at < from)).is_some_and(|at| *at <= to)
        };
        within(invoked) || within(completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use crate::history::{Event, EventKind, Function, Value};

    /// Operations by member: when they were invoked and, if ever, completed.
    fn history(ops: &[(u64, u64, Option<u64>)]) -> History {
        let mut events = Vec::new();
        for (process, &(member, from, to)) in (0_u64..).zip(ops) {
            let f = if process % 3 == 0 { Function::WRITE } else { Function::READ };
            let value = if f == Function::WRITE { Value::One(1) } else { Value::Null };
            let mut invoke = Event::new(process, EventKind::Invoke, f, 0, value, from);
            invoke.node = Some(member);
            events.push(invoke);
            events.extend(to.map(|to| Event::new(process, EventKind::Ok, f, 0, Value::One(1), to)));
        }
        events.sort_by_key(|event| (event.time, event.kind != EventKind::Invoke));
        History::from_events(events).expect("a history")
    }

    fn drawn(chance: &mut Chance) -> History {
        let mut ops = Vec::new();
        for _ in 0..chance.below(60) {
            let from = chance.below(100);
            let to = (chance.below(5) > 0).then(|| from + chance.below(30));
            ops.push((chance.below(3), from, to));
        }
        history(&ops)
    }

    #[test]
    fn all_intervals_together_are_counted_as_each_by_itself() {
        let mut chance = Chance(5);
        for _ in 0..500 {
            let history = drawn(&mut chance);
            let mut interval = || {
                let from = chance.below(120);
                (from, from + chance.below(60))
            };
            let intervals: Vec<Interval> = (0..8).map(|_| interval()).collect();
            let together = counts_during(&history, &intervals, |op| Some(op.f));
            let presence = Presence::of(&history);
            for (&(from, to), counted) in intervals.iter().zip(&together) {
                let inside = |op: &&Op| op.invoke_ns >= from && op.complete_ns.is_some_and(|at| at <= to);
                let mut alone: BTreeMap<Function, u64> = BTreeMap::new();
                for op in history.ops().iter().filter(inside) {
                    *alone.entry(op.f).or_default() += 1;
                }
                assert_eq!(*counted, alone, "{from} to {to}");
                for member in 0..3 {
                    let here = || history.ops().iter().filter(|op| op.node == Some(member));
                    let under_way =
                        here().filter(|op| op.invoke_ns <= to && op.complete_ns.is_none_or(|at| at >= from));
                    let within = |at: u64| (from..=to).contains(&at);
                    assert_eq!(presence.under_way(member, (from, to)), under_way.count() as u64);
                    assert_eq!(
                        presence.is_within(member, (from, to)),
                        here().any(|op| within(op.invoke_ns) || op.complete_ns.is_some_and(within))
                    );
                }
            }
        }
    }

    #[test]
    fn an_operation_is_looked_at_once_however_many_the_intervals_are() {
        let ops: Vec<(u64, u64, Option<u64>)> = (0..1000).map(|at| (1, at, Some(at + 2))).collect();
        let history = history(&ops);
        let looks = |intervals: u64| {
            let intervals: Vec<Interval> = (0..intervals).map(|at| (at, 1000)).collect();
            let mut looks = 0;
            let _ = counts_during(&history, &intervals, |_| {
                looks += 1;
                Some(())
            });
            looks
        };
        assert_eq!((looks(1), looks(500)), (1000, 1000));
    }
}
