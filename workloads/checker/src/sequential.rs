//! Numbered names: a number is given once, ever, and later creates get greater ones.
//!
//! A sequential create asks for a name of its own and gets a number from the place that it is made in.
//! Whatever was deleted meanwhile, and whichever session asked, a number never comes again; of two creates of
//! which one had ended before the other began, the first has the smaller number, so each process sees its own
//! numbers rise. A listing shows each number once, and none that was given to nobody: numbers that no
//! acknowledgement names belong to creates of unknown fate, and there can't be more of them than of those.
//!
//! Gaps are no violation: a create that was lost on the way takes its number with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::figures::count;
use crate::history::{History, Op, OpKind, Outcome, describe};
use crate::verdict::{CheckResult, Verdict};
use crate::versions::{after_newest, counterexample};

/// The name of the check.
pub const NAME: &str = "sequential";

type Broken<'a> = (&'static str, String, Vec<&'a Op>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    given: usize,
    open: usize,
    deleted: usize,
    listings: usize,
    listed_of_unknown_fate: usize,
}

/// Judges every place.
#[must_use]
pub fn check(history: &History) -> CheckResult {
    let mut counts = Counts::default();
    for (key, ops) in history.by_key() {
        if let Err((what, why, culprits)) = judge(&ops, &mut counts) {
            return CheckResult::new(NAME, Verdict::Invalid, format!("place {key}: {what}"))
                .with_evidence(json!({"key": key, "kind": what, "operations": ops.len()}))
                .with_counterexample(counterexample(why, &culprits, ops.len()));
        }
    }
    let Counts { given, open, deleted, listings, listed_of_unknown_fate } = counts;
    let evidence = json!({"given": given, "open": open, "deleted": deleted, "listings": listings,
        "listed_of_unknown_fate": listed_of_unknown_fate});
    if given == 0 {
        return CheckResult::new(NAME, Verdict::Unknown, "no number was given, so nothing was tested")
            .with_evidence(evidence);
    }
    let summary = format!(
        "{} numbers, each given once and in the order of time, while {} nodes were deleted ({} creates of \
            unknown fate)",
        count(given),
        count(deleted),
        count(open)
    );
    CheckResult::new(NAME, Verdict::Valid, summary).with_evidence(evidence)
}

fn judge<'a>(ops: &[&'a Op], counts: &mut Counts) -> Result<(), Broken<'a>> {
    let given = given_once(ops)?;
    rising(ops)?;
    let open = ops
        .iter()
        .filter(|op| op.outcome == Outcome::Info && matches!(op.kind(), OpKind::Create { .. }))
        .map(|op| op.call);
    let open: Vec<u32> = open.collect();
    let mut strangers: BTreeSet<i64> = BTreeSet::new();
    let mut listings: Vec<(&Op, &[i64])> = ops
        .iter()
        .filter(|op| op.outcome == Outcome::Ok)
        .filter_map(|op| Some((*op, op.list().map(|list| &list[..])?)))
        .collect();
    listings.sort_by_key(|(read, _)| read.ret);
    for &(read, list) in &listings {
        listed_once(read, list)?;
        for number in list {
            match given.get(number) {
                Some(create) if create.call > read.ret => {
                    let why = format!(
                        "{} with number {number}, but {} only afterwards",
                        describe(read),
                        describe(create)
                    );
                    return Err(("a number is there before it was given", why, vec![read, *create]));
                }
                Some(_) => {}
                None => {
                    strangers.insert(*number);
                }
            }
        }
        // Operations are in the order of their calls.
        let may_be = open.partition_point(|call| *call < read.ret);
        if strangers.len() > may_be {
            let why = format!(
                "{}: {} numbers were seen by then that were given to nobody (the newest is {}), but only \
                 {may_be} creates had an unknown fate",
                describe(read),
                strangers.len(),
                strangers.last().copied().unwrap_or_default()
            );
            return Err(("more nodes were made than anybody asked for", why, vec![read]));
        }
    }
    counts.given += given.len();
    counts.open += open.len();
    let is_deletion = |op: &&&Op| op.outcome == Outcome::Ok && matches!(op.kind(), OpKind::Delete { .. });
    counts.deleted += ops.iter().filter(is_deletion).count();
    counts.listings += listings.len();
    counts.listed_of_unknown_fate += strangers.len();
    Ok(())
}

fn number(op: &Op) -> Option<i64> {
    match op.kind() {
        OpKind::Create { number, .. } if op.outcome == Outcome::Ok => number,
        _ => None,
    }
}

