//! Whether a leader had changes acknowledged after the epoch of another stood.
//!
//! Once an epoch stands, a quorum has promised to take nothing from an earlier one (Zab, Junqueira, Reed and
//! Serafini 2011, phase 1; a fencing token, where services build locks on it). So a change that was asked for
//! after somebody was heard to say that an epoch stands can't have its place in an earlier epoch. That is
//! said of changes alone: what an old leader's members read may be old.
//!
//! It asks for an order whose places tell their epoch, and says nothing of a system without one. The harness
//! stamps what a member says when it arrives, and an operation before it is sent: both err towards the
//! innocent.

use std::collections::BTreeMap;

use checker::history::{History, Op, Outcome, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use serde_json::json;

use super::{Case, Check};
use crate::clock::RunNs;
use crate::events::{Event, Said, Stamped};
use crate::numbers::{moment, plural};

/// The check.
pub(super) const CHECK: Check =
    Check { about: "no change is acknowledged in an epoch that had ended", judge };

/// What it is called in results.
const NAME: &str = "fencing";

fn judge(case: &Case<'_>) -> Vec<CheckResult> {
    let Some(bits) = case.run.system.epoch_shift else { return Vec::new() };
    let epochs = standing(&case.observed.events);
    if epochs.len() < 2 {
        // Nobody was ever an old leader.
        return Vec::new();
    }
    let found = check(&case.loaded.history, bits, &epochs);
    found.map(|found| case.loaded.extent.allow(found)).into_iter().collect()
}

/// When each epoch was first said to stand, of those that were higher than all before.
fn standing(events: &[Stamped]) -> BTreeMap<RunNs, u32> {
    let mut said: Vec<(RunNs, u32)> = events
        .iter()
        .filter_map(|stamped| match stamped.event {
            Event::Said(Said::Established { epoch, .. }) => Some((stamped.time, epoch)),
            _ => None,
        })
        .collect();
    said.sort_unstable();
    let mut standing = BTreeMap::new();
    let mut highest = 0;
    for (time, epoch) in said {
        if epoch > highest {
            highest = epoch;
            standing.insert(time, epoch);
        }
    }
    standing
}

/// None where no change tells its place.
fn check(history: &History, bits: u32, epochs: &BTreeMap<RunNs, u32>) -> Option<CheckResult> {
    let mut judged = 0;
    let mut late: Vec<(&Op, u64, RunNs, u32)> = Vec::new();
    for op in history.ops().iter().filter(|op| op.outcome == Outcome::Ok && op.is_change()) {
        let Some(epoch) = op.zxid.and_then(|place| place.checked_shr(bits)) else { continue };
        let Some((&since, &stood)) = epochs.range(..op.invoke_ns).next_back() else { continue };
        judged += 1;
        if epoch < u64::from(stood) {
            late.push((op, epoch, since, stood));
        }
    }
    if judged == 0 {
        return None;
    }
    let evidence = json!({"changes": judged, "epochs": epochs.len(), "late": late.len()});
    let Some((op, epoch, since, stood)) = late.first().copied() else {
        let changes = plural(judged, "change");
        let words = format!("each of {changes} has its place in the epoch that stood, or in a later one");
        return Some(CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence));
    };
    let sentence = format!(
        "{} has its place in epoch {epoch}, but epoch {stood} stood at {} s, before that was asked for",
        describe(op),
        moment(since)
    );
    let mut evidence = evidence;
    evidence["kind"] = json!("an old leader had a change acknowledged");
    let words = match late.len() {
        1 => sentence.clone(),
        more => format!("{sentence} (and {} more)", more - 1),
    };
    let result = CheckResult::new(NAME, Verdict::Invalid, words).with_evidence(evidence);
    Some(result.with_counterexample(counterexample(sentence, &[op], history.ops().len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::MemberId;
    use checker::history::{Event as Line, EventKind, Function, Value};

    fn established(time: RunNs, node: u64, epoch: u32) -> Stamped {
        Stamped { time, node: MemberId(node), event: Event::Said(Said::Established { leader: node, epoch }) }
    }

    /// Writes, each from its moment to ten later, with the epoch of its place.
    fn writes(ops: &[(RunNs, u64)]) -> History {
        changes(Function::WRITE, ops)
    }

    fn changes(f: Function, ops: &[(RunNs, u64)]) -> History {
        let mut lines = Vec::new();
        for (&(at, epoch), value) in ops.iter().zip(0_i64..) {
            let process = value.unsigned_abs();
            let line = |kind, time| Line::new(process, kind, f, 0, Value::One(value), time);
            lines.push(line(EventKind::Invoke, at));
            let mut ok = line(EventKind::Ok, at + 10);
            ok.zxid = Some(epoch << 32 | value.unsigned_abs());
            lines.push(ok);
        }
        lines.sort_by_key(|line| line.time);
        History::from_events(lines).expect("a history")
    }

    fn verdict(events: &[Stamped], ops: &[(RunNs, u64)]) -> Verdict {
        check(&writes(ops), 32, &standing(events)).expect("changes").verdict
    }

    #[test]
    fn only_a_higher_epoch_ends_one() {
        let events =
            [established(9, 3, 2), established(1, 1, 1), established(12, 1, 1), established(30, 2, 5)];
        assert_eq!(standing(&events), BTreeMap::from([(1, 1), (9, 2), (30, 5)]));
    }

    #[test]
    fn a_change_in_an_epoch_that_had_ended_accuses_and_one_asked_for_before_does_not() {
        let events = [established(1, 1, 1), established(100, 2, 2)];
        assert_eq!(verdict(&events, &[(50, 1), (95, 1), (200, 2)]), Verdict::Valid);
        assert_eq!(verdict(&events, &[(100, 1)]), Verdict::Valid, "at the very moment");
        assert_eq!(verdict(&events, &[(200, 3)]), Verdict::Valid, "a later one stands and was not heard yet");
        assert_eq!(verdict(&events, &[(50, 1), (101, 1)]), Verdict::Invalid);
        let found = check(&writes(&[(101, 1)]), 32, &standing(&events)).expect("a change");
        let sentence = found.counterexample.expect("a counterexample").sentence;
        assert!(sentence.contains("has its place in epoch 1, but epoch 2 stood"), "{sentence}");
        let added = check(&changes(Function::ADD, &[(101, 1)]), 32, &standing(&events));
        assert_eq!(added.expect("a change").verdict, Verdict::Invalid);
        assert!(check(&writes(&[]), 32, &standing(&events)).is_none());
        let read = changes(Function::READ, &[(101, 1)]);
        assert!(check(&read, 32, &standing(&events)).is_none(), "what is read may be old");
    }
}
