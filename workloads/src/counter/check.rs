//! The check `counter`: an acknowledged increment is contained in whatever is there afterwards, and only
//! once.
//!
//! Each increment replaces a value by a larger one that no other makes. So a value names the increment that
//! made it, that increment names the value that it built on, and so on down to the value that the counter
//! began with. A value *contains* the increments on this way, and no other.
//!
//! - No two acknowledged increments were *made from one value*.
//! - What was acknowledged or read was certainly there, and a counter has one value after another: of two
//!   such values the larger one contains the smaller one. If it does not, some increment on its way steps
//!   over the smaller value, and what had made that one is *lost*.
//! - A value that no increment makes, or one that was refused, shows a *doubled* or an invented increment.
//! - What was shown or acknowledged to anybody is in what is shown or made afterwards: no read *goes back*,
//!   and nothing is shown before it was asked for.
//!
//! An increment of unknown fate was made if a value that was certainly there contains it. If none does, it
//! was not made as far as anybody saw.
//!
//! This is linearizability, but for what refusals say: the values in their order, each made and then read,
//! are an order of the operations, and it agrees with real time if the last rule holds. The way down is
//! walked once, so the work is that of sorting.

use std::cmp::Reverse;
use std::collections::HashMap;

use checker::figures::count;
use checker::history::{History, Op, OpKind, Outcome, describe};
use checker::set::Reads;
use checker::verdict::{CheckResult, Verdict};
use checker::versions::{after_newest, counterexample};
use serde_json::json;

/// The name of the check.
const NAME: &str = "counter";

/// What a read of a counter that was not there shows: less than any value.
const NOTHING: i64 = i64::MIN;

/// What became of the increments, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    acknowledged: usize,
    open: usize,
    open_made: usize,
    refused: usize,
    reads: usize,
    never_read: usize,
}

/// Why a counter is not judged valid.
enum Finding<'a> {
    /// What is wrong, a sentence, and the operations that show it.
    Broken(&'static str, String, Vec<&'a Op>),
    /// Why its values do not say what they contain.
    Unclear(String),
}

/// Judges every counter.
pub(super) fn check(history: &History, reads: Reads) -> CheckResult {
    let mut counts = Counts::default();
    for (key, ops) in history.by_key() {
        match judge(&ops, reads, &mut counts) {
            Ok(()) => {}
            Err(Finding::Broken(what, why, culprits)) => {
                return CheckResult::new(NAME, Verdict::Invalid, format!("counter {key}: {what}"))
                    .with_evidence(json!({"key": key, "kind": what, "operations": ops.len()}))
                    .with_counterexample(counterexample(why, &culprits, ops.len()));
            }
            Err(Finding::Unclear(why)) => {
                return CheckResult::new(NAME, Verdict::Unknown, format!("counter {key}: {why}"));
            }
        }
    }
    let Counts { acknowledged, open, open_made, refused, reads, never_read } = counts;
    let evidence = json!({"acknowledged": acknowledged, "open": open, "open_made": open_made,
        "refused": refused, "reads": reads, "never_read": never_read});
    let (verdict, summary) = if acknowledged == 0 || reads == 0 {
        (Verdict::Unknown, "nothing was counted or nothing was read, so nothing was tested".to_owned())
    } else if never_read > 0 {
        let (never_read, acknowledged) = (count(never_read), count(acknowledged));
        let summary =
            format!("no read began after {never_read} of {acknowledged} increments were acknowledged");
        (Verdict::Unknown, summary)
    } else {
        let summary = format!(
            "{} acknowledged increments were made once each, one upon the other, and {} reads follow them \
             ({} of unknown fate, {} of these made)",
            count(acknowledged),
            count(reads),
            count(open),
            count(open_made)
        );
        (Verdict::Valid, summary)
    };
    CheckResult::new(NAME, verdict, summary).with_evidence(evidence)
}

