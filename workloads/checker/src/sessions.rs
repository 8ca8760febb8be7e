//! What every session is promised, whatever the system promises between sessions.
//!
//! Within one session time does not run backwards: the zxid in the header of a reply is never lower than in a
//! reply that the session had before it asked, and a key never shows an older state than the session has seen
//! or made (which includes reading one's own writes). A session survives its client's moves between members,
//! so this is checked across members.
//!
//! Only operations of which one returned before the other was called are compared: those in flight together
//! may answer in any order as far as this check knows.

use std::collections::BTreeMap;

use serde_json::json;

use crate::figures::count;
use crate::history::{History, Op, Outcome, describe};
use crate::orders::Orders;
use crate::verdict::{CheckResult, Verdict};
use crate::versions::{after_newest, counterexample};

/// The name of the check.
pub const NAME: &str = "session-order";

/// Judges every session, in ZooKeeper's words.
#[must_use]
pub fn check(history: &History) -> CheckResult {
    check_in(history, &Orders::default())
}

/// Judges every session, in the words that its system has for its orders.
#[must_use]
pub fn check_in(history: &History, orders: &Orders) -> CheckResult {
    let mut sessions: BTreeMap<u64, Vec<&Op>> = BTreeMap::new();
    let answered = |op: &&Op| op.outcome != Outcome::Info;
    for op in history.ops().iter().filter(answered) {
        if let Some(session) = op.session {
            sessions.entry(session).or_default().push(op);
        }
    }
    let mut compared = 0;
    for (&session, ops) in &sessions {
        match judge_session(ops, orders) {
            Ok(pairs) => compared += pairs,
            Err((why, culprits)) => {
                let summary = format!("session {session:#x} was shown the past");
                return CheckResult::new(NAME, Verdict::Invalid, summary)
                    .with_evidence(json!({"session": format!("{session:#x}"), "operations": ops.len()}))
                    .with_counterexample(counterexample(why, &culprits, ops.len()));
            }
        }
    }
    if compared == 0 {
        let summary = match sessions.len() {
            0 => "no operation names its session, so there was nothing to compare",
            _ => "no two replies of a session tell their places in an order, so there was nothing to compare",
        };
        return CheckResult::nothing_judged(NAME, summary);
    }
    let summary = match sessions.len() {
        1 => format!("the one session was not shown the past in {} comparisons", count(compared)),
        number => {
            format!(
                "none of {} sessions was shown the past in {} comparisons",
                count(number),
                count(compared)
            )
        }
    };
    CheckResult::new(NAME, Verdict::Valid, summary)
        .with_evidence(json!({"sessions": sessions.len(), "comparisons": compared}))
}

type Violation<'a> = (String, Vec<&'a Op>);

fn judge_session<'a>(ops: &[&'a Op], orders: &Orders) -> Result<usize, Violation<'a>> {
    let place = |value: i64| orders.place(value.unsigned_abs());
    let mut compared = compare(ops, (&orders.seen, &place), zxid, false)?;
    let mut keys: BTreeMap<u64, Vec<&Op>> = BTreeMap::new();
    for &op in ops.iter().filter(|op| op.outcome == Outcome::Ok) {
        keys.entry(op.key).or_default().push(op);
    }
    for ops in keys.values() {
        compared += compare(ops, ("version", &|value| value.to_string()), |op| op.version, true)?;
        compared += compare(ops, (&orders.changed, &place), mzxid, true)?;
    }
    Ok(compared)
}

/// Zxids fit 63 bits until epoch 2^31; what does not fit is left out rather than misread.
fn zxid(op: &Op) -> Option<i64> {
    op.zxid.and_then(|zxid| i64::try_from(zxid).ok())
}

fn mzxid(op: &Op) -> Option<i64> {
    op.mzxid.and_then(|zxid| i64::try_from(zxid).ok())
}

