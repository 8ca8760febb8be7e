//! What makes two violations one finding: the check, the case, and the kinds of fault in force around the
//! counterexample.
//!
//! A run is drawn anew each night, so neither the seed nor a value may count, nor which operations happen to
//! show it: one bug gave counterexamples of reads and writes, of compare-and-sets, and of all three. What is
//! left is what a person would say: "not linearizable while the leader is cut off". The operations are kept
//! to be read.

use std::collections::BTreeSet;

use checker::history::Outcome;
use checker::verdict::{CheckResult, Counterexample};
use runs::faults::FaultRecord;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a violation is recognized by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shape {
    /// The check that accused.
    pub check: String,
    /// The case's id.
    pub case: String,
    /// Kinds of fault in force between the first and the last operation that shows it.
    pub kinds: BTreeSet<String>,
    /// What was done, and how it ended: `read ok`, `write info`.
    pub operations: BTreeSet<String>,
}

/// Digits of a fingerprint: enough for millions of findings, and short enough to be typed.
const DIGITS: usize = 10;

impl Shape {
    /// The shape of a check that found a violation.
    pub fn of(case: &str, check: &CheckResult, faults: &[FaultRecord]) -> Self {
        let found = check.counterexample.as_ref();
        Self {
            check: check.name.clone(),
            case: case.to_owned(),
            kinds: found.map(|found| in_force(found, faults)).unwrap_or_default(),
            operations: found.map(operations).unwrap_or_default(),
        }
    }

    /// Its fingerprint: the same for the same shape, in every build.
    pub fn fingerprint(&self) -> String {
        let mut digest = Sha256::new();
        let words = [self.case.as_str(), self.check.as_str()].into_iter();
        for word in words.chain(self.kinds.iter().map(String::as_str)) {
            digest.update(word.as_bytes());
            digest.update([0]);
        }
        let hex = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        hex.chars().take(DIGITS).collect()
    }
}

/// The kinds of fault in force between the first and the last of these operations.
fn in_force(found: &Counterexample, faults: &[FaultRecord]) -> BTreeSet<String> {
    let Some(from) = found.ops.iter().map(|op| op.invoke_ns).min() else { return BTreeSet::new() };
    let ends = found.ops.iter().map(|op| op.complete_ns.unwrap_or(op.invoke_ns));
    let to = ends.max().unwrap_or(from);
    let overlaps = |fault: &&FaultRecord| {
        fault.interval(u64::MAX).is_some_and(|(begun, gone)| begun <= to && from <= gone)
    };
    faults.iter().filter(overlaps).map(|fault| fault.kind.clone()).collect()
}

fn operations(found: &Counterexample) -> BTreeSet<String> {
    let ended = |outcome: Outcome| match outcome {
        Outcome::Ok => "ok",
        Outcome::Fail => "fail",
        Outcome::Info => "info",
    };
    found.ops.iter().map(|op| format!("{} {}", op.f, ended(op.outcome))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::Datum;
    use checker::verdict::{OpView, Verdict};

    fn op(f: &str, process: u64, value: i64, at: u64) -> OpView {
        OpView {
            index: 0,
            process,
            f: f.to_owned(),
            key: Datum::Int(1),
            value: Datum::Int(value),
            call: String::new(),
            changes: false,
            invoke_ns: at,
            complete_ns: Some(at + 1),
            outcome: Outcome::Ok,
            node: None,
            session: None,
            version: None,
            impossible: false,
        }
    }

    fn check(ops: Vec<OpView>) -> CheckResult {
        let found = Counterexample { sentence: String::new(), ops, of_ops: 100, rechecked: true };
        CheckResult::new("linearizable", Verdict::Invalid, "").with_counterexample(found)
    }

    fn fault(kind: &str, from: u64, gone: u64) -> FaultRecord {
        FaultRecord {
            kind: kind.to_owned(),
            injected_ns: Some(from),
            verified_healed_ns: Some(gone),
            ..FaultRecord::default()
        }
    }

    #[test]
    fn values_clients_and_operations_do_not_count() {
        let faults = [fault("partition-leader", 50, 150), fault("kill-leader", 300, 400)];
        let one = Shape::of("a", &check(vec![op("write", 1, 7, 100), op("read", 2, 6, 110)]), &faults);
        let more = vec![op("write", 9, 3, 90), op("write", 4, 5, 95), op("read", 4, 3, 120)];
        let other = Shape::of("a", &check(more), &faults);
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert_eq!(one.kinds.into_iter().collect::<Vec<_>>(), ["partition-leader"]);
        assert_eq!(other.fingerprint().len(), DIGITS);
    }

    #[test]
    fn another_case_check_or_fault_is_another_finding() {
        let ops = vec![op("write", 1, 7, 100), op("read", 2, 6, 110)];
        let faults = [fault("partition-leader", 50, 150)];
        let usual = Shape::of("a", &check(ops.clone()), &faults).fingerprint();
        assert_ne!(usual, Shape::of("b", &check(ops.clone()), &faults).fingerprint());
        assert_ne!(usual, Shape::of("a", &check(ops.clone()), &[]).fingerprint());
        assert_eq!(usual, Shape::of("a", &check(ops[..1].to_vec()), &faults).fingerprint());
        let named = CheckResult { name: "durable".to_owned(), ..check(ops) };
        assert_ne!(usual, Shape::of("a", &named, &faults).fingerprint());
    }
}