/// Who got which number.
fn given_once<'a>(ops: &[&'a Op]) -> Result<BTreeMap<i64, &'a Op>, Broken<'a>> {
    let mut given: BTreeMap<i64, &Op> = BTreeMap::new();
    for &op in ops {
        let Some(number) = number(op) else { continue };
        if let Some(first) = given.insert(number, op) {
            let why = format!("{} and {}: number {number} was given twice", describe(first), describe(op));
            return Err(("a number was given twice", why, vec![first, op]));
        }
    }
    Ok(given)
}

/// A create that began when another had ended has the greater number.
fn rising<'a>(ops: &[&'a Op]) -> Result<(), Broken<'a>> {
    for (newest, op) in after_newest(ops, number) {
        if number(op) > number(newest) {
            continue;
        }
        let own = if op.process == newest.process { " by the same process" } else { "" };
        let why =
            format!("{}, but {}, which began afterwards{own}, is behind it", describe(newest), describe(op));
        return Err(("numbers went back in time", why, vec![newest, op]));
    }
    Ok(())
}

fn listed_once<'a>(read: &'a Op, list: &[i64]) -> Result<(), Broken<'a>> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let why = format!("{} with number {} in it twice", describe(read), pair[0]);
            Err(("two nodes have one number", why, vec![read]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Function, Value};

    /// What was done: a create that got a number, one of unknown fate, a deletion, or a listing.
    enum Do {
        Create(i64),
        Open,
        Delete(i64),
        List(&'static [i64]),
    }
    use Do::{Create, Delete, List, Open};

    fn timed(ops: &[(Do, u64, u64)]) -> History {
        let mut events = Vec::new();
        for ((what, call, ret), process) in ops.iter().zip(0_u64..) {
            let name = i64::try_from(process).unwrap() + 100;
            let (f, asked, kind, told) = match what {
                Create(number) => {
                    (Function::CREATE, Value::One(name), EventKind::Ok, Value::Pair(Some(name), *number))
                }
                Open => (Function::CREATE, Value::One(name), EventKind::Info, Value::One(name)),
                Delete(name) => (Function::DELETE, Value::One(*name), EventKind::Ok, Value::One(*name)),
                List(list) => (Function::READ, Value::Null, EventKind::Ok, Value::List((*list).into())),
            };
            events.push(Event::new(process, EventKind::Invoke, f, 2, asked, *call));
            events.push(Event::new(process, kind, f, 2, told, *ret));
        }
        events.sort_by_key(|event| event.time);
        History::from_events(events).unwrap()
    }

    fn judged(ops: Vec<Do>) -> CheckResult {
        let timed_ops: Vec<(Do, u64, u64)> =
            ops.into_iter().zip(0_u64..).map(|(op, at)| (op, at * 10, at * 10 + 5)).collect();
        check(&timed(&timed_ops))
    }

    fn broken(ops: Vec<Do>) -> (String, usize) {
        let result = judged(ops);
        assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
        (result.summary, result.counterexample.unwrap().ops.len())
    }

    #[test]
    fn numbers_that_rise_with_gaps_and_deletions_are_valid() {
        let result =
            judged(vec![Create(0), Open, Create(2), Delete(100), List(&[1, 2]), Create(7), List(&[7, 2])]);
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
        assert_eq!(result.evidence["listed_of_unknown_fate"], 1);
    }

    #[test]
    fn a_number_given_again_after_a_deletion_is_named_with_both_creates() {
        let (summary, ops) = broken(vec![Create(0), Create(1), Delete(101), Create(1)]);
        assert_eq!((summary.as_str(), ops), ("place 2: a number was given twice", 2));
    }

    #[test]
    fn a_later_create_with_a_smaller_number_is_a_violation_and_an_overlapping_one_is_not() {
        assert_eq!(broken(vec![Create(5), Create(3)]), ("place 2: numbers went back in time".into(), 2));
        let overlapping = timed(&[(Create(5), 0, 10), (Create(3), 5, 12), (Create(6), 13, 14)]);
        assert_eq!(check(&overlapping).verdict, Verdict::Valid);
    }

    #[test]
    fn a_listing_shows_each_number_once_and_none_of_nobodys() {
        assert_eq!(broken(vec![Create(0), List(&[0, 0])]).1, 1);
        let (summary, _) = broken(vec![Create(0), List(&[0, 1])]);
        assert!(summary.ends_with("more nodes were made than anybody asked for"), "{summary}");
        // One create of unknown fate may have made one node, and not two.
        assert_eq!(judged(vec![Create(0), Open, List(&[0, 1])]).verdict, Verdict::Valid);
        assert_eq!(broken(vec![Create(0), Open, List(&[0, 1]), List(&[0, 2])]).1, 1);
        assert_eq!(broken(vec![List(&[4]), Create(4)]).1, 2);
    }

    #[test]
    fn no_number_at_all_proves_nothing() {
        assert_eq!(judged(vec![Open, List(&[])]).verdict, Verdict::Unknown);
    }
}
