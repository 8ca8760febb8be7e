//! Verdicts and what stands behind them.
//!
//! These types are what a check hands to whoever reports it: they serialize, and they carry enough to be
//! shown to a person (a sentence, the operations to draw) and to a program (evidence as JSON).

use serde::{Deserialize, Serialize};

use crate::history::{Datum, Extent, Op, Outcome, call, value_of};

/// The answer of a check. The order is the priority when several are merged: a violation always wins, and
/// what could not be decided is never valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything that was promised was kept.
    #[default]
    Valid,
    /// Not decided: the budget ran out, the load was too weak, or something needed is missing.
    Unknown,
    /// A promise was broken.
    Invalid,
}

impl Verdict {
    /// The stronger of two verdicts: invalid over unknown over valid.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        self.max(other)
    }

    /// The merged verdict of several checks. No check at all proves nothing, hence unknown; nor does one
    /// that had nothing to judge.
    pub fn of<'a>(checks: impl IntoIterator<Item = &'a CheckResult>) -> Self {
        let judged = checks.into_iter().filter(|check| !check.nothing_judged);
        judged.map(|check| check.verdict).reduce(Self::merge).unwrap_or(Self::Unknown)
    }

    /// The word used in files and on terminals.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
        }
    }
}

impl Extent {
    /// What may be claimed from a verdict on this much: of a beginning never that all is well, of parts
    /// nothing.
    #[must_use]
    pub fn limit(self, verdict: Verdict) -> Verdict {
        match self {
            Self::Whole => verdict,
            Self::Beginning => verdict.merge(Verdict::Unknown),
            Self::Parts => Verdict::Unknown,
        }
    }

    /// A result as far as this much allows it: what parts show is no violation.
    #[must_use]
    pub fn allow(self, result: CheckResult) -> CheckResult {
        if self != Self::Parts || result.verdict != Verdict::Invalid {
            return result;
        }
        let summary = format!(
            "not decided, because lines are missing or changed; what is left says: {}",
            result.summary
        );
        CheckResult { verdict: Verdict::Unknown, summary, counterexample: None, ..result }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The promise that was checked, for example `linearizable`.
    pub name: String,
    /// The answer.
    pub verdict: Verdict,
    /// Whether nothing happened that it could judge. Such a check breaks nothing, and proves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_judged: bool,
    /// One sentence for a person.
    pub summary: String,
    /// Counts and particulars for a program.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub evidence: serde_json::Value,
    /// The algorithm (or algorithms, over several keys) that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// How long it took, in milliseconds, where whoever asked has a clock: this crate has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<f64>,
    /// With an invalid verdict: the part of the history that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Counterexample>,
}

impl CheckResult {
    /// A result without evidence, algorithm or counterexample.
    #[must_use]
    pub fn new(name: &str, verdict: Verdict, summary: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            verdict,
            nothing_judged: false,
            summary: summary.into(),
            evidence: serde_json::Value::Null,
            decided_by: None,
            took_ms: None,
            counterexample: None,
        }
    }

    /// The result of a check that had nothing to judge, and why.
    #[must_use]
    pub fn nothing_judged(name: &str, summary: impl Into<String>) -> Self {
        Self { nothing_judged: true, ..Self::new(name, Verdict::Valid, summary) }
    }

    /// The same result with evidence.
    #[must_use]
    pub fn with_evidence(mut self, evidence: serde_json::Value) -> Self {
        self.evidence = evidence;
        self
    }

    /// The same result with the name of the algorithm.
    #[must_use]
    pub fn with_decided_by(mut self, algorithm: impl Into<String>) -> Self {
        self.decided_by = Some(algorithm.into());
        self
    }

    /// The same result with a counterexample.
    #[must_use]
    pub fn with_counterexample(mut self, counterexample: Counterexample) -> Self {
        self.counterexample = Some(counterexample);
        self
    }
}

/// A result, with what proves a valid one to whoever does not trust this crate.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The result.
    pub result: CheckResult,
    /// With a valid verdict, for each part of the object (a key) an order that explains every answer. Empty
    /// when it was not asked for or is not to be had.
    pub witness: Vec<PartOrder>,
}

/// An order of the operations on one part of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOrder {
    /// The part; none when the object is one whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u64>,
    /// Indices of the invocations' records. An operation whose fate is unknown and that is not here never
    /// happened.
    pub order: Vec<u64>,
}

/// A small part of a history that is itself a violation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counterexample {
    /// Names the operations and says why no order exists.
    pub sentence: String,
    /// The operations, in the order of their invocation.
    pub ops: Vec<OpView>,
    /// How many operations the judged history (of that key) had.
    pub of_ops: u64,
    /// Whether the operations above, alone, were judged again by the plain search and found to be a
    /// violation.
    pub rechecked: bool,
}