/// No operation shows less than one that had returned before its call. With `changes_advance`, a change shows
/// more.
fn compare<'a>(
    ops: &[&'a Op],
    (what, show): (&str, &dyn Fn(i64) -> String),
    measure: impl Fn(&Op) -> Option<i64>,
    changes_advance: bool,
) -> Result<usize, Violation<'a>> {
    let pairs = after_newest(ops, &measure);
    for &(earlier, op) in &pairs {
        let (Some(before), Some(now)) = (measure(earlier), measure(op)) else { continue };
        let repeated = changes_advance && now == before && op.is_change();
        if now < before || repeated {
            let why = format!(
                "{} showed {what} {}, and afterwards, in the same session, {} showed {what} {}",
                describe(earlier),
                show(before),
                describe(op),
                show(now)
            );
            return Err((why, vec![earlier, op]));
        }
    }
    Ok(pairs.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Function, Value};

    /// Reads, one after the other: (session, zxid, version).
    fn reads(ops: &[(u64, u64, i64)]) -> History {
        let mut events = Vec::new();
        for (&(session, zxid, version), at) in ops.iter().zip(0_u64..) {
            events.push(Event::new(at, EventKind::Invoke, Function::READ, 0, Value::Null, at * 10));
            let mut ok = Event::new(at, EventKind::Ok, Function::READ, 0, Value::One(version), at * 10 + 5);
            (ok.session, ok.zxid, ok.version) = (Some(session), Some(zxid), Some(version));
            events.push(ok);
        }
        History::from_events(events).unwrap()
    }

    #[test]
    fn what_is_said_uses_the_words_of_the_system() {
        let etcd =
            Orders { seen: "revision".to_owned(), changed: "mod_revision".to_owned(), hexadecimal: false };
        let bad = check_in(&reads(&[(1, 35, 1), (1, 8, 1)]), &etcd);
        assert!(bad.counterexample.unwrap().sentence.contains("showed revision 35, and afterwards"));
    }

    #[test]
    fn a_session_whose_zxid_goes_back_was_shown_the_past() {
        assert_eq!(check(&reads(&[(1, 5, 1), (1, 5, 1), (1, 7, 2)])).verdict, Verdict::Valid);
        let bad = check(&reads(&[(1, 5, 1), (2, 9, 3), (1, 4, 1)]));
        assert_eq!(bad.verdict, Verdict::Invalid);
        assert!(bad.counterexample.unwrap().sentence.contains("showed zxid 0x5, and afterwards"));
    }

    #[test]
    fn different_sessions_may_see_different_times() {
        assert_eq!(check(&reads(&[(1, 9, 3), (2, 5, 1)])).verdict, Verdict::Valid);
    }

    #[test]
    fn an_older_version_in_the_same_session_is_a_violation_even_at_a_later_zxid() {
        assert_eq!(check(&reads(&[(1, 5, 2), (1, 6, 1)])).verdict, Verdict::Invalid);
    }

    #[test]
    fn operations_in_flight_together_are_not_compared() {
        let mut events = Vec::new();
        for process in [1, 2] {
            events.push(Event::new(process, EventKind::Invoke, Function::READ, 0, Value::Null, process));
        }
        for (process, zxid) in [(1, 9), (2, 4)] {
            let mut ok = Event::new(process, EventKind::Ok, Function::READ, 0, Value::One(1), 10 + process);
            (ok.session, ok.zxid) = (Some(7), Some(zxid));
            events.push(ok);
        }
        assert_eq!(check(&History::from_events(events).unwrap()).verdict, Verdict::Valid);
    }

    #[test]
    fn a_refusal_shows_what_its_session_saw_and_a_change_advances() {
        // A read, and behind it a compare-and-set that ended so.
        let cas = |kind, zxid: Option<u64>, version| {
            let value = Value::Pair(Some(1), 2);
            let mut events = vec![
                Event::new(1, EventKind::Invoke, Function::READ, 0, Value::Null, 0),
                Event::new(1, EventKind::Ok, Function::READ, 0, Value::One(1), 5),
                Event::new(1, EventKind::Invoke, Function::CAS, 0, value.clone(), 10),
                Event::new(1, kind, Function::CAS, 0, value, 15),
            ];
            (events[1].session, events[1].zxid, events[1].version) = (Some(7), Some(9), Some(3));
            (events[3].session, events[3].zxid, events[3].version) = (Some(7), zxid, version);
            check(&History::from_events(events).unwrap()).verdict
        };
        assert_eq!(cas(EventKind::Fail, Some(9), None), Verdict::Valid);
        assert_eq!(cas(EventKind::Fail, Some(8), None), Verdict::Invalid, "it was refused in the past");
        assert_eq!(cas(EventKind::Ok, Some(10), Some(4)), Verdict::Valid);
        assert_eq!(cas(EventKind::Ok, Some(10), Some(3)), Verdict::Invalid, "the same version again");
        assert_eq!(cas(EventKind::Fail, Some(10), Some(3)), Verdict::Valid, "a refusal changes nothing");
    }
}
