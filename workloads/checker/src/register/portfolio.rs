//! Which algorithm is tried when, and what is made of its answer.

use super::blocks::{self, Tested};
use super::problem::{NIL, Problem, Val, index};
use super::repair::Unrepaired;
use super::spares::asked_for;
use super::{order, part, repair, witness};
use crate::budget::{Budget, Meter};
use crate::model::Call;
use crate::model::register::{Action, Register, calls};
use crate::search::shrink::{self, Object, Shrunk};
use crate::search::{self, Algorithm, Found, How};

/// The answer about one register.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The answer itself.
    pub decision: Decision,
    /// Who gave it.
    pub decided_by: Option<Algorithm>,
}

/// Linearizable or not.
#[derive(Clone, Debug)]
pub enum Decision {
    /// An order exists.
    Linearizable {
        /// The confirmed order by indices of entries. The breadth-first search has one only if it was asked
        /// for.
        witness: Option<Vec<usize>>,
    },
    /// None exists: this part of the entries shows it.
    Violation(Shrunk<Action>),
    /// Not decided.
    Undecided {
        /// Why.
        reason: String,
    },
}

/// Judges one register.
#[must_use]
pub fn check(problem: &Problem, budget: &Budget) -> Judgement {
    judge(problem, budget, false)
}

/// Judges one register; a valid decision has an order if `wants_order`, a violation the smallest part that
/// shows it.
#[must_use]
pub fn judge(problem: &Problem, budget: &Budget, wants_order: bool) -> Judgement {
    let Decided { answer, by } = decide(problem, budget, wants_order);
    match answer {
        Answer::Linearizable { witness } => {
            Judgement { decision: Decision::Linearizable { witness }, decided_by: by }
        }
        Answer::Refuted(refutation) => violation(refutation.explain(problem, budget), by),
        Answer::Undecided { reason } => {
            Judgement { decision: Decision::Undecided { reason }, decided_by: None }
        }
    }
}

struct Decided {
    answer: Answer,
    by: Option<Algorithm>,
}

enum Answer {
    Linearizable { witness: Option<Vec<usize>> },
    Refuted(Refutation),
    Undecided { reason: String },
}

/// How it is known that there is no order, from where an explanation begins.
enum Refutation {
    /// What is known of these values contradicts itself, in these entries.
    Contradiction { values: Vec<Val>, named: Vec<usize> },
    /// A search of these entries could not place this one of them.
    Stuck { at: usize, among: Vec<usize> },
    /// A part is known already.
    Shown(Shrunk<Action>),
}

impl Refutation {
    fn explain(self, problem: &Problem, budget: &Budget) -> Shrunk<Action> {
        let register = Register::default();
        let object = Object::plain(&register);
        match self {
            Self::Contradiction { values, named } => {
                let (few, from) = part::of_values(problem, values);
                let few = calls(&few).into_iter().zip(from).map(|(call, at)| (at, call));
                let is_refusal = |call: &Call<Action>| matches!(call.op, Action::Refused(_));
                // A refusal and all that it contradicts are shown; no other refusal is.
                let (held, few): (Vec<_>, Vec<_>) = few
                    .filter(|(at, call)| !is_refusal(call) || named.contains(at))
                    .partition(|(_, call)| is_refusal(call));
                if held.is_empty() {
                    let shrunk = shrink::by_elements(object, few, budget);
                    return shrunk.unwrap_or_else(|| {
                        shrink::as_it_is(object, calls(problem).into_iter().enumerate().collect(), budget)
                    });
                }
                let mut few: Vec<_> = few
                    .into_iter()
                    .filter(|(at, call)| !call.op.changes_nothing() || named.contains(at))
                    .chain(held)
                    .collect();
                few.sort_unstable_by_key(|(_, call)| call.call);
                shrink::as_it_is(object, few, budget)
            }
            Self::Stuck { at, among } => {
                let all = calls(problem);
                let few: Vec<&Call<Action>> = among.iter().map(|&at| &all[at]).collect();
                let object = Object { seen: &Register::seeing(&few), ..object };
                let shrunk = shrink::from_stuck(object, &few, at, budget);
                let past = shrunk.past.map(|at| among[at]);
                Shrunk { from: shrunk.from.into_iter().map(|at| among[at]).collect(), past, ..shrunk }
            }
            Self::Shown(shrunk) => shrunk,
        }
    }
}

/// What is known without a search of the whole; else by the searches.
fn decide(problem: &Problem, budget: &Budget, wants_order: bool) -> Decided {
    let by_blocks = match blocks::test(problem) {
        Tested::Refuted(contradiction) => {
            let (values, named) = blocks::values_of(problem, &contradiction);
            return refuted(Refutation::Contradiction { values, named }, Algorithm::Shortcut);
        }
        Tested::Order(order) if order::verify(problem, &order).is_ok() => {
            return linearizable(order, Algorithm::Shortcut);
        }
        Tested::Order(order) => Some(order),
        Tested::Ambiguous => {
            if let Some(contradiction) = among_unique_values(problem) {
                return refuted(contradiction, Algorithm::Shortcut);
            }
            None
        }
    };
    if let Some(why) = budget.interrupt.rung() {
        return undecided(why.to_string());
    }
    if let Some(order) = witness::by_version(problem)
        && order::verify(problem, &order).is_ok()
    {
        return linearizable(order, Algorithm::Witness);
    }
    if let Some(order) = by_blocks
        && let Some(decided) = with_refusals(problem, &order, budget)
    {
        return decided;
    }
    by_search(problem, budget, wants_order)
}

