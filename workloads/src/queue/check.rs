//! The checks of queues: functions of the history, and of last reads.

use std::collections::BTreeMap;

use checker::durability::{DURABILITY, FinalState};
use checker::figures::count;
use checker::history::{NEVER, Op, OpKind, Outcome, Rank, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use serde_json::json;

use super::claims::Claims;
use super::order;
use crate::case::Case;

/// What was found, in a sentence, with the operations that show it.
pub(super) type Finding<'a> = (String, Vec<&'a Op>);

/// An element, and what became of it.
pub(super) struct Element<'a> {
    pub(super) put: &'a Op,
    /// The dequeues that told it, by their calls.
    pub(super) handed: Vec<&'a Op>,
    /// Whose answer said first that nobody is handed it again.
    done: Option<&'a Op>,
    /// An acknowledgement has no answer that tells.
    may_be_done: bool,
}

/// One queue, as its history tells of it.
pub(super) struct Told<'a> {
    pub(super) elements: BTreeMap<i64, Element<'a>>,
    /// When somebody may have had an element who was not told one: from the call of the dequeue to its end.
    pub(super) blind: Vec<(Rank, Rank)>,
    /// Dequeues that may have taken an element for good.
    may_have_taken: usize,
    ops: usize,
}

/// Whether the answer of a dequeue is an element that is to be acknowledged.
fn is_handed_out(op: &Op) -> bool {
    op.list.is_some()
}