fn judge<'a>(ops: &[&'a Op], reads: Reads, counts: &mut Counts) -> Result<(), Finding<'a>> {
    one_upon_the_other(ops)?;
    let makers = makers(ops)?;
    let way = way_up(ops, &makers)?;
    // What an operation shows or made; nothing of an increment that nobody saw.
    let measure = |op: &Op| match op.outcome {
        Outcome::Ok => shown(op),
        Outcome::Info => made(op).filter(|value| way.contains_key(value)),
        Outcome::Fail => None,
    };
    real_time(ops, reads, measure)?;
    let is_read = |op: &&&Op| op.outcome == Outcome::Ok && matches!(op.kind, OpKind::Read { .. });
    let last_read = ops.iter().filter(is_read).map(|read| read.call).max();
    counts.reads += ops.iter().filter(is_read).count();
    for op in ops.iter().filter(|op| matches!(op.kind, OpKind::Cas { .. })) {
        match op.outcome {
            Outcome::Ok => {
                counts.acknowledged += 1;
                counts.never_read += usize::from(last_read.is_none_or(|call| call < op.ret));
            }
            Outcome::Info => {
                counts.open += 1;
                counts.open_made += usize::from(measure(op).is_some());
            }
            Outcome::Fail => counts.refused += 1,
        }
    }
    Ok(())
}

/// The value that this operation makes, if it takes effect: a creation or an increment.
fn made(op: &Op) -> Option<i64> {
    op.kind.written()
}

/// The value that an increment builds on; none of a creation.
fn built_on(op: &Op) -> Option<i64> {
    match op.kind {
        OpKind::Cas { from, .. } => from,
        _ => None,
    }
}

/// The value that was certainly there when this acknowledged operation returned.
fn shown(op: &Op) -> Option<i64> {
    match op.kind {
        OpKind::Read { value } if op.list.is_none() => Some(value.unwrap_or(NOTHING)),
        _ => made(op),
    }
}

/// Who makes each value. Of several attempts only one may have happened.
fn makers<'a>(ops: &[&'a Op]) -> Result<HashMap<i64, &'a Op>, Finding<'a>> {
    let mut makers: HashMap<i64, &Op> = HashMap::new();
    for &op in ops {
        let Some(value) = made(op) else { continue };
        let Some(&other) = makers.get(&value) else {
            makers.insert(value, op);
            continue;
        };
        if op.outcome == Outcome::Fail {
            continue;
        }
        if other.outcome != Outcome::Fail {
            let why =
                format!("{} and {}, so {value} does not say what it contains", describe(other), describe(op));
            return Err(Finding::Unclear(why));
        }
        makers.insert(value, op);
    }
    Ok(makers)
}

/// Of acknowledged increments no two were made from one value.
fn one_upon_the_other<'a>(ops: &[&'a Op]) -> Result<(), Finding<'a>> {
    let mut upon: HashMap<i64, &Op> = HashMap::new();
    for &op in ops.iter().filter(|op| op.outcome == Outcome::Ok) {
        if let Some(from) = built_on(op)
            && let Some(first) = upon.insert(from, op)
        {
            let (one, other) = (describe(first), describe(op));
            let why = format!("{one} and {other}: both are made from {from}, and neither contains the other");
            return Err(Finding::Broken("two increments were made from one value", why, vec![first, op]));
        }
    }
    Ok(())
}

