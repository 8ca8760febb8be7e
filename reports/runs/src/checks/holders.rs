//! Did holders that a fault hit act afterwards? The check `holders`, of workloads whose clients hold
//! something.
//!
//! A holder that is stopped for longer than its lease shows what such a lock is worth when it goes on and
//! writes. One that has nothing left to write shows nothing, and a run of such faults says nothing about
//! exclusion. So the load has each holder that was hit write once more before it releases, and this check
//! counts those that did, each kind of fault by itself.
//!
//! A write counts that came when another holder had come, or when the fault was being healed. One before that
//! is a write under a lease that still ran. Holders that say until when they are certain are judged by what
//! they say, and nothing is asked of them. Nor of those that the fault killed: they can't act any more.
//!
//! It can't convict: where no holder acted the verdict is unknown.

use std::collections::BTreeMap;

use checker::history::{History, NOT_SENT, Op, OpKind, Outcome};
use checker::verdict::{CheckResult, Verdict};
use serde_json::json;
use workloads::terms::{Held, by_key};

use super::leadership::is_of_a_holder;
use super::{Case, Check};
use crate::numbers::plural;
use crate::results::FaultRecord;

/// The check.
pub(super) const CHECK: Check = Check {
    about: "holders that were hit act afterwards",
    judge: |case: &Case<'_>| {
        let found = check(&case.loaded.history, case.faults);
        found.map(|found| case.loaded.extent.allow(found)).into_iter().collect()
    },
};

/// What became of the holders that one kind of fault hit.
#[derive(Clone, Copy, Debug, Default)]
struct Hit {
    /// Those that answered something afterwards.
    went_on: u64,
    /// Those of them that wrote.
    acted: u64,
}

fn check(history: &History, faults: &[FaultRecord]) -> Option<CheckResult> {
    let held = by_key(history);
    let mut kinds: BTreeMap<&str, Hit> = BTreeMap::new();
    for fault in faults {
        let Some(acted) = acted(history, &held, fault) else { continue };
        let hit = kinds.entry(&fault.kind).or_default();
        hit.went_on += 1;
        hit.acted += u64::from(acted);
    }
    if kinds.is_empty() {
        return None;
    }
    let evidence: BTreeMap<&str, serde_json::Value> = kinds
        .iter()
        .map(|(kind, hit)| (*kind, json!({"went_on": hit.went_on, "acted": hit.acted})))
        .collect();
    let untried = kinds.iter().find(|(_, hit)| hit.acted == 0);
    let (verdict, words) = match untried {
        Some((kind, hit)) => {
            let words = format!(
                "of {} that {kind} hit none wrote afterwards, so exclusion was not tried: let the run last \
                 longer",
                plural(hit.went_on, "holder")
            );
            (Verdict::Unknown, words)
        }
        None => {
            let went_on = kinds.values().map(|hit| hit.went_on).sum();
            let acted: u64 = kinds.values().map(|hit| hit.acted).sum();
            let words = format!("of {} that went on behind a fault {acted} wrote", plural(went_on, "holder"));
            (Verdict::Valid, words)
        }
    };
    Some(CheckResult::new("holders", verdict, words).with_evidence(json!(evidence)))
}

/// Whether a holder that went on behind a fault wrote then. None where the fault hit no holder, where that
/// said until when it was certain, and where it did not go on.
fn acted(history: &History, held: &BTreeMap<u64, Held<'_>>, fault: &FaultRecord) -> Option<bool> {
    let (holder, injected_ns, heal_ns) = (fault.holder?, fault.injected_ns?, fault.heal_asked_ns?);
    let token = i64::try_from(holder.token).ok()?;
    let held = held.get(&holder.key)?;
    let term = held.terms.iter().find(|term| term.token == token && !term.tells_its_end())?;
    let is_its_own = |op: &&Op| op.session == Some(holder.application) && is_of_a_holder(op);
    let mut own = history.ops().iter().filter(is_its_own);
    // An answer to what was asked before may be one that a killed process gave before its end.
    own.clone().find(|op| is_answered(op) && op.invoke_ns > injected_ns)?;
    // From here on it acts under a lease that may be over.
    let next = held.terms.iter().map(|term| term.since).find(|since| *since > term.since.max(injected_ns));
    let from = next.unwrap_or(heal_ns).min(heal_ns);
    Some(own.any(|op| is_answered(op) && writes(op, holder.key, token) && moment(op) >= Some(from)))
}

/// Whether the application itself answered.
fn is_answered(op: &Op) -> bool {
    match op.outcome {
        Outcome::Ok => true,
        Outcome::Fail => !op.error.as_deref().is_some_and(|error| error.starts_with(NOT_SENT)),
        _ => false,
    }
}

fn writes(op: &Op, key: u64, token: i64) -> bool {
    op.key == key && matches!(op.kind(), OpKind::Store { token: by, .. } if by == token)
}

