//! Lists that only grow: every read is a beginning of the longest one, and as long as its version.
//!
//! An append is a compare-and-set by version of the whole list with one unique element more. So all reads of
//! a key agree on one order, position `n` was made by the append that was told version `n`, and what was
//! acknowledged or seen is there for whoever looks afterwards. Two reads of which neither is a beginning of
//! the other are a fork: two histories that both believed to be the one.
//!
//! The work is linear in the elements that the reads returned. Beside it the versions are judged by
//! [`versions`](crate::versions), which knows nothing of lists.

use std::collections::HashMap;

use serde_json::json;

use crate::figures::count;
use crate::history::{History, Op, OpKind, Outcome, describe};
use crate::set::Reads;
use crate::verdict::{CheckResult, Verdict};
use crate::versions::{after_newest, counterexample};

/// The name of the check.
pub const NAME: &str = "append";

type Broken<'a> = (&'static str, String, Vec<&'a Op>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    acknowledged: usize,
    open: usize,
    refused: usize,
    reads: usize,
    longest: usize,
    never_read: usize,
}

/// Judges every list.
#[must_use]
pub fn check(history: &History, reads: Reads) -> CheckResult {
    let mut counts = Counts::default();
    for (key, ops) in history.by_key() {
        if let Err((what, why, culprits)) = judge(&ops, reads, &mut counts) {
            return CheckResult::new(NAME, Verdict::Invalid, format!("list {key}: {what}"))
                .with_evidence(json!({"key": key, "kind": what, "operations": ops.len()}))
                .with_counterexample(counterexample(why, &culprits, ops.len()));
        }
    }
    let Counts { acknowledged, open, refused, reads, longest, never_read } = counts;
    let evidence = json!({"acknowledged": acknowledged, "open": open, "refused": refused, "reads": reads,
        "longest": longest, "never_read": never_read});
    if acknowledged == 0 || reads == 0 {
        let summary = "nothing was appended or nothing was read, so nothing was tested";
        return CheckResult::new(NAME, Verdict::Unknown, summary).with_evidence(evidence);
    }
    if never_read > 0 {
        let summary = format!(
            "{} of {} acknowledged elements were never read afterwards",
            count(never_read),
            count(acknowledged)
        );
        return CheckResult::new(NAME, Verdict::Unknown, summary).with_evidence(evidence);
    }
    let summary = format!(
        "{} reads agree on one order, with each of {} acknowledged elements in its place ({} of unknown \
            fate)",
        count(reads),
        count(acknowledged),
        count(open)
    );
    CheckResult::new(NAME, Verdict::Valid, summary).with_evidence(evidence)
}

fn judge<'a>(ops: &[&'a Op], reads: Reads, counts: &mut Counts) -> Result<(), Broken<'a>> {
    let appends = appends(ops)?;
    let mut lists: Vec<(&Op, &[i64])> = ops
        .iter()
        .filter(|op| op.outcome == Outcome::Ok)
        .filter_map(|op| Some((*op, op.list().map(|list| &list[..])?)))
        .collect();
    // Every list is compared with the next longer one: beginnings of beginnings are beginnings.
    lists.sort_by_key(|(read, list)| (list.len(), read.call));
    for pair in lists.windows(2) {
        one_order(pair[0], pair[1])?;
    }
    if let Some(&(read, list)) = lists.last() {
        elements(read, list, &appends)?;
    }
    let latest = lists.last().map(|(_, list)| latest_calls(list, &appends)).unwrap_or_default();
    for &(read, list) in &lists {
        length(read, list)?;
        if let Some(append) = list.len().checked_sub(1).and_then(|last| latest.get(last)) {
            not_before(read, append)?;
        }
    }
    places(&appends, lists.last().copied())?;
    if reads == Reads::Current {
        real_time(ops)?;
    }
    let newest_call = lists.iter().map(|(read, _)| read.call).max();
    for append in appends.values() {
        match append.outcome {
            Outcome::Ok => {
                counts.acknowledged += 1;
                counts.never_read += usize::from(newest_call.is_none_or(|call| call < append.ret));
            }
            Outcome::Info => counts.open += 1,
            Outcome::Fail => counts.refused += 1,
        }
    }
    counts.reads += lists.len();
    counts.longest = counts.longest.max(lists.last().map_or(0, |(_, list)| list.len()));
    Ok(())
}

