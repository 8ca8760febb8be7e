//! The versions that the system reported, taken at their word.
//!
//! Linearizability is judged from values alone, so that a system can't talk itself out of a violation. This
//! check is the other way round: every change of an object gives it the next version, a version belongs to
//! one value and one place in the order of changes, and what a reply showed to somebody must be there for
//! whoever asks afterwards. A violation is always two operations, or one compare-and-set that did not produce
//! the version after the one it asked for.

use std::collections::BTreeMap;

use serde_json::json;

use crate::figures::count;
use crate::history::{History, NEVER, Op, OpKind, Outcome, Rank, describe};
use crate::orders::Orders;
use crate::verdict::{CheckResult, Counterexample, OpView, Verdict};

/// The name of the check.
pub const NAME: &str = "version-order";

/// Judges the versions of every key, in ZooKeeper's words.
#[must_use]
pub fn check(history: &History) -> CheckResult {
    check_in(history, &Orders::default())
}

/// Judges the versions of every key, in the words that its system has for its orders.
#[must_use]
pub fn check_in(history: &History, orders: &Orders) -> CheckResult {
    let mut shown = 0_usize;
    for (key, ops) in history.by_key() {
        let versioned: Vec<&Op> =
            ops.iter().copied().filter(|op| op.outcome == Outcome::Ok && op.version.is_some()).collect();
        shown += versioned.len();
        let broken =
            cas_steps(&versioned).or_else(|| identity(&versioned, orders)).or_else(|| real_time(&versioned));
        if let Some((why, culprits)) = broken {
            let summary = format!("the versions of key {key} contradict each other");
            return CheckResult::new(NAME, Verdict::Invalid, summary)
                .with_evidence(json!({"key": key, "replies": versioned.len()}))
                .with_counterexample(counterexample(why, &culprits, ops.len()));
        }
    }
    if shown == 0 {
        return CheckResult::nothing_judged(
            NAME,
            "no reply showed a version, so there was nothing to compare",
        );
    }
    let summary =
        format!("the versions in {} replies agree with each other and with real time", count(shown));
    CheckResult::new(NAME, Verdict::Valid, summary).with_evidence(json!({"replies": shown}))
}

type Broken<'a> = Option<(String, Vec<&'a Op>)>;

/// A compare-and-set that asked for version v and succeeded made v + 1.
fn cas_steps<'a>(ops: &[&'a Op]) -> Broken<'a> {
    let wrong = |op: &&&Op| match (op.kind(), op.expect, op.version) {
        (OpKind::Cas { .. } | OpKind::Append { .. }, Some(expect), Some(version)) => version != expect + 1,
        _ => false,
    };
    let op = ops.iter().find(wrong)?;
    let (expect, version) = (op.expect?, op.version?);
    Some((format!("{}: it asked for version {expect} and got version {version}", describe(op)), vec![op]))
}

/// One version is one value, one mzxid and at most one change.
fn identity<'a>(ops: &[&'a Op], orders: &Orders) -> Broken<'a> {
    let mut changed: BTreeMap<i64, &Op> = BTreeMap::new();
    let mut seen: BTreeMap<i64, &Op> = BTreeMap::new();
    for &op in ops {
        let version = op.version?;
        if op.is_change()
            && let Some(first) = changed.insert(version, op)
        {
            let why = format!(
                "{} and {} were both told that they made version {version}",
                describe(first),
                describe(op)
            );
            return Some((why, vec![first, op]));
        }
        let first = *seen.entry(version).or_insert(op);
        if shown(first) != shown(op) {
            let why = format!("{} and {}, both at version {version}", describe(first), describe(op));
            return Some((why, vec![first, op]));
        }
        if let (Some(one), Some(other)) = (first.mzxid, op.mzxid)
            && one != other
        {
            let why = format!(
                "{} and {} show version {version} with two {}s, {} and {}",
                describe(first),
                describe(op),
                orders.changed,
                orders.place(one),
                orders.place(other)
            );
            return Some((why, vec![first, op]));
        }
    }
    None
}

fn shown(op: &Op) -> Option<i64> {
    match op.kind() {
        // Of a list the newest element says which append it is.
        OpKind::Read { value } => value.or_else(|| op.list()?.last().copied()),
        OpKind::Append { value } => Some(value),
        kind => kind.written(),
    }
}

