//! Does somebody hold again when everything is healed? The check `leadership`, of workloads whose clients are
//! applications.
//!
//! Whoever held and was stopped, cut off or killed holds until its session is over, and no longer: then the
//! next in line must hold. Behind a healing that takes the time-out of a session, which counts anew under a
//! new leader, and what members and a busy machine take.
//!
//! It accuses, so it asks for more than an absence: a calm that is long enough, clients that asked for what
//! nobody held all through it, and no stall of the machine. Shorter calms are counted and judged by nobody.

use checker::history::{Function, History, Op, Outcome};
use checker::verdict::{CheckResult, Verdict};
use serde_json::json;

use super::promises::MINIMUM_EACH;
use super::{Case, Check};
use crate::numbers::{duration, moment, ns_to_ms, plural};
use crate::observed::Observed;
use crate::results::FaultRecord;
use crate::stalls;

/// What it may take beyond the time-out of a session.
const BOUND_NS: u64 = 3_000_000_000;

/// The check.
pub(super) const CHECK: Check = Check { about: "somebody holds again", judge };

fn judge(case: &Case<'_>) -> Vec<CheckResult> {
    let Some(session_ms) = case.run.session_ms else { return Vec::new() };
    let history = &case.loaded.history;
    let patience = session_ms.saturating_mul(1_000_000).saturating_add(BOUND_NS);
    let found = check(history, case.faults, case.observed, patience);
    found.map(|found| case.loaded.extent.allow(found)).into_iter().collect()
}

/// From the healing of each fault that began a calm to the end of that calm.
fn calms<'a>(faults: &'a [FaultRecord], observed: &Observed) -> Vec<(&'a FaultRecord, u64, u64)> {
    let end = observed.workload_to_ns;
    let begins: Vec<u64> =
        faults.iter().filter(|fault| fault.injected_ns.is_some()).map(|fault| fault.asked_ns).collect();
    let at_work = |at: u64| {
        let gone = |fault: &FaultRecord| fault.verified_healed_ns.unwrap_or(u64::MAX);
        faults.iter().any(|fault| fault.injected_ns.is_some_and(|from| from <= at) && gone(fault) > at)
    };
    let calm = |fault: &'a FaultRecord| {
        let from = fault.verified_healed_ns.filter(|from| !at_work(*from))?;
        let to = begins.iter().copied().filter(|begin| *begin >= from).min().unwrap_or(end).min(end);
        (to > from).then_some((fault, from, to))
    };
    faults.iter().filter_map(calm).collect()
}

/// Whether an operation is about something that is held.
pub(super) fn is_of_a_holder(op: &Op) -> bool {
    matches!(op.f, Function::ACQUIRE | Function::STORE | Function::RELEASE)
}

