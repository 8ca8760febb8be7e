//! What can be counted on a history without judging it.
//!
//! The pairing of calls and answers is the checker's; this module only gives operations the two readings
//! that every report needs: when an operation was due, and whether it was answered.

use std::collections::BTreeMap;

use checker::history::{Function, History, Interval, Op, Outcome, counts_during};
use workloads::NOT_NEEDED;

use crate::faults::{FaultLoad, FaultRecord, OperationMix};
use crate::results::{OperationCounts, OutcomeCounts};

/// When the operation was due; histories without that moment say when it was invoked.
pub fn due_ns(op: &Op) -> u64 {
    op.due_ns.unwrap_or(op.invoke_ns)
}

/// Whether it asks the system for a change.
pub fn is_update(op: &Op) -> bool {
    op.is_change() && !is_unasked(op)
}

/// Whether nobody was asked, because there was nothing to do: its success says nothing of the system.
fn is_unasked(op: &Op) -> bool {
    op.outcome == Outcome::Ok && op.error.as_deref() == Some(NOT_NEEDED)
}

/// When it was answered, counting a compare-and-set that found another value as an answer: the service was
/// there and said something definite.
pub fn answered_ns(op: &Op) -> Option<u64> {
    let is_answered = op.outcome == Outcome::Ok || op.is_refused_cas();
    if is_answered && !is_unasked(op) { op.complete_ns } else { None }
}

/// The last moment of the history.
pub fn end_ns(history: &History) -> u64 {
    history.ops().iter().map(|op| op.complete_ns.unwrap_or(op.invoke_ns)).max().unwrap_or(0)
}

/// Operations by outcome.
pub fn counts(history: &History) -> OperationCounts {
    let mut counts = OperationCounts::default();
    for op in history.ops() {
        add(&mut counts.total, op);
        add(counts.by_function.entry(op.f.as_str().to_owned()).or_default(), op);
    }
    counts
}

fn add(to: &mut OutcomeCounts, op: &Op) {
    to.invoked += 1;
    to.refused += u64::from(op.is_refused_cas());
    to.unsent += u64::from(op.outcome == Outcome::Fail && !op.was_sent());
    match op.outcome {
        Outcome::Ok => to.ok += 1,
        Outcome::Fail => to.fail += 1,
        Outcome::Info => to.info += 1,
    }
}

/// Writes into every fault how many operations ended well before, during and after it. "Before" begins where
/// the fault before it was seen gone, "after" ends where the next one was injected; an operation counts
/// where it was invoked and answered within one of them. All faults are counted in one pass over the history.
pub fn count_around_faults(history: &History, faults: &mut [FaultRecord]) {
    let end = end_ns(history);
    let at_work = |fault: &FaultRecord| fault.interval(end);
    let mut begun: Vec<Interval> = faults.iter().filter_map(at_work).collect();
    // Of those that were at work at the very same time one will do: each counts the calm around all of them.
    begun.sort_unstable();
    begun.dedup();
    let mut gone = begun.clone();
    gone.sort_unstable_by_key(|(_, gone)| *gone);
    let mut intervals: Vec<Interval> = Vec::new();
    for fault in faults.iter() {
        let Some(own @ (from, until)) = at_work(fault) else { continue };
        let earlier = gone[..gone.partition_point(|(_, gone)| *gone <= from)].iter().rev();
        let later = begun[begun.partition_point(|(from, _)| *from < until)..].iter();
        let since = earlier.copied().find(|other| *other != own).map_or(0, |(_, gone)| gone);
        let next = later.copied().find(|other| *other != own).map_or(end, |(from, _)| from);
        let held_until = fault.heal_asked_ns.unwrap_or(until);
        intervals.extend([(since, from), (from, held_until), (until, next)]);
    }
    let mut counts = counts_during(history, &intervals, column).into_iter();
    for fault in faults.iter_mut().filter(|fault| at_work(fault).is_some()) {
        let mut next = || mix(&counts.next().unwrap_or_default());
        fault.load = Some(FaultLoad { before: next(), during: next(), after: next() });
    }
}

/// Where an operation that ended well is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Reads,
    Writes,
    Cas,
}

fn column(op: &Op) -> Option<Column> {
    if op.outcome != Outcome::Ok {
        return None;
    }
    match op.f {
        Function::ABANDON => None,
        _ if !op.is_change() => Some(Column::Reads),
        Function::CAS | Function::APPEND | Function::DEQUEUE => Some(Column::Cas),
        _ => Some(Column::Writes),
    }
}