/// The way from the largest value that was certainly there down to the beginning, each value with its maker.
/// All others that were certainly there lie on it.
fn way_up<'a>(ops: &[&'a Op], makers: &HashMap<i64, &'a Op>) -> Result<HashMap<i64, &'a Op>, Finding<'a>> {
    let mut certain: Vec<(i64, &Op)> = ops
        .iter()
        .filter(|op| op.outcome == Outcome::Ok)
        .filter_map(|op| Some((shown(op)?, *op)))
        .filter(|(value, _)| *value != NOTHING)
        .collect();
    // Of those that show the same value the witness is who made it, or who read it first.
    certain.sort_by_key(|(value, op)| (Reverse(*value), made(op).is_none(), op.ret));
    certain.dedup_by_key(|(value, _)| *value);
    for (value, op) in &certain {
        if !makers.contains_key(value) {
            return Err(nobody_makes(*value, op, &[]));
        }
    }
    let mut way = HashMap::new();
    let mut below = certain.into_iter().peekable();
    let Some((mut value, mut witness)) = below.next() else { return Ok(way) };
    // The increments of unknown fate between the witness and the value, the upper ones first.
    let mut between: Vec<&Op> = Vec::new();
    loop {
        let maker = *makers.get(&value).ok_or_else(|| nobody_makes(value, witness, &between))?;
        if maker.outcome == Outcome::Fail {
            return Err(refused(value, maker, witness, &between));
        }
        way.insert(value, maker);
        match (built_on(maker), below.peek().copied()) {
            (Some(from), _) if from >= value => {
                return Err(Finding::Unclear(format!("{}, which is no increment", describe(maker))));
            }
            (Some(from), Some((certain, smaller))) if from == certain => {
                (value, witness) = (certain, smaller);
                between.clear();
                below.next();
            }
            (from, Some((certain, smaller))) if from.is_none_or(|from| from < certain) => {
                return Err(stepped_over(certain, smaller, maker, witness, &between));
            }
            (Some(from), _) => {
                between.push(maker);
                value = from;
            }
            (None, _) => return Ok(way),
        }
    }
}

/// The operations from whoever showed a value down to those that it was built on: the latter stand first.
fn down_to<'a>(witness: &'a Op, between: &[&'a Op]) -> Vec<&'a Op> {
    between.iter().rev().copied().filter(|op| !std::ptr::eq(*op, witness)).chain([witness]).collect()
}

/// What a witness showed, behind the increments of unknown fate that this rests on.
fn shown_by(witness: &Op, between: &[&Op]) -> String {
    down_to(witness, between).into_iter().map(describe).collect::<Vec<_>>().join(" and ")
}

fn nobody_makes<'a>(value: i64, witness: &'a Op, between: &[&'a Op]) -> Finding<'a> {
    let why =
        format!("{}, but no increment that may have happened makes {value}", shown_by(witness, between));
    Finding::Broken("a value that no increments explain", why, down_to(witness, between))
}

fn refused<'a>(value: i64, maker: &'a Op, witness: &'a Op, between: &[&'a Op]) -> Finding<'a> {
    // An operation that failed says so itself.
    let error = maker.error.as_deref().map(|error| format!(" ({error})")).unwrap_or_default();
    let why = format!(
        "{}, but {}{error}, and nobody else makes {value}",
        shown_by(witness, between),
        describe(maker)
    );
    let mut culprits = vec![maker];
    culprits.extend(down_to(witness, between));
    Finding::Broken("an increment that was refused was made", why, culprits)
}

/// `bridge`, on the way of what the witness showed, leads from below `value` to above it; `smaller` showed
/// `value`.
fn stepped_over<'a>(
    value: i64,
    smaller: &'a Op,
    bridge: &'a Op,
    witness: &'a Op,
    between: &[&'a Op],
) -> Finding<'a> {
    let what = match built_on(bridge) {
        Some(_) => "an increment was lost",
        None => "it began anew above what was there",
    };
    let mut culprits = vec![smaller, bridge];
    let mut why = format!("{}, but {}, which leaves {value} out", describe(smaller), describe(bridge));
    if bridge.outcome != Outcome::Ok {
        why.push_str(&format!("; that happened, for {}", shown_by(witness, between)));
        culprits.extend(down_to(witness, between));
    }
    Finding::Broken(what, why, culprits)
}