/// When it acted: by the store's word, where that took it.
fn moment(op: &Op) -> Option<u64> {
    let stored = op.list().and_then(|told| told.get(4)).map(|at| at.unsigned_abs());
    stored.or(op.complete_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Holder;
    use checker::history::{Event, EventKind, Function, Value};
    use workloads::STALE_TOKEN;

    /// Application 1 holds by token 7 from 10 to whenever, is hit at 20 and healed at 60; application 2 holds
    /// by token 9 from 50 on.
    fn fault(kind: &str) -> FaultRecord {
        FaultRecord {
            id: "F1".to_owned(),
            kind: kind.to_owned(),
            injected_ns: Some(20),
            heal_asked_ns: Some(60),
            holder: Some(Holder { application: 1, key: 0, token: 7 }),
            ..FaultRecord::default()
        }
    }

    fn ended(
        who: u64,
        kind: EventKind,
        f: Function,
        asked: Value,
        told: Value,
        at: (u64, u64),
    ) -> [Event; 2] {
        let mut done = Event::new(who, kind, f, 0, told, at.1);
        done.session = Some(who);
        if kind == EventKind::Fail {
            done.error = Some(STALE_TOKEN.into());
        }
        [Event::new(who, EventKind::Invoke, f, 0, asked, at.0), done]
    }

    fn acquired(who: u64, token: i64, since: u64, until: u64) -> [Event; 2] {
        let told = [token, since.cast_signed(), until.cast_signed()];
        let at = (since, since + 1);
        ended(who, EventKind::Ok, Function::ACQUIRE, Value::Null, Value::List(told.into()), at)
    }

    fn stored(at: (u64, u64)) -> [Event; 2] {
        let stored = at.1.cast_signed();
        let told = Value::List([7, 1, stored, stored + 1, stored].into());
        ended(1, EventKind::Ok, Function::STORE, Value::Pair(Some(7), 1), told, at)
    }

    fn refused(at: (u64, u64)) -> [Event; 2] {
        ended(1, EventKind::Fail, Function::STORE, Value::Pair(Some(7), 1), Value::Pair(Some(7), 1), at)
    }

    fn released(at: (u64, u64)) -> [Event; 2] {
        ended(1, EventKind::Ok, Function::RELEASE, Value::One(7), Value::One(7), at)
    }

    fn verdict(events: &[[Event; 2]], faults: &[FaultRecord]) -> Option<Verdict> {
        let mut events = events.concat();
        events.sort_by_key(|event| event.time);
        check(&History::from_events(events).expect("a history"), faults).map(|found| found.verdict)
    }

    #[test]
    fn a_holder_that_writes_behind_a_fault_was_tried() {
        let terms = [acquired(1, 7, 10, 10), acquired(2, 9, 50, 50)];
        let last = released((80, 90));
        let with = |op| verdict(&[terms[0].clone(), terms[1].clone(), op, last.clone()], &[fault("pause")]);
        assert_eq!(with(refused((15, 70))), Some(Verdict::Valid), "refused");
        assert_eq!(with(stored((15, 70))), Some(Verdict::Valid), "taken");
        assert_eq!(with(stored((40, 55))), Some(Verdict::Valid), "while another one held");
        assert_eq!(with(stored((15, 40))), Some(Verdict::Unknown), "its lease ran on");
        let nothing = verdict(&[terms[0].clone(), terms[1].clone(), last.clone()], &[fault("pause")]);
        assert_eq!(nothing, Some(Verdict::Unknown), "it had nothing to write");
    }

    #[test]
    fn a_lock_that_outlives_the_fault_is_tried_by_a_write_behind_it() {
        let alone = acquired(1, 7, 10, 10);
        let with = |op| verdict(&[alone.clone(), op, released((80, 90))], &[fault("pause")]);
        assert_eq!(with(stored((15, 59))), Some(Verdict::Unknown));
        assert_eq!(with(stored((15, 60))), Some(Verdict::Valid));
    }

    #[test]
    fn only_a_write_of_the_holder_that_the_store_was_asked_for_tries_anything() {
        let unsent = || {
            let mut write = refused((15, 70));
            write[1].error = Some(format!("{NOT_SENT}: closed").into());
            write
        };
        let by = |who, token| {
            let value = || Value::Pair(Some(token), 1);
            ended(who, EventKind::Fail, Function::STORE, value(), value(), (55, 70))
        };
        for (why, write, verdict) in [
            ("its own", by(1, 7), Verdict::Valid),
            ("never sent", unsent(), Verdict::Unknown),
            ("the next holder's", by(2, 9), Verdict::Unknown),
            ("by another token", by(1, 5), Verdict::Unknown),
        ] {
            let events = [acquired(1, 7, 10, 10), acquired(2, 9, 50, 50), write, released((80, 90))];
            assert_eq!(self::verdict(&events, &[fault("pause")]), Some(verdict), "{why}");
        }
        let late = [acquired(1, 7, 10, 10), acquired(2, 9, 70, 70), stored((15, 65)), released((80, 90))];
        assert_eq!(
            verdict(&late, &[fault("pause")]),
            Some(Verdict::Valid),
            "the next came after the healing"
        );
    }

    #[test]
    fn nothing_is_asked_of_the_dead_and_of_those_that_mind_their_clocks() {
        let next = acquired(2, 9, 50, 50);
        let killed = [acquired(1, 7, 10, 10), next.clone(), stored((15, 21))];
        assert_eq!(verdict(&killed, &[fault("kill")]), None, "dead, and its last answer was read late");
        let minds = [acquired(1, 7, 10, 45), next, released((15, 70))];
        assert_eq!(verdict(&minds, &[fault("pause")]), None, "it says until when");
        assert_eq!(verdict(&minds, &[]), None);
        let read = ended(1, EventKind::Ok, Function::READ, Value::Null, Value::List([].into()), (80, 90));
        let dead = [acquired(1, 7, 10, 10), read];
        assert_eq!(verdict(&dead, &[fault("kill")]), None, "a last read is of no application");
    }

    #[test]
    fn each_kind_of_fault_must_have_tried_one() {
        let events = [acquired(1, 7, 10, 10), acquired(2, 9, 50, 50), refused((15, 70)), released((80, 90))];
        assert_eq!(verdict(&events, &[fault("pause"), fault("pause")]), Some(Verdict::Valid));
        let other = FaultRecord { injected_ns: Some(75), heal_asked_ns: Some(85), ..fault("cut") };
        assert_eq!(verdict(&events, &[fault("pause"), other]), Some(Verdict::Unknown));
    }
}
