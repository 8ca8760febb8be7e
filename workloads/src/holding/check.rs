//! The checks of what is held: functions of the history, and of last reads.
//!
//! All moments that holders tell are on one clock with the stamps of the history, because applications run
//! beside the bench and their monotonic clock is its own. So they are compared as they are.

use checker::figures::count;
use checker::history::{Op, OpKind, Outcome, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use serde_json::json;

use crate::case::Case;
use crate::terms::{Held, Term, by_key, is_stale};

/// What the end of a silent session may take beyond its time-out. It is generous, because it accuses.
const EXPIRY_BOUND_NS: u64 = 3_000_000_000;
/// The longest time-out of a session of these workloads.
const LONGEST_SESSION_NS: u64 = 4_000_000_000;

/// What was found, in a sentence, with the operations that show it.
type Finding<'a> = (String, Vec<&'a Op>);

/// Looks at what is held under a key.
type Look = for<'a> fn(u64, &Held<'a>) -> Option<Finding<'a>>;

/// A check of each key: the first finding convicts.
fn each_key(case: &Case<'_>, name: &str, look: Look, sound: impl FnOnce(u64, u64) -> String) -> CheckResult {
    let held = by_key(case.history);
    let terms: u64 = held.values().map(|held| wide(held.terms.len())).sum();
    let writes: u64 = held.values().map(|held| wide(held.writes.len())).sum();
    let evidence = json!({"terms": terms, "writes": writes});
    let found: Vec<Finding<'_>> = held.iter().filter_map(|(key, held)| look(*key, held)).collect();
    if terms == 0 {
        let words = "nothing was held, so nothing was tested";
        return CheckResult::new(name, Verdict::Unknown, words).with_evidence(evidence);
    }
    let Some((sentence, ops)) = found.first() else {
        return CheckResult::new(name, Verdict::Valid, sound(terms, writes)).with_evidence(evidence);
    };
    let words = match found.len() {
        1 => sentence.clone(),
        more => format!("{sentence} (and of {} more keys)", more - 1),
    };
    CheckResult::new(name, Verdict::Invalid, words)
        .with_evidence(evidence)
        .with_counterexample(counterexample(sentence.clone(), ops, case.history.ops().len()))
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Nanoseconds as seconds, for a sentence.
fn seconds(ns: u64) -> String {
    let tenths_of_ms = ns / 100_000;
    format!("{}.{:04} s", tenths_of_ms / 10_000, tenths_of_ms % 10_000)
}

/// The check `tokens`: a token is given once, and whoever holds later has a larger one.
pub(super) fn tokens(case: &Case<'_>) -> CheckResult {
    each_key(case, "tokens", not_grown, |terms, _| {
        format!("each of {} tokens was given once, and they grew", count(terms))
    })
}

/// A token that is not larger than the one before.
fn not_grown<'a>(_: u64, held: &Held<'a>) -> Option<Finding<'a>> {
    let mut pairs = held.terms.windows(2).map(|pair| (pair[0], pair[1]));
    let (one, next) = pairs.find(|(one, next)| one.token >= next.token)?;
    let what = if one.token == next.token {
        format!("token {} was given twice", one.token)
    } else {
        format!("token {} was given after token {}", next.token, one.token)
    };
    let sentence = format!("{what}: {}, and then {}", describe(one.acquired), describe(next.acquired));
    Some((sentence, vec![one.acquired, next.acquired]))
}

/// The check `exclusion`: two never hold at the same moment, and nobody writes that is not certain any more.
pub(super) fn exclusion(case: &Case<'_>) -> CheckResult {
    each_key(case, "exclusion", not_alone, |terms, writes| {
        format!(
            "none of {} terms overlapped another, and each of {} writes came while its holder was certain",
            count(terms),
            count(writes)
        )
    })
}

fn not_alone<'a>(key: u64, held: &Held<'a>) -> Option<Finding<'a>> {
    overlap(key, held).or_else(|| late_write(held))
}

