//! A violation in words of promises: which promise was broken, and the shortest fact that shows it.
//!
//! Each check says exactly what it found, with processes, members, versions and moments, because that is what
//! one needs to follow it. The headline is for whoever sees the run for the first time: "a stale read: key 0
//! read 41 after 42 had been acknowledged". It is drawn from the check that convicts in the simplest way, and
//! the page draws that one's counterexample first. Nothing is judged here: where the operations do not have
//! the shape of a known story, the check's own sentence is used.

use checker::history::{Datum, Function, Outcome};
use checker::txn::Condition as Isolation;
use checker::verdict::{CheckResult, Counterexample, OpView, Verdict};
use serde_json::Value;

use crate::numbers::count;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which promise: `a stale read`.
    pub promise: String,
    /// The fact that shows it; none where only the check's own sentence says it.
    pub fact: Option<String>,
}

/// The check that convicts in the simplest way: its place among `checks`, and what it means. One that only
/// counts how many changes are lacking leads no other that knows which operations contradict each other.
pub fn simplest(checks: &[CheckResult]) -> Option<(usize, Broken)> {
    let convicts = |check: &&CheckResult| check.verdict == Verdict::Invalid;
    let knows_which = checks.iter().filter(convicts).any(shows_which);
    checks
        .iter()
        .enumerate()
        .filter(|(_, check)| convicts(check) && !(knows_which && only_counts(check)))
        .map(|(at, check)| (at, broken(check)))
        .min_by_key(|(at, broken)| {
            let found = checks[*at].counterexample.as_ref();
            // A story needs two operations: one alone contradicts something that is not drawn.
            let operations = found.map_or(usize::MAX, |found| found.ops.len());
            (broken.fact.is_none(), operations < 2, operations)
        })
}

/// Whether a check knows only how many changes of a key are lacking, and not which: an operation that it
/// shows made a version that is there.
fn only_counts(check: &CheckResult) -> bool {
    let number = |name: &str| check.evidence.get(name).and_then(Value::as_i64);
    let (Some(version), Some(_)) = (number("version"), number("acknowledged")) else { return false };
    let lacking = |op: &OpView| op.version.is_some_and(|made| made > version);
    let shown = check.counterexample.as_ref().map_or(&[][..], |found| &found.ops);
    check.name == "durability" && number("lost").is_none() && shown.len() < 2 && !shown.iter().any(lacking)
}

/// Whether a check shows operations that contradict each other.
fn shows_which(check: &CheckResult) -> bool {
    check.counterexample.as_ref().is_some_and(|found| found.ops.len() >= 2)
}

/// The promises that the other checks found broken, each once.
pub fn others(checks: &[CheckResult], but: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for check in checks.iter().filter(|check| check.verdict == Verdict::Invalid) {
        let promise = broken(check).promise;
        if promise != but && !found.contains(&promise) {
            found.push(promise);
        }
    }
    found
}

fn broken(check: &CheckResult) -> Broken {
    let story = |promise: &str, fact: String| Broken { promise: promise.to_owned(), fact: Some(fact) };
    let plain = |promise: &str| Broken { promise: promise.to_owned(), fact: None };
    match check.name.as_str() {
        "durability" => lost(check).unwrap_or_else(|| plain("a member does not hold what was acknowledged")),
        "linearizable" | "linearizable-updates" | "version-order" | "session-order" => {
            let found = check.counterexample.as_ref();
            if let Some((promise, fact)) = found.and_then(|found| {
                answer(found).or_else(|| replaced_twice(found)).or_else(|| one_version(found))
            }) {
                return story(promise, fact);
            }
            plain(match check.name.as_str() {
                "version-order" => "versions that contradict each other",
                "session-order" => "a session was shown the past",
                _ => "answers that no order explains",
            })
        }
        "ordered-sequential" | "sequential-order" => plain("answers that no order explains"),
        "session-guarantees"
        | "read-your-writes"
        | "monotonic-reads"
        | "monotonic-writes"
        | "writes-follow-reads" => plain("a session that went back"),
        name if name.parse::<Isolation>().is_ok() => {
            transactions(check).unwrap_or_else(|| plain("transactions that no order explains"))
        }
        "convergence" => story("members that disagree at the end", check.summary.clone()),
        "command" => plain(&check.summary),
        "recovery" => story("a member that does not come back", check.summary.clone()),
        "comes-back" => story("it never came back", check.summary.clone()),
        "progress" => story("a connected quorum that does not go on", check.summary.clone()),
        // These say in their summary which promise it is, and of which object: `set 3: a read was stale`.
        _ => match check.evidence.get("kind").and_then(Value::as_str) {
            Some(kind) => plain(kind),
            None => plain(&check.name),
        },
    }
}