/// What returned before another operation was called shows no later version, and no change repeats it.
fn real_time<'a>(ops: &[&'a Op]) -> Broken<'a> {
    for (newest, op) in after_newest(ops, |op| op.version) {
        let (before, now) = (newest.version?, op.version?);
        if now < before || (now == before && op.is_change()) {
            let why = format!(
                "{} showed version {before}, and afterwards {} showed version {now}",
                describe(newest),
                describe(op)
            );
            return Some((why, vec![newest, op]));
        }
    }
    None
}

/// Pairs each operation with the one of greatest `measure` among those that had returned before its call.
#[must_use]
pub fn after_newest<'a>(ops: &[&'a Op], measure: impl Fn(&Op) -> Option<i64>) -> Vec<(&'a Op, &'a Op)> {
    let mut by_call: Vec<&Op> = ops.iter().copied().filter(|op| measure(op).is_some()).collect();
    let mut by_return: Vec<&Op> = by_call.iter().copied().filter(|op| op.ret != NEVER).collect();
    by_call.sort_by_key(|op| op.call);
    by_return.sort_by_key(|op: &&Op| -> Rank { op.ret });
    let mut returned = by_return.into_iter().peekable();
    let mut newest: Option<&Op> = None;
    let mut pairs = Vec::new();
    for op in by_call {
        while let Some(earlier) = returned.next_if(|earlier| earlier.ret < op.call) {
            if newest.is_none_or(|newest| measure(newest) < measure(earlier)) {
                newest = Some(earlier);
            }
        }
        pairs.extend(newest.map(|newest| (newest, op)));
    }
    pairs
}

/// A counterexample of whole operations, the last of which is the impossible one. These need no second
/// judgement: the sentence can be checked by reading it.
#[must_use]
pub fn counterexample(sentence: String, culprits: &[&Op], of_ops: usize) -> Counterexample {
    let last = culprits.len().saturating_sub(1);
    Counterexample {
        sentence,
        ops: culprits.iter().enumerate().map(|(at, op)| OpView::of(op, at == last)).collect(),
        of_ops: u64::try_from(of_ops).unwrap_or(u64::MAX),
        rechecked: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Function, Value};

    /// Operations one after the other: (function, value, version).
    fn history(ops: &[(Function, i64, i64)]) -> History {
        let mut events = Vec::new();
        for (&(f, value, version), at) in ops.iter().zip(0_u64..) {
            let asked = if f == Function::READ { Value::Null } else { Value::One(value) };
            events.push(Event::new(at, EventKind::Invoke, f, 0, asked, at * 10));
            let mut ok = Event::new(at, EventKind::Ok, f, 0, Value::One(value), at * 10 + 5);
            ok.version = Some(version);
            events.push(ok);
        }
        History::from_events(events).unwrap()
    }

    #[test]
    fn versions_that_count_up_are_valid() {
        let ok = history(&[(Function::WRITE, 1, 0), (Function::WRITE, 2, 1), (Function::READ, 2, 1)]);
        assert_eq!(check(&ok).verdict, Verdict::Valid);
    }

    #[test]
    fn one_version_for_two_changes_is_a_violation() {
        let bad = history(&[(Function::WRITE, 1, 4), (Function::WRITE, 2, 4)]);
        let result = check(&bad);
        assert_eq!(result.verdict, Verdict::Invalid);
        assert_eq!(result.counterexample.unwrap().ops.len(), 2);
    }

    #[test]
    fn one_version_with_two_values_is_a_violation() {
        assert_eq!(
            check(&history(&[(Function::WRITE, 1, 4), (Function::READ, 2, 4)])).verdict,
            Verdict::Invalid
        );
    }

    #[test]
    fn a_version_that_goes_back_in_real_time_is_a_violation() {
        let bad = history(&[(Function::WRITE, 1, 4), (Function::WRITE, 2, 5), (Function::READ, 1, 4)]);
        let sentence = check(&bad).counterexample.unwrap().sentence;
        assert!(sentence.contains("showed version 5, and afterwards"), "{sentence}");
    }

    #[test]
    fn a_compare_and_set_that_makes_another_version_than_the_next_is_a_violation() {
        let mut invoke = Event::new(0, EventKind::Invoke, Function::CAS, 0, Value::Pair(Some(1), 2), 0);
        invoke.expect = Some(3);
        let mut ok = Event::new(0, EventKind::Ok, Function::CAS, 0, Value::Pair(Some(1), 2), 1);
        ok.version = Some(5);
        let bad = History::from_events([invoke, ok]).unwrap();
        assert_eq!(check(&bad).verdict, Verdict::Invalid);
    }
}