/// Two terms that overlap, as far as both holders were certain.
fn overlap<'a>(key: u64, held: &Held<'a>) -> Option<Finding<'a>> {
    let mut last: Option<&Term<'a>> = None;
    for term in &held.terms {
        if let Some(before) = last
            && before.token != term.token
            && before.end().min(term.end()) > term.since
        {
            let sentence = format!(
                "two held lock {key} at once: one by token {} until {}, and another one by token {} since {}",
                before.token,
                seconds(before.end()),
                term.token,
                seconds(term.since)
            );
            let mut ops = vec![before.acquired, term.acquired];
            ops.extend(before.shown.into_iter().chain(term.shown));
            ops.sort_by_key(|op| op.call);
            return Some((sentence, ops));
        }
        if last.is_none_or(|before| before.end() < term.end()) {
            last = Some(term);
        }
    }
    None
}

/// A write by a holder that was not certain any more when it looked.
fn late_write<'a>(held: &Held<'a>) -> Option<Finding<'a>> {
    let write = held.writes.iter().find(|write| write.looked >= write.until)?;
    let sentence = format!(
        "{}, though its holder was certain until {} only and wrote at {}",
        describe(write.op),
        seconds(write.until),
        seconds(write.looked)
    );
    Some((sentence, vec![write.op]))
}

/// The check `guarded-store`: no write by a smaller token is taken after one by a larger token.
pub(super) fn guarded_store(case: &Case<'_>) -> CheckResult {
    let refused = wide(case.history.ops().iter().filter(|op| is_stale(op)).count());
    let mut result = each_key(case, "guarded-store", stale_write, |_, writes| {
        let stale = match refused {
            0 => String::new(),
            1 => "; it refused one stale write".to_owned(),
            many => format!("; it refused {} stale writes", count(many)),
        };
        format!("the store took {} writes in the order of their tokens{stale}", count(writes))
    });
    result.evidence["refused"] = json!(refused);
    result
}

/// A write that the store took after one by a larger token.
fn stale_write<'a>(_: u64, held: &Held<'a>) -> Option<Finding<'a>> {
    let mut pairs = held.writes.windows(2).map(|pair| (pair[0], pair[1]));
    let (one, next) = pairs.find(|(one, next)| one.token > next.token)?;
    let sentence = format!(
        "the store took a stale write: {}, after a write by token {}: {}",
        describe(next.op),
        one.token,
        describe(one.op)
    );
    Some((sentence, vec![one.op, next.op]))
}

/// The check `left-behind`: nothing is left of whoever released or is gone. What the end of a session may
/// take is waited for first, from when on everything was well.
pub(super) fn left_behind(case: &Case<'_>) -> CheckResult {
    const NAME: &str = "left-behind";
    let left: Vec<String> = case
        .beside
        .final_states
        .iter()
        .filter_map(|state| {
            let number = state.list.as_ref().map(Vec::len).filter(|number| *number > 0)?;
            Some(format!("{number} in the line of lock {} at member {}", state.key, state.member))
        })
        .collect();
    let reads = wide(case.beside.final_states.len());
    if left.is_empty() {
        let (verdict, words) = match reads {
            0 => (Verdict::Unknown, "no line was read at the end, so nothing was tested".to_owned()),
            _ => (Verdict::Valid, format!("nobody is left in any line, in {} last reads", count(reads))),
        };
        return CheckResult::new(NAME, verdict, words);
    }
    let last_read = case
        .history
        .ops()
        .iter()
        .filter(|op| matches!(op.kind(), OpKind::Read { .. }) && op.outcome == Outcome::Ok)
        .map(|op| op.invoke_ns)
        .max();
    let last_active = case
        .history
        .ops()
        .iter()
        .filter(|op| !matches!(op.kind(), OpKind::Read { .. }))
        .filter_map(|op| op.complete_ns)
        .max();
    let due = case
        .beside
        .well_since_ns
        .max(last_active)
        .map(|since| since.saturating_add(LONGEST_SESSION_NS).saturating_add(EXPIRY_BOUND_NS));
    let in_time = case.beside.well_since_ns.is_some() && last_read > due;
    let verdict = if in_time { Verdict::Invalid } else { Verdict::Unknown };
    let words = format!("somebody is left who released or is gone: {}", left.join(", "));
    CheckResult::new(NAME, verdict, words).with_evidence(json!({"left": left}))
}