/// More operations than this are not drawn: the part could not be made small within the budget.
pub(crate) const MAX_DRAWN: usize = 60;

impl Counterexample {
    /// The counterexample of `count` operations among `of_ops`. If they are too many, those nearest to the
    /// culprit are drawn, and the sentence says so.
    pub(crate) fn drawn(
        mut sentence: String,
        count: usize,
        culprit: Option<usize>,
        view: impl Fn(usize, bool) -> OpView,
        of_ops: usize,
        rechecked: bool,
    ) -> Self {
        let mut drawn: Vec<usize> = (0..count).collect();
        if count > MAX_DRAWN {
            let centre = culprit.unwrap_or(0);
            drawn.sort_by_key(|&at| at.abs_diff(centre));
            drawn.truncate(MAX_DRAWN);
            drawn.sort_unstable();
            sentence.push_str(&format!(" (the {MAX_DRAWN} nearest of {count} operations are shown)"));
        }
        let ops = drawn.into_iter().map(|at| view(at, Some(at) == culprit)).collect();
        Self { sentence, ops, of_ops: u64::try_from(of_ops).unwrap_or(u64::MAX), rechecked }
    }
}

/// One operation as it is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpView {
    /// Index of the invocation's line.
    pub index: u64,
    /// The logical process.
    pub process: u64,
    /// What was asked: `read`, `acquire`, `txn`.
    pub f: String,
    /// The key.
    pub key: Datum,
    /// Written or read, as the line of a history has it.
    pub value: Datum,
    /// What was asked and, for what looks at the system, what was answered, as it is drawn: `read k3 → 7`.
    #[serde(default)]
    pub call: String,
    /// Whether it asks for a change.
    #[serde(default)]
    pub changes: bool,
    /// When it was invoked, ns since the start of the run.
    pub invoke_ns: u64,
    /// When it completed; none when its fate stayed unknown.
    pub complete_ns: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The member that the client spoke to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    /// The session, as hexadecimal text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The version that the reply showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Whether this is the answer that cannot be.
    #[serde(default)]
    pub impossible: bool,
}

impl OpView {
    /// The view of one operation.
    #[must_use]
    pub fn of(op: &Op, impossible: bool) -> Self {
        Self {
            index: op.index,
            process: op.process,
            f: op.f.as_str().to_owned(),
            key: i64::try_from(op.key).map_or(Datum::Nil, Datum::Int),
            value: value_of(op),
            call: call(op),
            changes: op.is_change(),
            invoke_ns: op.invoke_ns,
            complete_ns: op.complete_ns,
            outcome: op.outcome,
            node: op.node,
            session: op.session.map(|session| format!("{session:#x}")),
            version: op.version,
            impossible,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_wins_over_unknown_and_unknown_over_valid() {
        let order = [Verdict::Valid, Verdict::Unknown, Verdict::Invalid];
        for (i, a) in order.into_iter().enumerate() {
            for (j, b) in order.into_iter().enumerate() {
                assert_eq!(a.merge(b), order[i.max(j)]);
            }
        }
    }

    #[test]
    fn no_check_at_all_proves_nothing() {
        assert_eq!(Verdict::of([]), Verdict::Unknown);
    }

    #[test]
    fn checks_that_judged_nothing_make_no_run_valid_and_excuse_no_violation() {
        let check = |verdict, nothing_judged| CheckResult {
            nothing_judged,
            ..CheckResult::new("progress", verdict, "nothing was judged")
        };
        let idle = check(Verdict::Valid, true);
        assert_eq!(Verdict::of([&idle, &idle]), Verdict::Unknown);
        assert_eq!(Verdict::of([&idle, &check(Verdict::Valid, false)]), Verdict::Valid);
        assert_eq!(Verdict::of([&idle, &check(Verdict::Unknown, false)]), Verdict::Unknown);
        assert_eq!(Verdict::of([&check(Verdict::Invalid, false), &idle]), Verdict::Invalid);
    }

    #[test]
    fn a_result_survives_its_json_form() {
        let result = CheckResult::new("linearizable", Verdict::Invalid, "a read was stale")
            .with_evidence(serde_json::json!({"keys": 5}))
            .with_decided_by("near-linear");
        let text = serde_json::to_string(&result).unwrap();
        assert!(text.contains("\"verdict\":\"invalid\""));
        assert_eq!(serde_json::from_str::<CheckResult>(&text).unwrap(), result);
    }
}
