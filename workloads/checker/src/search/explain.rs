//! Says in one sentence why there is no order of an object's operations: which one has no place, and what the
//! object could be until it returned.

use super::frontier::{Frontier, events};
use super::shrink::Shrunk;
use super::{Found, frontier};
use crate::budget::{Budget, Meter};
use crate::history::Datum;
use crate::model::{Call, Model};
use crate::verdict::{Counterexample, OpView};

/// Of the states that are possible this many are told.
pub(crate) const MAX_STATES: usize = 4;
const STEPS: u64 = 1_000_000;

/// The counterexample of a violation among these operations of a part of the object.
pub(super) fn counterexample<M: Model>(
    model: &M,
    shrunk: &Shrunk<M::Op>,
    sentence: Option<String>,
    calls: &[&Call<M::Op>],
    budget: &Budget,
) -> Counterexample {
    let culprit = match shrunk.plain {
        Found::NoOrder { stuck_at } => Some(stuck_at),
        _ => stuck_at(model, shrunk, budget),
    };
    let sentence = sentence.unwrap_or_else(|| told(model, shrunk, culprit, calls, budget));
    let rechecked = matches!(shrunk.plain, Found::NoOrder { .. });
    let view = |at: usize, impossible: bool| {
        let call = &shrunk.part[at];
        OpView { call: described(model, call, calls), ..view(model, call, impossible) }
    };
    Counterexample::drawn(sentence, shrunk.part.len(), culprit, view, calls.len(), rechecked)
}

/// What was asked and answered, of which so much is left.
fn described<M: Model>(model: &M, left: &Call<M::Op>, calls: &[&Call<M::Op>]) -> String {
    match calls.iter().find(|call| call.index == left.index) {
        Some(whole) => model.describe_left(&whole.op, &left.op),
        None => model.describe(&left.op),
    }
}

fn stuck_at<M: Model>(model: &M, shrunk: &Shrunk<M::Op>, budget: &Budget) -> Option<usize> {
    let mut meter = Meter::new(&budget.with_steps(STEPS.min(budget.steps)));
    match frontier::search(model, &shrunk.calls(), false, &mut meter) {
        Found::NoOrder { stuck_at } => Some(stuck_at),
        _ => None,
    }
}

/// Names the operation that has no place, and what the object could be until it returned.
fn told<M: Model>(
    model: &M,
    shrunk: &Shrunk<M::Op>,
    culprit: Option<usize>,
    calls: &[&Call<M::Op>],
    budget: &Budget,
) -> String {
    let Some(culprit) = culprit else { return "no order explains these operations".to_owned() };
    let call = &shrunk.part[culprit];
    let what = format!("{} by process {} has no place", described(model, call, calls), call.process);
    let states = until(model, &shrunk.calls(), culprit, budget).unwrap_or_default();
    let shown: Option<Vec<String>> = states.iter().take(MAX_STATES).map(|state| model.show(state)).collect();
    let object = model.name();
    match shown {
        Some(shown) if shown.len() == 1 => {
            format!(
                "{what}: whatever the order of the others, the {object} was {} until it returned",
                shown[0]
            )
        }
        Some(shown) if !shown.is_empty() => {
            let more = states.len() > MAX_STATES;
            let shown = shown.join(" or ");
            let more = if more { " or one of more states like these" } else { "" };
            format!("{what}: until it returned, the {object} was {shown}{more}, and it fits none of these")
        }
        _ => format!("{what}: it fits none of the states that the others allow until it returned"),
    }
}

/// What the object can be until the culprit returns; no more states than are told, and one.
pub(crate) fn until<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    culprit: usize,
    budget: &Budget,
) -> Option<Vec<M::State>> {
    let mut meter = Meter::new(&budget.with_steps(STEPS.min(budget.steps)));
    let mut frontier = Frontier::new(model, false);
    for (rank, at) in events(calls) {
        if calls[at].call == rank {
            frontier.called(at, calls[at].op.clone(), calls[at].ret).ok()?;
        } else if at == culprit {
            return frontier.may_hold(MAX_STATES + 1, &mut meter).ok();
        } else if !frontier.returned(at, &mut meter).ok()? {
            return None;
        }
    }
    None
}

/// How an operation is drawn.
pub(crate) fn view<M: Model>(model: &M, call: &Call<M::Op>, impossible: bool) -> OpView {
    let described = model.describe(&call.op);
    OpView {
        index: call.index,
        process: call.process,
        f: described.split([' ', '(']).next().unwrap_or_default().to_owned(),
        key: model.part(&call.op).map_or(Datum::Nil, |part| model.part_name(part)),
        value: Datum::Nil,
        call: described,
        changes: model.changes(&call.op),
        invoke_ns: call.invoke_ns,
        complete_ns: call.complete_ns,
        outcome: call.outcome(),
        node: None,
        session: None,
        version: None,
        impossible,
    }
}