fn appends<'a>(ops: &[&'a Op]) -> Result<HashMap<i64, &'a Op>, Broken<'a>> {
    let mut appends: HashMap<i64, &Op> = HashMap::new();
    for &op in ops {
        if let OpKind::Append { value } = op.kind()
            && let Some(first) = appends.insert(value, op)
        {
            let why = format!("{} and {}: an element has one append only", describe(first), describe(op));
            return Err(("an element was appended twice", why, vec![first, op]));
        }
    }
    Ok(appends)
}

/// The shorter list is a beginning of the longer one.
fn one_order<'a>(shorter: (&'a Op, &[i64]), longer: (&'a Op, &[i64])) -> Result<(), Broken<'a>> {
    let ((one, short), (other, long)) = (shorter, longer);
    let Some(at) = short.iter().zip(long).position(|(one, other)| one != other) else { return Ok(()) };
    let why = format!(
        "{} and {} disagree about position {}: {} or {}",
        describe(one),
        describe(other),
        at + 1,
        short[at],
        long[at]
    );
    Err(("two reads show two orders", why, vec![one, other]))
}

/// The longest list holds elements that somebody asked for, each once. The others are beginnings of it.
fn elements<'a>(read: &'a Op, list: &[i64], appends: &HashMap<i64, &'a Op>) -> Result<(), Broken<'a>> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let why = format!("{} with element {} in it twice", describe(read), pair[0]);
        return Err(("an element is there twice", why, vec![read]));
    }
    for value in list {
        let Some(append) = appends.get(value) else {
            let why = format!("{}, and element {value} in it was never appended", describe(read));
            return Err(("a read shows what was never appended", why, vec![read]));
        };
        if append.outcome == Outcome::Fail {
            let why = format!(
                "{} with element {value}, but {} and was told that it did not happen",
                describe(read),
                describe(append)
            );
            return Err(("a read shows what was refused", why, vec![append, read]));
        }
    }
    Ok(())
}

/// The empty list has version 0, and each append makes the next.
fn length<'a>(read: &'a Op, list: &[i64]) -> Result<(), Broken<'a>> {
    let Some(version) = read.version else { return Ok(()) };
    if i64::try_from(list.len()) == Ok(version) {
        return Ok(());
    }
    let why = format!("{} at version {version}: each append makes one version", describe(read));
    Err(("a version does not count the elements", why, vec![read]))
}

/// For each beginning of the longest list the one of its appends that was called last.
fn latest_calls<'a>(list: &[i64], appends: &HashMap<i64, &'a Op>) -> Vec<&'a Op> {
    let mut latest: Vec<&Op> = Vec::with_capacity(list.len());
    for append in list.iter().filter_map(|value| appends.get(value).copied()) {
        let last = latest.last().copied().filter(|last| last.call > append.call);
        latest.push(last.unwrap_or(append));
    }
    latest
}

/// Nothing is seen before it was asked for.
fn not_before<'a>(read: &'a Op, append: &'a Op) -> Result<(), Broken<'a>> {
    if append.call < read.ret {
        return Ok(());
    }
    let why = format!("{}, but {} only afterwards", describe(read), describe(append));
    Err(("a read shows what was not yet appended", why, vec![read, append]))
}