/// The anomaly of transactions that a counterexample shows, by a name that says what it is.
fn transactions(check: &CheckResult) -> Option<Broken> {
    let (anomaly, fact) = check.counterexample.as_ref()?.sentence.split_once(": ")?;
    let promise = match anomaly {
        "G0" => "writes of two transactions that crossed",
        "G1a" => "a read of what was rolled back",
        "G1b" => "a read of a transaction's half",
        "G1c" => "transactions that read each other's writes",
        "dirty-update" => "a commit on top of what was rolled back",
        "duplicate-elements" => "an append that happened twice",
        "garbage-read" => "a read of what nobody appended",
        "incompatible-order" => "reads that no order of one list explains",
        "internal" | "future-read" => "a read that contradicts its own transaction",
        "lost-update" => "a lost update",
        "G-single" => "a read that is old in one part and new in another",
        "G-nonadjacent" => "reads that saw two writes in opposite orders",
        "G2-item" => "write skew",
        "G-single-realtime" => "a stale read",
        _ => "transactions that no order explains",
    };
    Some(Broken { promise: promise.to_owned(), fact: Some(fact.to_owned()) })
}

/// What the final state of a member lacks.
fn lost(check: &CheckResult) -> Option<Broken> {
    let number = |name: &str| check.evidence.get(name).and_then(Value::as_i64);
    let (member, key) = (number("member")?, number("key")?);
    let (promise, fact) = if let Some(lost) = number("lost") {
        let of = number("acknowledged").map(|all| format!(" of {}", figure(all))).unwrap_or_default();
        let fact = format!("{}{of} acknowledged elements are missing at the end", figure(lost));
        ("acknowledged writes were lost", fact)
    } else {
        let (version, acknowledged, open) = (number("version")?, number("acknowledged")?, number("open")?);
        if version < acknowledged {
            let promise = "acknowledged writes were lost";
            let lacking = figure(acknowledged - version);
            (
                promise,
                format!("n{member} lacks {lacking} of {} of key {key} at the end", figure(acknowledged)),
            )
        } else if version > acknowledged + open {
            let fact = format!("{} of key {key} on n{member} at the end", figure(version));
            ("a member holds more changes than anybody asked for", fact)
        } else {
            return None;
        }
    };
    Some(Broken { promise: promise.to_owned(), fact: Some(fact) })
}

fn figure(number: i64) -> String {
    u64::try_from(number).map_or_else(|_| number.to_string(), count)
}

/// The answer that cannot be, and what it contradicts, where the two are a story that is quickly told.
fn answer(found: &Counterexample) -> Option<(&'static str, String)> {
    let (bad, before) = contradicted(found)?;
    let key = key(bad);
    let (now, then) = (value(bad), written(before));
    match (bad.f.as_str(), now, then) {
        ("read", Some(now), Some(then)) if now != then => {
            Some(("a stale read", format!("{key} read {now} after {then} had been acknowledged")))
        }
        ("read", None, Some(then)) if bad.value == Datum::Nil => {
            Some(("a stale read", format!("{key} read nothing after {then} had been acknowledged")))
        }
        ("read", Some(now), None) if before.f == "read" => {
            let then = value(before)?;
            (now != then)
                .then(|| ("a stale read", format!("{key} read {now} after somebody had read {then}")))
        }
        _ => None,
    }
}

/// Two compare-and-sets that were both told that they replaced the same value: what the first wrote is lost.
fn replaced_twice(found: &Counterexample) -> Option<(&'static str, String)> {
    let [first, second] = found.ops.as_slice() else { return None };
    let done = |op: &OpView| op.outcome == Outcome::Ok && op.f == "cas";
    let (Datum::List(one), Datum::List(other)) = (&first.value, &second.value) else { return None };
    let ([Datum::Int(from), Datum::Int(to)], [Datum::Int(again), Datum::Int(instead)]) =
        (one.as_slice(), other.as_slice())
    else {
        return None;
    };
    (done(first) && done(second) && from == again && first.key == second.key).then(|| {
        ("acknowledged writes were lost", format!("{}: {to} and {instead} both replaced {from}", key(first)))
    })
}

/// Two changes that were both acknowledged as the one that made the same version: one of them is lost.
fn one_version(found: &Counterexample) -> Option<(&'static str, String)> {
    let [first, second] = found.ops.as_slice() else { return None };
    let done = |op: &OpView| op.outcome == Outcome::Ok && op.changes;
    let (version, one, other) = (first.version?, written(first)?, written(second)?);
    (done(first) && done(second) && second.version == Some(version) && first.key == second.key).then(|| {
        let fact = format!("{}: {one} and {other} were both acknowledged as version {version}", key(first));
        ("acknowledged writes were lost", fact)
    })
}

