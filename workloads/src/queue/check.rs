//! The checks of queues: functions of the history, and of last reads.

use std::collections::{BTreeMap, BTreeSet};

use checker::durability::DURABILITY;
use checker::figures::count;
use checker::history::{Op, Outcome, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use serde_json::json;

use super::claims::Claims;
use super::order;
use super::told::{Finding, Told};
use crate::case::Case;
use crate::promise::Promise;

/// What all queues hold, counted.
#[derive(Default)]
struct Counts {
    put: usize,
    handed: usize,
    done: usize,
}

impl Counts {
    fn add(&mut self, told: &Told<'_>) {
        let elements = || told.elements.values();
        self.put += elements().filter(|element| element.put.outcome == Outcome::Ok).count();
        self.handed += elements().map(|element| element.handed.len()).sum::<usize>();
        self.done += elements().filter(|element| element.done.is_some()).count();
    }
}

fn accused(name: &str, key: u64, (sentence, ops): &Finding<'_>, of: usize) -> CheckResult {
    CheckResult::new(name, Verdict::Invalid, format!("queue {key}: {sentence}"))
        .with_evidence(json!({"key": key}))
        .with_counterexample(counterexample(sentence.clone(), ops, of))
}

/// The check `queue`: what is handed out was put, is not done already, and comes in order.
pub(super) fn queue(case: &Case<'_>) -> CheckResult {
    const NAME: &str = "queue";
    let mut counts = Counts::default();
    let at_least_once = case.beside.promise == Promise::AtLeastOnce;
    for (key, ops) in case.history.by_key() {
        let told = match Told::of(&ops) {
            Ok(told) => told,
            Err(finding) => return accused(NAME, key, &finding, ops.len()),
        };
        let mut states = case.beside.final_states.iter().filter(|state| state.key == key);
        let again = || told.again().or_else(|| order::overtaken(&told));
        let found = (!at_least_once)
            .then(again)
            .flatten()
            .or_else(|| states.find_map(|state| told.shown(state, case.extent.is_whole(), at_least_once)));
        if let Some(finding) = found {
            return accused(NAME, key, &finding, told.ops);
        }
        counts.add(&told);
    }
    let Counts { put, handed, done } = counts;
    let evidence = json!({"put": put, "handed": handed, "done": done});
    if handed == 0 {
        let words = "nothing was handed out, so nothing was tested";
        return CheckResult::new(NAME, Verdict::Unknown, words).with_evidence(evidence);
    }
    if at_least_once {
        let words = format!(
            "{} elements were put and handed out {} times, none that nobody had put; {} are done",
            count(put),
            count(handed),
            count(done)
        );
        return CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence);
    }
    let words = format!(
        "{} elements were put and handed out {} times, in their order; none of {} was handed out again once \
         it was done",
        count(put),
        count(handed),
        count(done)
    );
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence)
}

/// Until when each process was known to be there: to the end of its last operation, or to the beginning of
/// one that never ended.
fn known(ops: &[Op]) -> BTreeMap<u64, u64> {
    let mut known = BTreeMap::new();
    for op in ops {
        let end = op.complete_ns.filter(|_| op.outcome != Outcome::Info).unwrap_or(op.invoke_ns);
        known.entry(op.process).and_modify(|known: &mut u64| *known = end.max(*known)).or_insert(end);
    }
    known
}

/// The check `exclusion`: no two claims of an element overlap, and their tokens grow.
pub(super) fn exclusion(case: &Case<'_>) -> CheckResult {
    const NAME: &str = "exclusion";
    let mut claimed = 0;
    let known = known(case.history.ops());
    for (key, ops) in case.history.by_key() {
        let claims = Claims::of(&ops, &known);
        if let Some(finding) = claims.broken() {
            return accused(NAME, key, &finding, ops.len());
        }
        claimed += claims.number();
    }
    if claimed == 0 {
        let words = "no answer tells when a claim holds, so there is nothing to compare";
        return CheckResult::nothing_judged(NAME, words);
    }
    let words =
        format!("none of {} claims overlapped another of its element, and tokens grew", count(claimed));
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(json!({"claims": claimed}))
}

/// The check that what was put is there at the end, or was done.
pub(super) fn durable(case: &Case<'_>) -> CheckResult {
    if !case.extent.is_whole() {
        let words = "the history does not say what was done after its end";
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    let (mut left, mut excused) = (0, 0);
    let mut unread = None;
    for (key, ops) in case.history.by_key() {
        // What can't be a queue's history is another check's.
        let Ok(told) = Told::of(&ops) else { continue };
        left += told.lasting().count();
        for member in &case.beside.members {
            let mut states = case.beside.final_states.iter();
            let state = states.find(|state| (state.member, state.key) == (*member, key));
            let Some(list) = state.and_then(|state| state.list.as_ref()) else {
                unread
                    .get_or_insert_with(|| format!("queue {key} was not read at the end on member {member}"));
                continue;
            };
            let list: BTreeSet<i64> = list.iter().copied().collect();
            let missing: Vec<(i64, &Op)> =
                told.lasting().filter(|(value, _)| !list.contains(value)).collect();
            if let Some((value, put)) = missing.first().filter(|_| missing.len() > told.may_have_taken) {
                let sentence = format!(
                    "{}, but at the end member {member} does not have {value}, with which nobody was \
                     done; it lacks {} of queue {key}, and {} dequeues may have taken one",
                    describe(put),
                    count(missing.len()),
                    count(told.may_have_taken)
                );
                return accused(DURABILITY, key, &(sentence, vec![*put]), told.ops);
            }
            excused = excused.max(missing.len());
        }
    }
    if let Some(words) = unread {
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    let words = format!(
        "all {} elements that are not done are on each of {} members; {excused} at most may have been taken \
         by a dequeue without an answer",
        count(left),
        case.beside.members.len()
    );
    CheckResult::new(DURABILITY, Verdict::Valid, words).with_evidence(json!({"left": left}))
}
