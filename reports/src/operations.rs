//! What can be counted on a history without judging it.
//!
//! The pairing of calls and answers is the checker's; this module only gives operations the two readings
//! that every report needs: when an operation was due, and whether it was answered.

use checker::history::{Function, History, Op, Outcome};

use crate::faults::{FaultLoad, FaultRecord, OperationMix};
use crate::results::{OperationCounts, OutcomeCounts};

/// When the operation was due; histories without that moment say when it was invoked.
pub(crate) fn due_ns(op: &Op) -> u64 {
    op.due_ns.unwrap_or(op.invoke_ns)
}

/// Whether it asks for a change.
pub(crate) fn is_update(op: &Op) -> bool {
    op.kind.is_change()
}

/// When it was answered, counting a compare-and-set refused for its version as an answer: the service was
/// there and said something definite.
pub(crate) fn answered_ns(op: &Op) -> Option<u64> {
    if op.outcome == Outcome::Ok || op.is_refused_cas() { op.complete_ns } else { None }
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
        add(counts.by_function.entry(op.kind.function().as_str().to_owned()).or_default(), op);
    }
    counts
}

fn add(to: &mut OutcomeCounts, op: &Op) {
    to.invoked += 1;
    to.refused += u64::from(op.is_refused_cas());
    match op.outcome {
        Outcome::Ok => to.ok += 1,
        Outcome::Fail => to.fail += 1,
        Outcome::Info => to.info += 1,
    }
}

/// Writes into every fault how many operations ended well before, during and after it. "Before" begins where
/// the fault before it was seen gone, "after" ends where the next one was injected; an operation counts
/// where it was invoked and answered within one of them.
pub fn count_around_faults(history: &History, faults: &mut [FaultRecord]) {
    let end = end_ns(history);
    let intervals: Vec<Option<(u64, u64)>> = faults.iter().map(|fault| fault.interval(end)).collect();
    for (fault, interval) in faults.iter_mut().zip(&intervals) {
        let Some((from, gone)) = *interval else { continue };
        let others = || intervals.iter().flatten().filter(|other| **other != (from, gone));
        let begin = others().map(|other| other.1).filter(|&at| at <= from).max().unwrap_or(0);
        let next = others().map(|other| other.0).filter(|&at| at >= gone).min().unwrap_or(end);
        let held_until = fault.heal_asked_ns.unwrap_or(gone);
        fault.load = Some(FaultLoad {
            before: definite(history, begin, from),
            during: definite(history, from, held_until),
            after: definite(history, gone, next),
        });
    }
}

fn definite(history: &History, from: u64, to: u64) -> OperationMix {
    let ops = history.ops();
    let first = ops.partition_point(|op| op.invoke_ns < from);
    let mut mix = OperationMix::default();
    for op in ops[first..].iter().take_while(|op| op.invoke_ns <= to) {
        if op.outcome == Outcome::Ok && op.complete_ns.is_some_and(|at| at <= to) {
            match op.kind.function() {
                Function::Read | Function::Exists => mix.reads += 1,
                Function::Cas | Function::Append => mix.cas += 1,
                Function::Write
                | Function::Add
                | Function::Create
                | Function::Delete
                | Function::Open
                | Function::Close => mix.writes += 1,
                Function::Abandon => {}
            }
        }
    }
    mix
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
                Function::Read => Value::Null,
                Function::Write => Value::One(unique),
                Function::Cas => Value::Pair(Some(0), unique),
                other => panic!("these histories are of registers, not of {other}"),
            };
            let mut invoke = Event::new(process, EventKind::Invoke, f, 0, value.clone(), due);
            invoke.due = Some(due);
            let result = if f == Function::Read { Value::One(7) } else { value };
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
    use checker::history::EventKind;

    use super::test_data::{Sketch, history, ok};
    use super::*;

    #[test]
    fn outcomes_are_counted_in_total_and_by_function() {
        let counts = counts(&history(&[
            ok(Function::Read, 1, 2),
            ok(Function::Write, 3, 4),
            Sketch(Function::Write, 5, 6, EventKind::Fail),
            Sketch(Function::Cas, 7, 8, EventKind::Info),
        ]));
        assert_eq!(counts.total, OutcomeCounts { invoked: 4, ok: 2, fail: 1, info: 1, refused: 0 });
        assert_eq!(
            counts.by_function["write"],
            OutcomeCounts { invoked: 2, ok: 1, fail: 1, info: 0, refused: 0 }
        );
    }

    #[test]
    fn operations_are_counted_before_during_and_after_a_fault() {
        let history = history(&[
            ok(Function::Read, 10, 11),
            ok(Function::Write, 98, 105),
            ok(Function::Write, 120, 130),
            ok(Function::Cas, 250, 260),
            ok(Function::Read, 900, 901),
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