/// An append that was told version n stands at position n.
fn places<'a>(appends: &HashMap<i64, &'a Op>, longest: Option<(&'a Op, &[i64])>) -> Result<(), Broken<'a>> {
    let Some((read, list)) = longest else { return Ok(()) };
    let mut told: Vec<(&Op, i64, i64)> = appends
        .iter()
        .filter(|(_, append)| append.outcome == Outcome::Ok)
        .filter_map(|(value, append)| Some((*append, *value, append.version?)))
        .collect();
    told.sort_by_key(|(append, _, _)| append.call);
    for (append, value, version) in told {
        let Some(at) = version.checked_sub(1).and_then(|at| usize::try_from(at).ok()) else {
            let why = format!(
                "{} and was told version {version}, which is that of the empty list",
                describe(append)
            );
            return Err(("an append made no version", why, vec![append]));
        };
        match list.get(at) {
            Some(there) if *there != value => {
                let why = format!(
                    "{} and was told position {version}, but {} with {there} there",
                    describe(append),
                    describe(read)
                );
                return Err(("an acknowledged element is not in its place", why, vec![append, read]));
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// How long the list is known to be once this operation returned.
fn known(op: &Op) -> Option<i64> {
    match op.kind() {
        _ if op.outcome != Outcome::Ok => None,
        OpKind::Append { .. } => op.version,
        OpKind::Read { .. } => i64::try_from(op.list()?.len()).ok(),
        _ => None,
    }
}

/// What was acknowledged or seen is there for whoever looks or appends afterwards.
fn real_time<'a>(ops: &[&'a Op]) -> Result<(), Broken<'a>> {
    for (newest, op) in after_newest(ops, known) {
        let (Some(before), Some(now)) = (known(newest), known(op)) else { continue };
        let is_read = matches!(op.kind(), OpKind::Read { .. });
        if now > before || (is_read && now == before) {
            continue;
        }
        let after = describe(newest);
        let what = if is_read { "an element was lost, or a read was stale" } else { "an append fell behind" };
        let why = format!(
            "{after}, which made or saw {before} elements, but {}, which began afterwards, {} {now}",
            describe(op),
            if is_read { "saw" } else { "made number" }
        );
        return Err((what, why, vec![newest, op]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Function, Value};
    use proptest::prelude::*;

    /// An operation of a test: an append (value, version or none for an unknown fate) or a read.
    #[derive(Clone, Debug)]
    enum Do {
        Append(i64, Option<i64>),
        Refused(i64),
        Read(Vec<i64>),
    }

    /// Operations with their calls and returns.
    fn timed(ops: &[(Do, u64, u64)]) -> History {
        let mut events = Vec::new();
        for ((what, call, ret), process) in ops.iter().zip(0_u64..) {
            let (f, asked, kind, told, version) = match what {
                Do::Append(value, version) => {
                    let kind = if version.is_some() { EventKind::Ok } else { EventKind::Info };
                    (Function::APPEND, Value::One(*value), kind, Value::One(*value), *version)
                }
                Do::Refused(value) => {
                    (Function::APPEND, Value::One(*value), EventKind::Fail, Value::One(*value), None)
                }
                Do::Read(list) => {
                    let version = i64::try_from(list.len()).ok();
                    (Function::READ, Value::Null, EventKind::Ok, Value::List(list.clone().into()), version)
                }
            };
            events.push(Event::new(process, EventKind::Invoke, f, 0, asked, *call));
            let mut end = Event::new(process, kind, f, 0, told, *ret);
            end.version = version;
            events.push(end);
        }
        events.sort_by_key(|event| event.time);
        History::from_events(events).unwrap()
    }

    /// The same, one after the other.
    fn history(ops: &[Do]) -> History {
        let at = |at: usize| u64::try_from(at).unwrap() * 10;
        timed(&ops.iter().enumerate().map(|(n, op)| (op.clone(), at(n), at(n) + 5)).collect::<Vec<_>>())
    }

    fn broken(ops: &[Do]) -> (String, String, usize) {
        let result = check(&history(ops), Reads::Current);
        assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
        let found = result.counterexample.unwrap();
        (result.summary, found.sentence, found.ops.len())
    }

    use Do::{Append, Read, Refused};

    #[test]
    fn lists_that_grow_in_one_order_are_valid() {
        let ok = history(&[
            Append(1, Some(1)),
            Read(vec![1]),
            Append(2, None),
            Refused(7),
            Read(vec![1]),
            Append(3, Some(3)),
            Read(vec![1, 2, 3]),
        ]);
        let result = check(&ok, Reads::Current);
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
        assert_eq!(result.evidence["longest"], 3);
    }

    #[test]
    fn a_fork_is_named_by_the_two_reads_that_disagree() {
        let (summary, sentence, ops) = broken(&[
            Append(1, Some(1)),
            Append(2, None),
            Append(3, None),
            Read(vec![1, 2]),
            Read(vec![1, 3]),
        ]);
        assert_eq!((summary.as_str(), ops), ("list 0: two reads show two orders", 2));
        assert!(sentence.ends_with("disagree about position 2: 2 or 3"), "{sentence}");
    }

    #[test]
    fn a_lost_append_is_named_with_the_read_that_lacks_it() {
        let (summary, _, ops) = broken(&[Append(1, Some(1)), Append(2, Some(2)), Read(vec![1])]);
        assert_eq!((summary.as_str(), ops), ("list 0: an element was lost, or a read was stale", 2));
        let stale = history(&[Append(1, Some(1)), Append(2, Some(2)), Read(vec![1]), Read(vec![1, 2])]);
        assert_eq!(check(&stale, Reads::Stale).verdict, Verdict::Valid);
    }

    #[test]
    fn a_replaced_append_is_not_in_its_place() {
        let (summary, _, ops) = broken(&[Append(1, Some(1)), Append(2, None), Read(vec![2])]);
        assert_eq!((summary.as_str(), ops), ("list 0: an acknowledged element is not in its place", 2));
    }

    #[test]
    fn two_appends_that_made_the_same_position_fell_behind() {
        let (summary, _, ops) = broken(&[Append(1, Some(1)), Append(2, Some(1)), Read(vec![1])]);
        assert_eq!(ops, 2);
        assert!(summary.contains("place") || summary.contains("fell behind"), "{summary}");
    }

    #[test]
    fn what_was_never_appended_or_was_refused_or_is_doubled_is_not_there() {
        assert_eq!(broken(&[Append(1, Some(1)), Read(vec![1, 9])]).2, 1);
        assert_eq!(broken(&[Refused(4), Read(vec![4])]).2, 2);
        assert_eq!(broken(&[Append(1, Some(1)), Read(vec![1, 1])]).2, 1);
        assert_eq!(broken(&[Read(vec![4]), Append(4, None)]).2, 2);
        let (summary, _, ops) = broken(&[Append(5, None), Read(vec![4, 5]), Append(4, None)]);
        assert_eq!((summary.as_str(), ops), ("list 0: a read shows what was not yet appended", 2));
    }

    #[test]
    fn a_version_counts_the_elements() {
        let mut events = vec![
            Event::new(0, EventKind::Invoke, Function::APPEND, 0, Value::One(1), 0),
            Event::new(0, EventKind::Info, Function::APPEND, 0, Value::One(1), 1),
            Event::new(1, EventKind::Invoke, Function::READ, 0, Value::Null, 2),
        ];
        let mut read = Event::new(1, EventKind::Ok, Function::READ, 0, Value::List([1].into()), 3);
        read.version = Some(2);
        events.push(read);
        let result = check(&History::from_events(events).unwrap(), Reads::Current);
        assert!(result.summary.ends_with("a version does not count the elements"), "{}", result.summary);
    }

    /// Whether some order of the operations explains all answers, by trying them all.
    fn naive(ops: &[&Op], list: &mut Vec<i64>, left: &mut Vec<usize>) -> bool {
        if left.iter().all(|at| ops[*at].outcome == Outcome::Info) {
            return true;
        }
        for pick in 0..left.len() {
            let at = left.remove(pick);
            let op = ops[at];
            let first = left.iter().all(|other| ops[*other].ret > op.call);
            let fits = first
                && match op.kind() {
                    OpKind::Append { value } => {
                        list.push(value);
                        let version = i64::try_from(list.len()).ok();
                        op.version.is_none() || op.version == version
                    }
                    _ => op.list().map(|list| &list[..]) == Some(list.as_slice()),
                };
            if fits && naive(ops, list, left) {
                return true;
            }
            if first && matches!(op.kind(), OpKind::Append { .. }) {
                list.pop();
            }
            left.insert(pick, at);
        }
        false
    }

    proptest! {
        /// The check accuses nobody who is innocent. (It is told versions, so what it accuses of is never
        /// legal.)
        #[test]
        fn what_some_order_explains_is_not_accused(
            script in prop::collection::vec((0_u64..12, 1_u64..6, 0_usize..4, any::<bool>()), 1..6),
        ) {
            let mut order: Vec<(u64, usize)> =
                script.iter().enumerate().map(|(at, (call, length, ..))| (call * 2 + length, at)).collect();
            order.sort_unstable();
            // A true history first: effects in the order of midpoints, which lie within the operations.
            let mut list = Vec::new();
            let mut ops: Vec<(Do, u64, u64)> = vec![(Read(Vec::new()), 0, 0); script.len()];
            for (_, at) in order {
                let (call, length, kind, _) = script[at];
                let value = i64::try_from(at).unwrap();
                let what = if kind == 0 { Read(list.clone()) } else {
                    list.push(value);
                    Append(value, i64::try_from(list.len()).ok())
                };
                ops[at] = (what, call * 20, (call + length) * 20 + 1);
            }
            let history = timed(&ops);
            prop_assert!(check(&history, Reads::Current).verdict != Verdict::Invalid);
            // Then one read is forged: whatever the search still explains must not be accused.
            if let Some(at) = ops.iter().position(|op| matches!(op.0, Read(_))) {
                let forged: Vec<i64> = list.iter().copied().take(script[at].2).collect();
                ops[at].0 = Read(forged);
                let history = timed(&ops);
                let all: Vec<&Op> = history.ops().iter().collect();
                let explained = naive(&all, &mut Vec::new(), &mut (0..all.len()).collect());
                let accused = check(&history, Reads::Current).verdict == Verdict::Invalid;
                prop_assert_eq!(accused, !explained);
            }
        }
    }
}
