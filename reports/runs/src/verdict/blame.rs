//! Which operation of a counterexample is to blame.
//!
//! A counterexample is a small set of operations that contradict each other: without any of them the others
//! make sense. The search marks the one at which it got stuck, which may be a write that the leader did as it
//! should. Who stood where when it was served is known only here. So where a member that was cut off from the
//! quorum answered with an old value, that read is marked: it had been replaced before the read was asked
//! for, and the member could not know.

use checker::history::{History, Op};
use checker::verdict::{CheckResult, Counterexample, OpView, Verdict};

use crate::broken::contradicted;
use crate::cut_off::Cuts;
use crate::faults::FaultRecord;
use crate::results::RunInfo;

/// Marks stale reads of members that were cut off, in the counterexamples of these checks.
pub fn stale_reads(checks: &mut [CheckResult], history: &History, faults: &[FaultRecord], run: &RunInfo) {
    let broken = |check: &&mut CheckResult| check.verdict == Verdict::Invalid;
    let mut cuts = None;
    for check in checks.iter_mut().filter(broken) {
        let Some(found) = &mut check.counterexample else { continue };
        let cuts = cuts.get_or_insert_with(|| Cuts::of(faults));
        let blamed = (0..found.ops.len()).find_map(|at| stale_read(found, at, history, cuts, run));
        if let Some(blamed) = blamed {
            *found = blamed;
        }
    }
}

/// The counterexample with this operation marked, where it is a stale read of a member that was cut off.
fn stale_read(
    found: &Counterexample,
    at: usize,
    history: &History,
    cuts: &Cuts<'_>,
    run: &RunInfo,
) -> Option<Counterexample> {
    let read = &found.ops[at];
    if read.changes || read.impossible {
        return None;
    }
    let member = served_by(read, history, run)?;
    let fault = cuts.around(member, read.invoke_ns, read.complete_ns?)?;
    let mut blamed = found.clone();
    for (place, op) in blamed.ops.iter_mut().enumerate() {
        op.impossible = place == at;
    }
    let (bad, before) = contradicted(&blamed)?;
    let sentence = format!(
        "process {} was told by member {member}, which {} had cut off from the quorum: {}; before it asked, \
         process {} had been told that this was done: {}",
        bad.process, fault.id, bad.call, before.process, before.call
    );
    blamed.sentence = sentence;
    Some(blamed)
}

/// The member that served an operation; none where nobody knows.
fn served_by(view: &OpView, history: &History, run: &RunInfo) -> Option<u64> {
    // Operations stand in the order of their calls, which is that of their lines.
    let ops = history.ops();
    let own = |op: &&Op| op.index == view.index;
    let said = ops
        .binary_search_by_key(&view.index, |op| op.index)
        .ok()
        .map(|place| &ops[place])
        .or_else(|| ops.iter().find(own))
        .and_then(|op| op.by);
    said.or(view.node.filter(|_| run.system.asked_serves))
}

#[cfg(test)]
mod tests {
    use checker::history::{Datum, Event, EventKind, Function, Value};

    use super::*;
    use crate::consequence::Consequence;
    use crate::results::SystemInfo;

    /// A write of 853, a compare-and-set at the leader that replaces it by 900, and a read of 853 at n3,
    /// which F2 cut off from 10 to 90.
    fn history() -> History {
        let line = |process, kind, f, value, node, at| {
            let mut line = Event::new(process, kind, f, 0, value, at);
            line.node = Some(node);
            line.index = at;
            line
        };
        let (invoke, ok) = (EventKind::Invoke, EventKind::Ok);
        let cas = Value::Pair(Some(853), 900);
        History::from_events([
            line(1, invoke, Function::WRITE, Value::One(853), 1, 1),
            line(1, ok, Function::WRITE, Value::One(853), 1, 5),
            line(2, invoke, Function::CAS, cas.clone(), 1, 20),
            line(2, ok, Function::CAS, cas, 1, 30),
            line(3, invoke, Function::READ, Value::Null, 3, 40),
            line(3, ok, Function::READ, Value::One(853), 3, 50),
        ])
        .expect("a history")
    }

    fn cut() -> FaultRecord {
        FaultRecord {
            id: "F2".to_owned(),
            consequences: vec![Consequence::silences(Vec::new())],
            verified_ns: Some(10),
            heal_asked_ns: Some(90),
            majority_side: vec![1, 2],
            sides: vec![vec![1, 2], vec![3]],
            ..FaultRecord::default()
        }
    }

    /// The check as the search leaves it: the compare-and-set is marked.
    fn judged(cut: &FaultRecord, asked_serves: bool) -> Counterexample {
        let history = history();
        let ops = history.ops().iter().map(|op| OpView::of(op, op.f == Function::CAS));
        let found = Counterexample {
            sentence: "the compare-and-set cannot be".to_owned(),
            ops: ops.collect(),
            of_ops: 3,
            rechecked: true,
        };
        let check = CheckResult::new("linearizable", Verdict::Invalid, "").with_counterexample(found);
        let mut checks = [check];
        let run =
            RunInfo { system: SystemInfo { asked_serves, ..SystemInfo::default() }, ..RunInfo::default() };
        stale_reads(&mut checks, &history, std::slice::from_ref(cut), &run);
        checks[0].counterexample.clone().expect("a counterexample")
    }

    fn marked(found: &Counterexample) -> Vec<bool> {
        found.ops.iter().map(|op| op.impossible).collect()
    }

    #[test]
    fn a_stale_read_of_a_member_that_was_cut_off_is_named_before_a_correct_write_at_the_leader() {
        let found = judged(&cut(), true);
        assert_eq!(marked(&found), [false, false, true]);
        assert!(found.sentence.contains("member 3, which F2 had cut off"), "{}", found.sentence);
        assert_eq!(found.ops[2].value, Datum::Int(853));
    }

    #[test]
    fn a_member_that_was_not_cut_off_then_is_not_blamed() {
        let as_it_was = |found: &Counterexample| marked(found) == [false, true, false];
        assert!(as_it_was(&judged(&FaultRecord { heal_asked_ns: Some(45), ..cut() }, true)));
        assert!(as_it_was(&judged(&FaultRecord { verified_ns: Some(45), ..cut() }, true)));
        assert!(as_it_was(&judged(&FaultRecord { consequences: vec![Consequence::Stops], ..cut() }, true)));
        let other = FaultRecord { majority_side: vec![1, 3], sides: vec![vec![1, 3], vec![2]], ..cut() };
        assert!(as_it_was(&judged(&other, true)));
        assert!(as_it_was(&judged(&cut(), false)), "nobody knows who served");
    }
}