fn check(
    history: &History,
    faults: &[FaultRecord],
    observed: &Observed,
    patience: u64,
) -> Option<CheckResult> {
    const NAME: &str = "leadership";
    let calms = calms(faults, observed);
    if calms.is_empty() {
        return None;
    }
    let long = |(_, from, to): &&(&FaultRecord, u64, u64)| to - from >= patience;
    let judged: Vec<_> = calms
        .iter()
        .filter(long)
        .filter(|(_, from, _)| !stalls::within(observed, *from, from + patience))
        .collect();
    let mut findings = Vec::new();
    for (fault, from, _) in &judged {
        let until = from + patience;
        for key in history.keys() {
            let ops = || history.ops().iter().filter(|op| op.key == key && is_of_a_holder(op));
            let within = |at: u64| (*from..=until).contains(&at);
            let held = ops().any(|op| op.outcome == Outcome::Ok && op.complete_ns.is_some_and(within));
            let asked = ops().filter(|op| within(op.invoke_ns) && op.complete_ns.is_some_and(within)).count();
            if !held && u64::try_from(asked).unwrap_or(u64::MAX) >= MINIMUM_EACH {
                findings.push(format!(
                    "nobody held lock {key} until {} s, though {} ({}) was gone at {} s and {asked} asked",
                    moment(until),
                    fault.id,
                    fault.kind,
                    moment(*from)
                ));
            }
        }
    }
    let evidence = json!({"calms": calms.len(), "long_enough": judged.len(), "findings": findings});
    let calms = plural(u64::try_from(calms.len()).unwrap_or(u64::MAX), "healing");
    if judged.is_empty() {
        let words = format!(
            "no calm behind {calms} was long enough to be judged, which takes {}: lengthen --interval",
            duration(ns_to_ms(patience))
        );
        return Some(CheckResult::nothing_judged(NAME, words).with_evidence(evidence));
    }
    let (verdict, summary) = match findings.as_slice() {
        [] => {
            let judged = judged.len();
            (Verdict::Valid, format!("somebody held again behind {calms} ({judged} had a long calm)"))
        }
        [only] => (Verdict::Invalid, only.clone()),
        [first, rest @ ..] => (Verdict::Invalid, format!("{first} (and {} more)", rest.len())),
    };
    Some(CheckResult::new(NAME, verdict, summary).with_evidence(evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::{Event, EventKind, Value};

    const S: u64 = 1_000_000_000;

    fn fault(from: u64, gone: u64) -> FaultRecord {
        FaultRecord {
            id: "F1".to_owned(),
            kind: "kill-holder".to_owned(),
            asked_ns: from * S,
            injected_ns: Some(from * S),
            verified_healed_ns: Some(gone * S),
            ..FaultRecord::default()
        }
    }

    /// Acquires, one each half second from the first moment to the second, that all end so.
    fn acquires(from: u64, to: u64, kind: EventKind) -> Vec<Event> {
        operations(Function::ACQUIRE, 0, (from, to), kind)
    }

    fn operations(f: Function, key: u64, (from, to): (u64, u64), kind: EventKind) -> Vec<Event> {
        (from * 2..to * 2)
            .flat_map(|half| {
                let place = if kind == EventKind::Ok { 1000 } else { 0 };
                let process = place + half;
                let line = |kind, value, at| Event::new(process, kind, f, key, value, at);
                let told = if kind == EventKind::Ok { Value::List([1, 2, 3].into()) } else { Value::Null };
                [line(EventKind::Invoke, Value::Null, half * S / 2), line(kind, told, half * S / 2 + S / 4)]
            })
            .collect()
    }

    fn verdict(events: Vec<Event>, faults: &[FaultRecord], end: u64) -> Option<Verdict> {
        let observed = Observed { workload_to_ns: end * S, ..Observed::default() };
        let history = History::from_events(events).expect("a history");
        check(&history, faults, &observed, 7 * S).map(|found| found.verdict)
    }

    #[test]
    fn a_lock_that_nobody_gets_though_all_is_well_and_many_ask_accuses() {
        let (failing, one) = (acquires(10, 20, EventKind::Fail), fault(2, 10));
        assert_eq!(verdict(failing.clone(), std::slice::from_ref(&one), 20), Some(Verdict::Invalid));
        let held = [acquires(10, 16, EventKind::Fail), acquires(16, 20, EventKind::Ok)].concat();
        assert_eq!(verdict(held, std::slice::from_ref(&one), 20), Some(Verdict::Valid), "in time");
        assert_eq!(
            verdict(failing.clone(), std::slice::from_ref(&one), 16),
            Some(Verdict::Valid),
            "a short calm"
        );
        assert_eq!(
            verdict(failing.clone(), &[one.clone(), fault(12, 19)], 20),
            Some(Verdict::Valid),
            "another"
        );
        assert_eq!(verdict(acquires(10, 11, EventKind::Fail), &[one], 20), Some(Verdict::Valid), "few ask");
        assert_eq!(verdict(failing, &[], 20), None);
    }

    #[test]
    fn only_who_holds_that_lock_and_in_time_acquits() {
        let held = |key, span| operations(Function::ACQUIRE, key, span, EventKind::Ok);
        let cases = [
            ("in time", 18, held(0, (12, 13))),
            ("too late", 18, held(0, (18, 20))),
            ("before the fault was gone", 20, held(0, (4, 9))),
            ("another lock", 20, held(1, (10, 20))),
            ("a read", 20, operations(Function::READ, 0, (10, 20), EventKind::Ok)),
        ];
        let accused = cases.into_iter().filter_map(|(why, until, beside)| {
            let mut events = [acquires(10, until, EventKind::Fail), beside].concat();
            events.sort_by_key(|event| event.time);
            (verdict(events, &[fault(2, 10)], 20) == Some(Verdict::Invalid)).then_some(why)
        });
        let accused: Vec<&str> = accused.collect();
        assert_eq!(accused, ["too late", "before the fault was gone", "another lock", "a read"]);
    }
}
