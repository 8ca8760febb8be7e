//! Linearizability of a whole history, key by key.
//!
//! A history over several keys is linearizable when each key's part is (linearizability is local), so each
//! key is decided by itself and the worst answer counts.

use serde_json::json;

use crate::budget::Budget;
use crate::figures;
use crate::history::{History, Op};
use crate::parallel;
use crate::register::{self, Decision, Problem, explain};
use crate::search::Algorithm;
use crate::verdict::{CheckResult, Counterexample, Judged, PartOrder, Verdict};

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
    /// Operations that say something: neither failed nor reads without an answer.
    pub telling: usize,
    /// With a violation: what shows it.
    pub counterexample: Option<Counterexample>,
    /// With a valid verdict, if it was asked for: an order that explains everything, by indices of
    /// invocations.
    pub order: Option<Vec<u64>>,
}

/// Judges the operations of one key. The budget is for this key alone.
#[must_use]
pub fn check_key(key: u64, ops: &[&Op], budget: &Budget) -> KeyResult {
    judge_key(key, ops, budget, false)
}

/// The same; a valid verdict comes with its order if `wants_order`.
#[must_use]
pub fn judge_key(key: u64, ops: &[&Op], budget: &Budget, wants_order: bool) -> KeyResult {
    let problem = Problem::of(ops);
    let judgement = register::judge(&problem, budget, wants_order);
    let mut result = KeyResult {
        key,
        verdict: Verdict::Valid,
        decided_by: judgement.decided_by,
        reason: None,
        ops: ops.len(),
        open: problem.entries.iter().filter(|entry| entry.is_open()).count(),
        telling: problem.entries.len(),
        counterexample: None,
        order: None,
    };
    match judgement.decision {
        Decision::Linearizable { witness } if wants_order => {
            let by_index =
                |order: Vec<usize>| order.iter().map(|&at| ops[problem.entries[at].op].index).collect();
            result.order = witness.map(by_index);
        }
        Decision::Linearizable { .. } => {}
        Decision::Undecided { reason } => (result.verdict, result.reason) = (Verdict::Unknown, Some(reason)),
        Decision::Violation(shrunk) => {
            result.verdict = Verdict::Invalid;
            result.counterexample = Some(explain::counterexample(&problem, ops, &shrunk));
        }
    }
    result
}

/// Judges every key, each with the whole budget, one after the other.
#[must_use]
pub fn check(history: &History, budget: &Budget) -> CheckResult {
    judge(history, budget, 1, false).result
}

/// Judges every key, each with the budget's steps, up to `threads` of them at a time, which share its memory.
/// With `wants_order` a valid result has the order of each key as its witness, which
/// [`crate::confirm::register`] confirms.
#[must_use]
pub fn judge(history: &History, budget: &Budget, threads: usize, wants_order: bool) -> Judged {
    let keys = history.by_key();
    let mut results =
        parallel::each(&keys, budget, threads, |(key, ops), share| judge_key(*key, ops, share, wants_order));
    results.sort_by_key(|result| result.key);
    let orders = results.iter_mut().map(|result| (result.key, result.order.take()));
    let witness =
        orders.filter_map(|(key, order)| Some(PartOrder { part: Some(key), order: order? })).collect();
    let result = merge(results);
    let witness = if result.verdict == Verdict::Valid { witness } else { Vec::new() };
    Judged { result, witness }
}

/// What a valid verdict says of so many operations on so many keys, of which so many say something.
#[must_use]
pub fn valid_summary(ops: u64, keys: usize, telling: u64) -> String {
    if telling == 0 {
        return "no operation says anything about a register".to_owned();
    }
    let (operations, registers) =
        (if ops == 1 { "operation" } else { "operations" }, if keys == 1 { "key" } else { "keys" });
    let are = if ops == 1 { "is" } else { "are" };
    format!("{} {operations} on {} {registers} {are} linearizable", figures::count(ops), figures::count(keys))
}

/// One result from those of all keys.
#[must_use]
pub fn merge(results: Vec<KeyResult>) -> CheckResult {
    let verdict = results.iter().map(|key| key.verdict).fold(Verdict::Valid, Verdict::merge);
    let ops: usize = results.iter().map(|key| key.ops).sum();
    let with = |verdict: Verdict| results.iter().filter(move |key| key.verdict == verdict);
    let summary = match verdict {
        Verdict::Valid => {
            let telling: usize = results.iter().map(|key| key.telling).sum();
            let number = |count| u64::try_from(count).unwrap_or(u64::MAX);
            valid_summary(number(ops), results.len(), number(telling))
        }
        Verdict::Invalid => {
            let keys: Vec<String> = with(Verdict::Invalid).map(|key| key.key.to_string()).collect();
            format!("not linearizable: key {}", keys.join(", "))
        }
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
                   "decided_by": key.decided_by.map(Algorithm::as_str), "reason": key.reason})
        })
        .collect();
    let mut result = CheckResult::new(NAME, verdict, summary).with_evidence(json!({"keys": per_key}));
    if !algorithms.is_empty() {
        result = result.with_decided_by(algorithms.join(", "));
    }
    // The smallest of the counterexamples is the one to show, and of equally small ones that of the lowest
    // key.
    let smallest = results.into_iter().filter_map(|key| key.counterexample).min_by_key(|c| c.ops.len());
    match smallest {
        Some(counterexample) => result.with_counterexample(counterexample),
        None => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirm;
    use crate::history::{Event, EventKind, Function, Value};

    /// On each of `keys` keys two processes overlap for some operations; on key `wrong` one read is stale.
    fn history(keys: u64, wrong: Option<u64>) -> History {
        let event = |process, kind, f, key, value| Event::new(process, kind, f, key, value, 0);
        let mut events = Vec::new();
        for key in 0..keys {
            for round in 0..4 {
                let written = Value::One(i64::from(round % 3));
                let read = if wrong == Some(key) && round == 3 { Value::One(1) } else { written.clone() };
                events.push(event(key, EventKind::Invoke, Function::WRITE, key, written.clone()));
                events.push(event(key, EventKind::Ok, Function::WRITE, key, written));
                events.push(event(key, EventKind::Invoke, Function::READ, key, Value::Null));
                events.push(event(key, EventKind::Ok, Function::READ, key, read));
            }
        }
        for (at, event) in (0..).zip(&mut events) {
            (event.index, event.time) = (at, Some(at));
        }
        History::from_events(events).unwrap()
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        for wrong in [None, Some(3)] {
            let history = history(9, wrong);
            let alone = judge(&history, &Budget::default(), 1, true);
            for threads in [0, 2, 3, 50] {
                assert_eq!(judge(&history, &Budget::default(), threads, true), alone);
            }
            assert_eq!(alone.result.verdict, if wrong.is_none() { Verdict::Valid } else { Verdict::Invalid });
        }
    }

    #[test]
    fn a_valid_verdict_has_an_order_of_every_key_that_the_definition_confirms() {
        let history = history(4, None);
        let judged = judge(&history, &Budget::default(), 2, true);
        assert_eq!(judged.witness.len(), 4);
        for order in &judged.witness {
            let ops = history.ops().iter().filter(|op| Some(op.key) == order.part);
            assert_eq!(confirm::register(ops, &order.order), Ok(()));
        }
        assert_eq!(judge(&history, &Budget::default(), 2, false).witness, []);
    }
}