impl<'a> Told<'a> {
    /// What the operations of a queue tell, unless they can't be those of a queue.
    fn of(ops: &[&'a Op]) -> Result<Self, Finding<'a>> {
        let mut told =
            Self { elements: BTreeMap::new(), blind: Vec::new(), may_have_taken: 0, ops: ops.len() };
        for op in ops {
            let OpKind::Enqueue { value } = op.kind else { continue };
            let element = Element { put: op, handed: Vec::new(), done: None, may_be_done: false };
            if let Some(before) = told.elements.insert(value, element) {
                let sentence =
                    format!("{} and {}: an element is put once", describe(before.put), describe(op));
                return Err((sentence, vec![before.put, op]));
            }
        }
        for op in ops {
            match op.kind {
                OpKind::Dequeue { value } => told.dequeued(op, value)?,
                OpKind::Acknowledge { value } => told.acknowledged(op, value),
                _ => {}
            }
        }
        let hands_out = ops.iter().any(|op| is_handed_out(op) && matches!(op.kind, OpKind::Dequeue { .. }));
        if hands_out {
            told.may_have_taken = 0;
        }
        Ok(told)
    }

    fn dequeued(&mut self, op: &'a Op, value: Option<i64>) -> Result<(), Finding<'a>> {
        match (op.outcome, value) {
            (Outcome::Ok, Some(value)) => self.handed(op, value),
            (Outcome::Ok, None) => Ok(()),
            (Outcome::Fail, _) => {
                self.blind.push((op.call, op.ret));
                Ok(())
            }
            (Outcome::Info, _) => {
                self.blind.push((op.call, NEVER));
                self.may_have_taken += 1;
                Ok(())
            }
        }
    }

    /// Somebody was told an element: one that may be there, and is nobody's for good.
    fn handed(&mut self, op: &'a Op, value: i64) -> Result<(), Finding<'a>> {
        let Some(element) = self.elements.get_mut(&value) else {
            return Err((format!("{}, and nobody put {value}", describe(op)), vec![op]));
        };
        let put = element.put;
        if put.call > op.ret {
            let sentence = format!("{}, but {} only afterwards", describe(op), describe(put));
            return Err((sentence, vec![op, put]));
        }
        if put.outcome == Outcome::Fail {
            let why = put.error.as_deref().unwrap_or("refused");
            let sentence = format!(
                "{}, but {} and was told that it did not happen ({why})",
                describe(op),
                describe(put)
            );
            return Err((sentence, vec![put, op]));
        }
        element.handed.push(op);
        if !is_handed_out(op) {
            if let Some(first) = element.done {
                return Err((format!("{}, and {}", describe(first), describe(op)), vec![first, op]));
            }
            element.done = Some(op);
        }
        Ok(())
    }

    fn acknowledged(&mut self, op: &'a Op, value: i64) {
        let Some(element) = self.elements.get_mut(&value) else { return };
        match op.outcome {
            Outcome::Ok if element.done.is_none_or(|done| op.ret < done.ret) => element.done = Some(op),
            Outcome::Ok | Outcome::Fail => {}
            Outcome::Info => element.may_be_done = true,
        }
    }

    /// An element that is handed out although it is done.
    fn again(&self) -> Option<Finding<'a>> {
        self.elements.values().find_map(|element| {
            let done = element.done?;
            let again = element.handed.iter().find(|op| op.call > done.ret)?;
            Some((format!("{}, and afterwards {}", describe(done), describe(again)), vec![done, *again]))
        })
    }

    /// A last read that shows what can't be there.
    fn shown(&self, state: &FinalState, is_whole: bool) -> Option<Finding<'a>> {
        state.list.iter().flatten().find_map(|value| {
            let read = format!("at the end member {} has {value} in queue {}", state.member, state.key);
            match self.elements.get(value) {
                // What came behind the end of the history is not known.
                None => is_whole.then(|| (format!("{read}, which nobody put"), Vec::new())),
                Some(Element { done: Some(done), .. }) => {
                    Some((format!("{}, and {read}", describe(done)), vec![*done]))
                }
                Some(Element { put, .. }) if put.outcome == Outcome::Fail => Some((
                    format!("{} and was told that it did not happen, and {read}", describe(put)),
                    vec![*put],
                )),
                Some(_) => None,
            }
        })
    }

    /// What was put for certain, and can't be done: each must be there at the end.
    fn lasting(&self) -> impl Iterator<Item = (i64, &'a Op)> + '_ {
        let lasts = |element: &Element<'_>| {
            element.put.outcome == Outcome::Ok && element.done.is_none() && !element.may_be_done
        };
        self.elements
            .iter()
            .filter(move |(_, element)| lasts(element))
            .map(|(value, element)| (*value, element.put))
    }
}

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
    for (key, ops) in case.history.by_key() {
        let told = match Told::of(&ops) {
            Ok(told) => told,
            Err(finding) => return accused(NAME, key, &finding, ops.len()),
        };
        let states = case.beside.final_states.iter().filter(|state| state.key == key);
        let found = told
            .again()
            .or_else(|| order::overtaken(&told))
            .or_else(|| states.into_iter().find_map(|state| told.shown(state, case.extent.is_whole())));
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
    let words = format!(
        "{} elements were put and handed out {} times, in their order; none of {} was handed out again once \
         it was done",
        count(put),
        count(handed),
        count(done)
    );
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence)
}

/// The check `exclusion`: no two claims of an element overlap, and their tokens grow.
pub(super) fn exclusion(case: &Case<'_>) -> CheckResult {
    const NAME: &str = "exclusion";
    let mut claimed = 0;
    for (key, ops) in case.history.by_key() {
        let claims = Claims::of(&ops);
        if let Some(finding) = claims.broken() {
            return accused(NAME, key, &finding, ops.len());
        }
        claimed += claims.number();
    }
    let words = match claimed {
        0 => "no answer tells when a claim holds, so there is nothing to compare".to_owned(),
        some => format!("none of {} claims overlapped another of its element, and tokens grew", count(some)),
    };
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(json!({"claims": claimed}))
}

/// The check that what was put is there at the end, or was done.
pub(super) fn durable(case: &Case<'_>) -> CheckResult {
    if !case.extent.is_whole() {
        let words = "the history does not say what was done after its end";
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    let (mut left, mut excused) = (0, 0);
    for (key, ops) in case.history.by_key() {
        // What can't be a queue's history is another check's.
        let Ok(told) = Told::of(&ops) else { continue };
        left += told.lasting().count();
        for member in &case.beside.members {
            let mut states = case.beside.final_states.iter();
            let state = states.find(|state| (state.member, state.key) == (*member, key));
            let Some(list) = state.and_then(|state| state.list.as_ref()) else {
                let words = format!("queue {key} was not read at the end on member {member}");
                return CheckResult::new(DURABILITY, Verdict::Unknown, words);
            };
            let missing: Vec<(i64, &Op)> =
                told.lasting().filter(|(value, _)| !list.contains(value)).collect();
            if let Some((value, put)) = missing.first().filter(|_| missing.len() > told.may_have_taken) {
                let sentence = format!(
                    "{}, but at the end member {member} does not have {value}, which nobody was handed or \
                     has done; it lacks {} of queue {key}, and {} dequeues may have taken one",
                    describe(put),
                    count(missing.len()),
                    count(told.may_have_taken)
                );
                return accused(DURABILITY, key, &(sentence, vec![*put]), told.ops);
            }
            excused = excused.max(missing.len());
        }
    }
    let words = format!(
        "all {} elements that are not done are on each of {} members; {excused} at most may have been taken \
         by a dequeue without an answer",
        count(left),
        case.beside.members.len()
    );
    CheckResult::new(DURABILITY, Verdict::Valid, words).with_evidence(json!({"left": left}))
}