fn mix(counts: &BTreeMap<Column, u64>) -> OperationMix {
    let get = |column| counts.get(&column).copied().unwrap_or(0);
    OperationMix { reads: get(Column::Reads), writes: get(Column::Writes), cas: get(Column::Cas) }
}

/// Small histories for the tests of this crate.
#[cfg(test)]
pub(crate) mod test_data {
    use checker::history::{Event, EventKind, Function, History, Value};

    /// One operation of a test: what, when due, when answered and how.
    #[derive(Clone, Copy)]
    pub(crate) struct Sketch(pub(crate) Function, pub(crate) u64, pub(crate) u64, pub(crate) EventKind);

    /// A history in which every operation has a process of its own and is sent when it is due.
    pub(crate) fn history(sketches: &[Sketch]) -> History {
        let mut events = Vec::new();
        for (process, &Sketch(f, due, completed, kind)) in (0_u64..).zip(sketches) {
            let unique = i64::try_from(process).expect("small") + 1;
            let value = match f {
                Function::READ => Value::Null,
                Function::WRITE => Value::One(unique),
                Function::CAS => Value::Pair(Some(0), unique),
                other => panic!("these histories are of registers, not of {other}"),
            };
            let mut invoke = Event::new(process, EventKind::Invoke, f, 0, value.clone(), due);
            invoke.due = Some(due);
            let result = if f == Function::READ { Value::One(7) } else { value };
            events.push(invoke);
            events.push(Event::new(process, kind, f, 0, result, completed));
        }
        events.sort_by_key(|event| (event.time, event.kind != EventKind::Invoke));
        History::from_events(events).expect("a well-formed test history")
    }

    /// An operation that ended well.
    pub(crate) fn ok(f: Function, due: u64, completed: u64) -> Sketch {
        Sketch(f, due, completed, EventKind::Ok)
    }
}

#[cfg(test)]
mod tests {
    use checker::history::{Event, EventKind, Value};

    use super::test_data::{Sketch, history, ok};
    use super::*;

    #[test]
    fn what_nobody_was_asked_for_is_no_answer_and_no_update() {
        let make = |kind, time| Event::new(1, kind, Function::CREATE, 0, Value::Null, time);
        let mut told = make(EventKind::Ok, 2);
        let asked = History::from_events(vec![make(EventKind::Invoke, 1), told.clone()]).expect("a history");
        assert!(is_update(&asked.ops()[0]) && answered_ns(&asked.ops()[0]).is_some());
        told.error = Some(NOT_NEEDED.into());
        let unasked = History::from_events(vec![make(EventKind::Invoke, 1), told]).expect("a history");
        assert!(!is_update(&unasked.ops()[0]) && answered_ns(&unasked.ops()[0]).is_none());
    }

    #[test]
    fn outcomes_are_counted_in_total_and_by_function() {
        let counts = counts(&history(&[
            ok(Function::READ, 1, 2),
            ok(Function::WRITE, 3, 4),
            Sketch(Function::WRITE, 5, 6, EventKind::Fail),
            Sketch(Function::CAS, 7, 8, EventKind::Info),
        ]));
        assert_eq!(
            counts.total,
            OutcomeCounts { invoked: 4, ok: 2, fail: 1, info: 1, refused: 0, unsent: 0 }
        );
        assert_eq!(
            counts.by_function["write"],
            OutcomeCounts { invoked: 2, ok: 1, fail: 1, info: 0, refused: 0, unsent: 0 }
        );
    }

    #[test]
    fn operations_are_counted_before_during_and_after_a_fault() {
        let history = history(&[
            ok(Function::READ, 10, 11),
            ok(Function::WRITE, 98, 105),
            ok(Function::WRITE, 120, 130),
            ok(Function::CAS, 250, 260),
            ok(Function::READ, 900, 901),
        ]);
        let fault = |from, gone| FaultRecord {
            injected_ns: Some(from),
            heal_asked_ns: Some(gone - 20),
            verified_healed_ns: Some(gone),
            ..FaultRecord::default()
        };
        let mut faults = [fault(100, 200), fault(500, 600)];
        count_around_faults(&history, &mut faults);
        let load = faults[0].load.expect("an injected fault is counted");
        assert_eq!(load.before, OperationMix { reads: 1, writes: 0, cas: 0 });
        assert_eq!(load.during, OperationMix { reads: 0, writes: 1, cas: 0 });
        assert_eq!(load.after, OperationMix { reads: 0, writes: 0, cas: 1 });
        assert_eq!(faults[1].load.expect("counted").after, OperationMix { reads: 1, writes: 0, cas: 0 });
    }
}
