//! Linearizability of a whole history, key by key.
//!
//! A history over several keys is linearizable when each key's part is (linearizability is local), so each key
//! is decided by itself and the worst answer counts.

use serde_json::json;

use crate::budget::Budget;
use crate::history::{History, Op};
use crate::register::{self, Algorithm, Decision, Problem, explain};
use crate::verdict::{CheckResult, Counterexample, Verdict};

/// The name of the check.
pub const NAME: &str = "linearizable";

/// What was found out about one key.
#[derive(Clone, Debug)]
pub struct KeyResult {
    /// The key.
    pub key: u64,
    /// The answer.
    pub verdict: Verdict,
    /// Who gave it.
    pub decided_by: Option<Algorithm>,
    /// Why it could not be decided.
    pub reason: Option<String>,
    /// Operations of the key, all and those of unknown fate.
    pub ops: usize,
    /// Operations of unknown fate.
    pub open: usize,
    /// With a violation: what shows it.
    pub counterexample: Option<Counterexample>,
}

/// Judges the operations of one key. The budget is for this key alone.
#[must_use]
pub fn check_key(key: u64, ops: &[&Op], budget: Budget) -> KeyResult {
    let problem = Problem::of(ops);
    let judgement = register::check(&problem, budget);
    let (verdict, reason, counterexample) = match &judgement.decision {
        Decision::Linearizable { .. } => (Verdict::Valid, None, None),
        Decision::Undecided { reason } => (Verdict::Unknown, Some(reason.clone()), None),
        Decision::Violation(shrunk) => {
            (Verdict::Invalid, None, Some(explain::counterexample(&problem, ops, shrunk)))
        }
    };
    let open = problem.entries.iter().filter(|entry| entry.is_open()).count();
    KeyResult { key, verdict, decided_by: judgement.decided_by, reason, ops: ops.len(), open, counterexample }
}

/// Judges every key, each with the whole budget.
#[must_use]
pub fn check(history: &History, budget: Budget) -> CheckResult {
    let results: Vec<KeyResult> =
        history.by_key().into_iter().map(|(key, ops)| check_key(key, &ops, budget)).collect();
    merge(results)
}

/// One result from those of all keys.
#[must_use]
pub fn merge(results: Vec<KeyResult>) -> CheckResult {
    let verdict = results.iter().map(|key| key.verdict).reduce(Verdict::merge).unwrap_or(Verdict::Unknown);
    let ops: usize = results.iter().map(|key| key.ops).sum();
    let with = |verdict: Verdict| results.iter().filter(move |key| key.verdict == verdict);
    let summary = match verdict {
        Verdict::Valid => {
            format!("{ops} operations on {} keys are linearizable", results.len())
        }
        Verdict::Invalid => {
            let keys: Vec<String> = with(Verdict::Invalid).map(|key| key.key.to_string()).collect();
            format!("not linearizable: key {}", keys.join(", "))
        }
        Verdict::Unknown if results.is_empty() => "there is no operation to judge".to_owned(),
        Verdict::Unknown => {
            let undecided: Vec<String> = with(Verdict::Unknown)
                .map(|key| format!("key {}: {}", key.key, key.reason.as_deref().unwrap_or("no reason")))
                .collect();
            format!("not decided within the budget: {}", undecided.join("; "))
        }
    };
    let mut algorithms: Vec<Algorithm> = results.iter().filter_map(|key| key.decided_by).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    let algorithms: Vec<&str> = algorithms.into_iter().map(Algorithm::as_str).collect();
    let per_key: Vec<serde_json::Value> = results
        .iter()
        .map(|key| {
            json!({"key": key.key, "verdict": key.verdict, "ops": key.ops, "open": key.open,
                   "decided_by": key.decided_by, "reason": key.reason})
        })
        .collect();
    let mut result = CheckResult::new(NAME, verdict, summary).with_evidence(json!({"keys": per_key}));
    if !algorithms.is_empty() {
        result = result.with_decided_by(algorithms.join(", "));
    }
    // The smallest of the counterexamples is the one to show.
    let smallest = results.into_iter().filter_map(|key| key.counterexample).min_by_key(|c| c.ops.len());
    match smallest {
        Some(counterexample) => result.with_counterexample(counterexample),
        None => result,
    }
}