/// What was shown or acknowledged is in what is shown or made afterwards. What reads that may be stale show
/// was there; that they show less than others accuses nobody.
fn real_time<'a>(
    ops: &[&'a Op],
    reads: Reads,
    measure: impl Fn(&Op) -> Option<i64>,
) -> Result<(), Finding<'a>> {
    for (newest, op) in after_newest(ops, &measure) {
        let (Some(before), Some(now)) = (measure(newest), measure(op)) else { continue };
        let is_read = matches!(op.kind, OpKind::Read { .. });
        if now > before || is_read && (now == before || reads == Reads::Stale) {
            continue;
        }
        let (what, why) = if is_read {
            let why = format!("{}, but {}, which began afterwards", describe(newest), describe(op));
            ("a read went back", why)
        } else {
            let contains = if now < before { format!(", which contains {now}") } else { String::new() };
            let why = format!("{}{contains}, but {}, which began afterwards", describe(newest), describe(op));
            ("a value was there before it was asked for", why)
        };
        return Err(Finding::Broken(what, why, vec![newest, op]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::chance::Chance;
    use checker::history::{BAD_VERSION, Event, EventKind, Function, Value};
    use checker::{Budget, linearizable};

    /// An operation of a test.
    #[derive(Clone, Copy, Debug)]
    enum Do {
        Make(i64),
        Add(i64, i64),
        Read(i64),
    }

    /// How it ends.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum End {
        Done,
        Open,
        Refused,
        NotSent,
    }

    use Do::{Add, Make, Read};
    use End::{Done, NotSent, Open, Refused};

    /// Operations with their calls and returns, each by a process of its own.
    fn timed(ops: &[(Do, End, u64, u64)]) -> History {
        let mut events = Vec::new();
        for (&(what, end, call, ret), process) in ops.iter().zip(0_u64..) {
            let (f, asked, told) = match what {
                Make(value) => (Function::Write, Value::One(value), Value::One(value)),
                Add(from, to) => (Function::Cas, Value::Pair(Some(from), to), Value::Pair(Some(from), to)),
                Read(value) => (Function::Read, Value::Null, Value::One(value)),
            };
            events.push(Event::new(process, EventKind::Invoke, f, 3, asked, call));
            let (kind, error) = match end {
                Done => (EventKind::Ok, None),
                Open => (EventKind::Info, None),
                Refused => (EventKind::Fail, Some(BAD_VERSION)),
                NotSent => (EventKind::Fail, Some("not-sent")),
            };
            let mut event = Event::new(process, kind, f, 3, told, ret);
            event.error = error.map(Into::into);
            events.push(event);
        }
        events.sort_by_key(|event| event.time);
        History::from_events(events).unwrap()
    }

    /// The same, one after the other.
    fn history(ops: &[(Do, End)]) -> History {
        let each = ops.iter().zip(0_u64..).map(|(&(what, end), at)| (what, end, at * 10, at * 10 + 5));
        timed(&each.collect::<Vec<_>>())
    }

    fn judged(ops: &[(Do, End)]) -> CheckResult {
        check(&history(ops), Reads::Current)
    }

    /// What is wrong, the sentence without its times, and how many operations show it.
    fn broken(ops: &[(Do, End)]) -> (String, String, usize) {
        let result = judged(ops);
        assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
        let found = result.counterexample.unwrap();
        let is_time = |part: &str| part.contains(" s to ") || part.starts_with("from ");
        let parts = found.sentence.split_inclusive(')').map(|part| match part.rsplit_once(" (") {
            Some((words, time)) if is_time(time) => words,
            _ => part,
        });
        (result.summary.clone(), parts.collect(), found.ops.len())
    }

    #[test]
    fn a_counter_that_keeps_its_promises_is_valid() {
        let result = judged(&[
            (Make(0), Done),
            (Add(0, 1), Done),
            (Read(1), Done),
            (Add(0, 2), Refused),
            (Add(1, 4), Done),
            (Read(4), Done),
        ]);
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
        assert_eq!((&result.evidence["acknowledged"], &result.evidence["refused"]), (&json!(2), &json!(1)));
    }

    #[test]
    fn an_increment_of_unknown_fate_may_have_happened_or_not() {
        let made = judged(&[(Make(0), Done), (Add(0, 1), Open), (Add(1, 3), Done), (Read(3), Done)]);
        assert_eq!((made.verdict, &made.evidence["open_made"]), (Verdict::Valid, &json!(1)));
        let not_made = judged(&[(Make(0), Done), (Add(0, 1), Open), (Add(0, 3), Done), (Read(3), Done)]);
        assert_eq!((not_made.verdict, &not_made.evidence["open_made"]), (Verdict::Valid, &json!(0)));
        // It may still happen while others look; once it was seen it stays.
        let late = [(Make(0), Done), (Add(0, 1), Open), (Read(0), Done), (Read(1), Done), (Read(1), Done)];
        assert_eq!(judged(&late).evidence["open_made"], 1);
        let (summary, _, ops) =
            broken(&[(Make(0), Done), (Add(0, 1), Open), (Read(1), Done), (Read(0), Done)]);
        assert_eq!((summary.as_str(), ops), ("counter 3: a read went back", 2));
    }

    #[test]
    fn an_acknowledged_increment_that_later_values_do_not_contain_is_lost() {
        let (summary, sentence, ops) = broken(&[
            (Make(0), Done),
            (Add(0, 1), Done),
            (Add(0, 2), Open),
            (Add(2, 5), Open),
            (Read(5), Done),
        ]);
        assert_eq!((summary.as_str(), ops), ("counter 3: an increment was lost", 4));
        assert_eq!(
            sentence,
            "process 1 replaced 0 by 1 in key 3, but process 2 replaced 0 by 2 in key 3, which \
             leaves 1 out; that happened, for process 3 replaced 2 by 5 in key 3 and process 4 \
             read 5 from key 3"
        );
        let (summary, _, ops) = broken(&[
            (Make(0), Done),
            (Add(0, 1), Open),
            (Read(1), Done),
            (Add(0, 7), Done),
            (Read(7), Done),
        ]);
        assert_eq!((summary.as_str(), ops), ("counter 3: an increment was lost", 2));
    }

    #[test]
    fn two_acknowledged_increments_from_one_value_are_named() {
        let (summary, sentence, ops) =
            broken(&[(Make(0), Done), (Add(0, 1), Done), (Add(0, 2), Done), (Read(2), Done)]);
        assert_eq!((summary.as_str(), ops), ("counter 3: two increments were made from one value", 2));
        assert_eq!(
            sentence,
            "process 1 replaced 0 by 1 in key 3 and process 2 replaced 0 by 2 in key 3: both are made from \
             0, and neither contains the other"
        );
    }

    #[test]
    fn a_doubled_increment_makes_a_value_that_no_increments_explain() {
        let (summary, sentence, ops) = broken(&[(Make(0), Done), (Add(0, 3), Done), (Read(6), Done)]);
        assert_eq!((summary.as_str(), ops), ("counter 3: a value that no increments explain", 1));
        assert_eq!(sentence, "process 2 read 6 from key 3, but no increment that may have happened makes 6");
        let (_, sentence, ops) =
            broken(&[(Make(0), Done), (Add(0, 3), Done), (Add(6, 7), Open), (Read(7), Done)]);
        assert_eq!(
            (sentence.as_str(), ops),
            (
                "process 2 replaced 6 by 7 in key 3 and process 3 read 7 from key 3, but no increment that \
                 may have happened makes 6",
                2
            )
        );
    }

    #[test]
    fn a_value_that_nobody_can_have_meant_is_no_increment_either() {
        for value in [-1, 99] {
            let ops = [
                (Make(0), Done),
                (Add(0, 1), Done),
                (Read(value), Done),
                (Add(value, 2), Open),
                (Read(1), Done),
            ];
            assert_eq!(broken(&ops).0, "counter 3: a value that no increments explain");
        }
    }

    #[test]
    fn a_refused_increment_that_was_made_is_named() {
        let (summary, sentence, ops) = broken(&[(Make(0), Done), (Add(0, 3), NotSent), (Read(3), Done)]);
        assert_eq!((summary.as_str(), ops), ("counter 3: an increment that was refused was made", 2));
        assert_eq!(
            sentence,
            "process 2 read 3 from key 3, but process 1 was refused to replace 0 by 3 in key 3 \
             (not-sent), and nobody else makes 3"
        );
    }

    #[test]
    fn a_read_that_goes_back_accuses_only_who_promised_that_none_does() {
        let ops = [(Make(0), Done), (Add(0, 1), Done), (Read(0), Done), (Read(1), Done)];
        let (summary, sentence, found) = broken(&ops);
        assert_eq!((summary.as_str(), found), ("counter 3: a read went back", 2));
        assert_eq!(
            sentence,
            "process 1 replaced 0 by 1 in key 3, but process 2 read 0 from key 3, which began \
             afterwards"
        );
        assert_eq!(check(&history(&ops), Reads::Stale).verdict, Verdict::Valid);
    }

    #[test]
    fn nothing_is_shown_before_it_was_asked_for() {
        let (summary, sentence, ops) = broken(&[(Make(0), Done), (Read(1), Done), (Add(0, 1), Done)]);
        assert_eq!((summary.as_str(), ops), ("counter 3: a value was there before it was asked for", 2));
        assert_eq!(
            sentence,
            "process 1 read 1 from key 3, but process 2 replaced 0 by 1 in key 3, which began \
             afterwards"
        );
    }

    #[test]
    fn a_counter_begins_once() {
        let again = [(Make(0), Done), (Add(0, 1), Done), (Make(2), Done), (Read(2), Done)];
        assert_eq!(broken(&again).0, "counter 3: it began anew above what was there");
        let tried = [(Make(0), Open), (Make(1), Done), (Add(1, 2), Done), (Read(2), Done)];
        assert_eq!(judged(&tried).verdict, Verdict::Valid);
    }

    #[test]
    fn what_is_no_counter_or_was_never_read_afterwards_is_not_decided() {
        let twice = [(Make(0), Done), (Add(0, 2), Open), (Add(1, 2), Open), (Read(0), Done)];
        assert_eq!(judged(&twice).verdict, Verdict::Unknown);
        assert_eq!(judged(&[(Make(0), Done), (Add(5, 2), Done), (Read(2), Done)]).verdict, Verdict::Unknown);
        let unread = judged(&[(Make(0), Done), (Add(0, 1), Done), (Read(1), Done), (Add(1, 2), Done)]);
        assert_eq!((unread.verdict, &unread.evidence["never_read"]), (Verdict::Unknown, &json!(1)));
        assert_eq!(judged(&[(Make(0), Done)]).verdict, Verdict::Unknown);
    }

    /// Increments and reads at random, on values that somebody asks for or nobody does.
    fn random(chance: &mut Chance) -> History {
        let mut times: Vec<u64> = (10..30).collect();
        let mut moment = |chance: &mut Chance| times.remove(chance.below(times.len()));
        let mut values = vec![0];
        let mut ops = vec![(Make(0), Done, 0, 1)];
        for _ in 0..chance.below(8_usize) {
            let (one, other) = (moment(chance), moment(chance));
            let known = values[values.len() - 1 - chance.below(values.len().min(3))];
            let (what, end) = if chance.percent(45) {
                (Read(if chance.percent(3) { 99 } else { known }), Done)
            } else {
                let to = values[values.len() - 1] + 1 + chance.below(3_i64);
                values.push(to);
                let end = [Done, Done, Done, Open, Open, NotSent][chance.below(6_usize)];
                (Add(known, to), end)
            };
            ops.push((what, end, one.min(other), one.max(other)));
        }
        timed(&ops)
    }

    #[test]
    fn it_accuses_exactly_what_has_no_order() {
        let mut chance = Chance(7);
        let mut verdicts = [0; 2];
        for _ in 0..20_000 {
            let history = random(&mut chance);
            let found = check(&history, Reads::Current);
            let order = linearizable::judge(&history, &Budget::default(), 1, false).result;
            let is_broken = order.verdict == Verdict::Invalid;
            assert_eq!(found.verdict == Verdict::Invalid, is_broken, "{}\n{history:#?}", found.summary);
            verdicts[usize::from(is_broken)] += 1;
        }
        assert!(verdicts.iter().all(|number| *number > 2000), "{verdicts:?}");
    }

    #[test]
    fn a_counterexample_is_a_violation_by_itself_beside_the_beginning() {
        let mut chance = Chance(8);
        for _ in 0..5000 {
            let history = random(&mut chance);
            let Some(found) = check(&history, Reads::Current).counterexample else { continue };
            let kept = |op: &Op| made(op) == Some(0) || found.ops.iter().any(|kept| kept.index == op.index);
            let ops: Vec<&Op> = history.ops().iter().filter(|op| kept(op)).collect();
            let alone = linearizable::check_key(3, &ops, &Budget::default());
            assert_eq!(alone.verdict, Verdict::Invalid, "{}", found.sentence);
        }
    }
}