fn refuted(refutation: Refutation, by: Algorithm) -> Decided {
    Decided { answer: Answer::Refuted(refutation), by: Some(by) }
}

fn linearizable(order: Vec<usize>, by: Algorithm) -> Decided {
    Decided { answer: Answer::Linearizable { witness: Some(order) }, by: Some(by) }
}

fn undecided(reason: String) -> Decided {
    Decided { answer: Answer::Undecided { reason }, by: None }
}

/// A contradiction among the values that come from one operation each, in a history where others come from
/// several: the part of those values is fair, and the test by blocks applies to it.
fn among_unique_values(problem: &Problem) -> Option<Refutation> {
    let values = (NIL + 1..).take(problem.values() - 1);
    let unique: Vec<Val> = values.filter(|&value| problem.is_single_source(value)).collect();
    if unique.is_empty() {
        return None;
    }
    let (part, from) = part::of_values(problem, unique);
    match blocks::test(&part) {
        Tested::Refuted(contradiction) => {
            let (values, named) = blocks::values_of(&part, &contradiction);
            let named = named.into_iter().map(|at| from[at]).collect();
            Some(Refutation::Contradiction { values, named })
        }
        Tested::Order(_) | Tested::Ambiguous => None,
    }
}

/// The order by blocks with the refused compare-and-sets in it; where that can't be had, what is around the
/// one that has no place may be a violation by itself.
fn with_refusals(problem: &Problem, order: &[usize], budget: &Budget) -> Option<Decided> {
    let placed = order::place_what_fits(problem, order, &mut Meter::new(budget)).ok()?;
    let settled =
        if placed.misfits == 0 { Ok(placed.order) } else { repair::settle(problem, placed.order, budget) };
    match settled {
        Ok(order) if order::verify(problem, &order).is_ok() => {
            Some(linearizable(order, Algorithm::ShortcutOrder))
        }
        Err(Unrepaired::Around(at)) => {
            let (register, whole) = (Register::default(), calls(problem));
            let whole: Vec<&Call<Action>> = whole.iter().collect();
            let shrunk = shrink::around(Object::plain(&register), &whole, at, budget)?;
            Some(refuted(Refutation::Shown(shrunk), Algorithm::ShortcutOrder))
        }
        Ok(_) | Err(Unrepaired::Exhausted(_)) => None,
    }
}

/// By the searches of any object. A change of unknown fate whose value nobody asks for may be absent, unless
/// a refusal may be due to it.
fn by_search(problem: &Problem, budget: &Budget, wants_order: bool) -> Decided {
    let asked_for = asked_for(problem);
    let may_be_absent = |at: usize| {
        let entry = &problem.entries[at];
        let unasked = entry.action.written().is_some_and(|to| !asked_for[index(to)]);
        entry.is_open() && unasked && !problem.has_refused
    };
    let kept: Vec<usize> = (0..problem.entries.len()).filter(|&at| !may_be_absent(at)).collect();
    let whole = calls(problem);
    let few: Vec<&Call<Action>> = kept.iter().map(|&at| &whole[at]).collect();
    let register = Register::seeing(&few);
    match search::decide(&register, &few, budget, wants_order) {
        search::Decision::Order(order, by) => {
            let order: Option<Vec<usize>> = order.map(|order| order.iter().map(|&at| kept[at]).collect());
            match &order {
                Some(order) if order::verify(problem, order).is_err() => {
                    undecided(format!("{} found an order that is none: a bug of this checker", by.as_str()))
                }
                _ => Decided { answer: Answer::Linearizable { witness: order }, by: Some(by) },
            }
        }
        search::Decision::Refuted { how: How::Stuck(at), by } => {
            refuted(Refutation::Stuck { at, among: kept }, by)
        }
        search::Decision::Refuted { how: How::Elements(..), .. } => {
            undecided("the searches know no elements".to_owned())
        }
        search::Decision::Undecided(reason) => undecided(reason),
    }
}

/// A violation stands only if the part of the history that is shown for it is one by the plain search too.
/// The plain search may give up on a part that could not be made small; an outright contradiction between the
/// two means that this checker is wrong somewhere, and then nothing is claimed.
fn violation(shrunk: Shrunk<Action>, by: Option<Algorithm>) -> Judgement {
    let decision = match shrunk.plain {
        Found::NoOrder { .. } | Found::GaveUp { .. } => Decision::Violation(shrunk),
        Found::Order(_) => Decision::Undecided {
            reason: format!(
                "{} refuted the history, the plain search did not: a bug of this checker",
                by.map_or("nobody", Algorithm::as_str)
            ),
        },
    };
    Judgement { decision, decided_by: by }
}