/// The answer that cannot be, and the operation that had returned before its call and that it does not know
/// of: the one that happened and that the answer would have had to come before.
pub fn contradicted(found: &Counterexample) -> Option<(&OpView, &OpView)> {
    let marked = found.ops.iter().find(|op| op.impossible);
    let bad = match (marked, found.ops.as_slice()) {
        (Some(bad), _) => bad,
        // Checks that compare two answers mark none: the later one is at odds with the earlier.
        (None, [first, second]) if first.complete_ns.is_some_and(|at| at <= second.invoke_ns) => second,
        (None, _) => return None,
    };
    // A watch tells what changed, and not what is there.
    let is_watch = bad.f == Function::WATCH.as_str();
    if bad.changes || is_watch || bad.outcome != Outcome::Ok {
        return None;
    }
    let known = |op: &&OpView| {
        op.index != bad.index && op.key == bad.key && op.complete_ns.is_some_and(|at| at <= bad.invoke_ns)
    };
    let happened = || found.ops.iter().filter(known).filter(|op| op.outcome == Outcome::Ok);
    // Where versions say which is newer, only a newer one is contradicted.
    let newer = |op: &&OpView| match (op.version, bad.version) {
        (Some(there), Some(here)) => there > here,
        _ => true,
    };
    let own = value(bad);
    let source =
        found.ops.iter().filter(|op| own.is_some() && written(op) == own).map(|op| op.invoke_ns).min();
    // What had been acknowledged before the value was asked for to be written at all is no contradiction.
    let after_source =
        |op: &&OpView| source.is_none_or(|source| op.complete_ns.is_some_and(|at| at > source));
    let other = |op: &&OpView| written(op).or(value(op)) != own;
    let changes = happened().filter(newer).filter(after_source).filter(other).filter(|op| op.changes);
    let before = changes.max_by_key(|op| op.complete_ns).or_else(|| {
        let reads = happened().filter(newer).filter(other).filter(|op| !op.changes && op.version.is_some());
        reads.max_by_key(|op| op.complete_ns)
    })?;
    // A value that nobody wrote, or that was written only later, is another story.
    let older = matches!((bad.version, before.version), (Some(here), Some(there)) if here < there);
    (own.is_none() || source.is_some_and(|source| source < bad.invoke_ns) || older).then_some((bad, before))
}

fn key(op: &OpView) -> String {
    match &op.key {
        Datum::Int(key) => format!("key {key}"),
        _ => "a key".to_owned(),
    }
}

/// What a read showed.
pub fn value(op: &OpView) -> Option<i64> {
    match &op.value {
        Datum::Int(value) if !op.changes => Some(*value),
        _ => None,
    }
}

/// What a change wrote.
pub fn written(op: &OpView) -> Option<i64> {
    match &op.value {
        Datum::Int(value) if op.changes => Some(*value),
        Datum::List(pair) if op.changes => match pair.as_slice() {
            [_, Datum::Int(to)] => Some(*to),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn op(index: u64, f: &str, value: Datum, from: u64, to: u64, version: Option<i64>) -> OpView {
        OpView {
            index,
            process: index,
            call: format!("{f} k0"),
            f: f.to_owned(),
            key: Datum::Int(0),
            value,
            changes: f != "read",
            invoke_ns: from,
            complete_ns: Some(to),
            outcome: Outcome::Ok,
            node: Some(1),
            session: None,
            version,
            impossible: false,
        }
    }

    fn check(name: &str, sentence: &str, ops: Vec<OpView>) -> CheckResult {
        let found = Counterexample { sentence: sentence.to_owned(), of_ops: 900, rechecked: true, ops };
        CheckResult::new(name, Verdict::Invalid, "the versions of key 0 contradict each other")
            .with_counterexample(found)
    }

    fn pair(from: i64, to: i64) -> Datum {
        Datum::List(vec![Datum::Int(from), Datum::Int(to)])
    }

    #[test]
    fn two_answers_whose_versions_went_back_are_a_stale_read() {
        let ops = vec![
            op(1, "cas", pair(2954, 2971), 10, 20, Some(466)),
            op(2, "read", Datum::Int(2422), 30, 40, Some(385)),
        ];
        let (_, broken) = simplest(&[check("version-order", "long and with two verbs", ops)]).expect("one");
        assert_eq!(broken.promise, "a stale read");
        assert_eq!(broken.fact.as_deref(), Some("key 0 read 2422 after 2971 had been acknowledged"));
    }

    #[test]
    fn an_anomaly_of_transactions_is_told_by_what_it_is() {
        let ops = || vec![op(1, "txn", Datum::Nil, 10, 30, None), op(2, "txn", Datum::Nil, 20, 40, None)];
        let told = |sentence: &str| simplest(&[check("serializable", sentence, ops())]).expect("one").1;
        let skew = told("G2-item: T1 read [] from list 1 without 8, which T2 appended");
        assert_eq!(skew.promise, "write skew");
        assert_eq!(skew.fact.as_deref(), Some("T1 read [] from list 1 without 8, which T2 appended"));
        assert_eq!(told("G2-item-process: T1 read []").promise, "transactions that no order explains");
    }

    #[test]
    fn a_story_of_two_operations_comes_before_a_longer_one_and_a_lonely_one() {
        let mut stale = op(3, "read", Datum::Int(1), 30, 40, Some(1));
        stale.impossible = true;
        let write = |index, value, from, version| {
            op(index, "write", Datum::Int(value), from, from + 5, Some(version))
        };
        let long = vec![write(1, 1, 1, 1), write(2, 2, 10, 2), stale.clone()];
        let short = vec![write(2, 2, 10, 2), stale];
        let mut lonely = check("durability", "lost", vec![write(2, 2, 10, 2)]);
        lonely.evidence =
            json!({"member": 1, "key": 0, "version": 1954, "value": 3, "acknowledged": 1976, "open": 0});
        let checks = [check("linearizable", "", long), lonely, check("version-order", "", short)];
        assert_eq!(simplest(&checks).map(|(at, _)| at), Some(2));
        assert_eq!(others(&checks, "a stale read"), ["acknowledged writes were lost"]);
        let alone = simplest(&checks[1..2]).expect("one").1;
        assert_eq!(alone.fact.as_deref(), Some("n1 lacks 22 of 1,976 of key 0 at the end"));
    }

    #[test]
    fn who_knows_the_pair_leads_before_who_knows_only_a_count() {
        let write = |index, value, version| {
            op(index, "write", Datum::Int(value), 10 * index, 10 * index + 5, Some(version))
        };
        let counted = |last: OpView| {
            let mut check = check("durability", "1,221 changes were acknowledged", vec![last]);
            check.evidence = json!({"member": 1, "key": 1, "version": 1220, "acknowledged": 1221, "open": 0});
            check
        };
        let pair = check("version-order", "", vec![write(1, 14, 112), write(2, 3, 112)]);
        // The last write is there: its version is what the member holds.
        let checks = [counted(write(9, 8829, 1220)), pair.clone()];
        let (at, broken) = simplest(&checks).expect("one");
        assert_eq!(at, 1);
        assert_eq!(broken.fact.as_deref(), Some("key 0: 14 and 3 were both acknowledged as version 112"));
        assert_eq!(simplest(&checks[..1]).map(|(at, _)| at), Some(0), "alone it leads");
        // One that knows which change is lacking may lead.
        let checks = [counted(write(9, 8829, 1221)), pair];
        assert!(!only_counts(&checks[0]));
    }

    #[test]
    fn two_that_replaced_the_same_value_are_a_lost_write() {
        let ops = vec![
            op(1, "cas", pair(2632, 2646), 10, 20, Some(299)),
            op(2, "cas", pair(2632, 3342), 30, 40, Some(299)),
        ];
        let (_, broken) =
            simplest(&[check("linearizable", "both replaced the same value", ops)]).expect("one");
        assert_eq!(broken.promise, "acknowledged writes were lost");
        assert_eq!(broken.fact.as_deref(), Some("key 0: 2646 and 3342 both replaced 2632"));
    }

    #[test]
    fn what_has_not_the_shape_of_a_story_is_told_as_none() {
        let mut unwritten = op(2, "read", Datum::Int(7), 30, 40, None);
        unwritten.impossible = true;
        let ops = vec![op(1, "write", Datum::Int(2), 10, 20, None), unwritten];
        let found = simplest(&[check("linearizable", "read 7, a value that nobody ever wrote", ops)]);
        assert_eq!(found.map(|(_, broken)| broken.fact), Some(None));
        let mut set = check("set", "", Vec::new());
        set.evidence = json!({"kind": "an acknowledged element was lost"});
        assert_eq!(
            simplest(&[set]).map(|(_, broken)| broken.promise).as_deref(),
            Some("an acknowledged element was lost")
        );
    }
}
