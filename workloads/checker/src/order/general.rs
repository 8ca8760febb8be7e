//! Any model by the search alone.
//!
//! What can fairly be left out of a history of an unknown object: what asks for no change, and whole parts
//! that the model calls independent. A change can't, for nobody knows what leans on it.

use std::collections::BTreeSet;

use serde_json::json;

use super::graph::{Graph, Node, Span, at};
use super::object::Modelled;
use super::search::{Found, Task, search};
use super::{Algorithm, Condition, RealTime, explained, part, refuted, silent, unjudged};
use crate::budget::{Budget, Meter};
use crate::confirm::confirm;
use crate::history::Rank;
use crate::minimize::{Allowance, leave_out};
use crate::model::{Call, Model};
use crate::search::explain;
use crate::verdict::{Counterexample, Judged};

/// Steps for judging one candidate for a smaller violation, and how many are judged at most.
const CANDIDATE_STEPS: u64 = 200_000;
const MAX_CANDIDATES: u32 = 400;

/// Judges the calls.
pub(super) fn judge<M: Model>(
    model: &M,
    calls: &[Call<M::Op>],
    group: impl Fn(&Call<M::Op>) -> u64,
    condition: Condition,
    real_time: RealTime,
    budget: &Budget,
) -> Judged {
    // What asked for no change and was never answered says nothing.
    let calls: Vec<&Call<M::Op>> =
        calls.iter().filter(|call| !call.is_open() || model.changes(&call.op)).collect();
    if calls.is_empty() {
        return silent(condition, model.name());
    }
    let judge = General { model, group: &group, real_time };
    let spans = judge.spans(&calls);
    let parts = |call: &Call<M::Op>| model.part(&call.op).unwrap_or(0);
    let sets = part::apart(calls.iter().map(|call| (group(call), parts(call))));
    let evidence = json!({"ops": calls.len(), "judged_apart": sets.len()});
    let mut orders: Vec<Vec<Node>> = Vec::new();
    let mut undecided = None;
    for set in &sets {
        let subset: Vec<&Call<M::Op>> = set.iter().map(|&call| calls[call]).collect();
        match judge.search(&subset, true, &mut Meter::new(budget)) {
            Found::Order(order) => {
                let whole = |&call: &Node| super::graph::number(set[at(call)]);
                orders.push(order.iter().map(whole).collect());
            }
            Found::NoOrder { stuck } => {
                let stuck = stuck.first().map(|&call| subset[at(call)]);
                let counterexample = judge.counterexample(&subset, stuck, condition, budget);
                // A violation is one, whatever could not be decided of other parts.
                return match counterexample {
                    Ok(counterexample) => refuted(condition, counterexample, evidence, Algorithm::Search),
                    Err(reason) => unjudged(condition, reason),
                };
            }
            Found::GaveUp { why, placed } => {
                let why = why.map_or_else(|| "too many choices".to_owned(), |why| why.to_string());
                undecided =
                    Some(format!("{why} when at most {placed} of {} operations had a place", set.len()));
            }
        }
    }
    if let Some(reason) = undecided {
        return unjudged(condition, &format!("not decided within the budget: {reason}"));
    }
    let order = part::together(&spans, real_time, &orders);
    let mut state = model.initial();
    let places = order.iter().map(|&call| at(call));
    let confirmed = confirm(
        calls.len(),
        |call| spans[call].bound(real_time),
        places,
        |call| model.apply(&state, &calls[call].op).map(|next| state = next).is_some(),
    );
    if let Err(reason) = confirmed {
        return unjudged(condition, &format!("an order was found but not confirmed: {reason}"));
    }
    let indices = order.iter().map(|&call| calls[at(call)].index).collect();
    explained(condition, calls.len(), indices, evidence, vec![Algorithm::Search])
}

struct General<'a, M: Model, G> {
    model: &'a M,
    group: &'a G,
    real_time: RealTime,
}

impl<M: Model, G: Fn(&Call<M::Op>) -> u64> General<'_, M, G> {
    fn spans(&self, calls: &[&Call<M::Op>]) -> Vec<Span> {
        let span = |call: &&Call<M::Op>| Span {
            call: call.call,
            ret: call.ret,
            group: (self.group)(call),
            update: self.model.changes(&call.op),
        };
        calls.iter().map(span).collect()
    }

    fn search(&self, calls: &[&Call<M::Op>], eager: bool, meter: &mut Meter) -> Found {
        let spans = self.spans(calls);
        let graph = Graph::of(&spans, self.real_time);
        let optional: Vec<bool> = calls.iter().map(|call| call.is_open()).collect();
        let ranks = graph.deadlines(&spans);
        let task = Task { graph: &graph, optional: &optional, ranks: &ranks, eager, retreats: u64::MAX };
        search(&task, Modelled::new(self.model, calls), meter).0
    }

    /// A smaller violation.
    ///
    /// # Errors
    /// When the plain search finds an order where there should be none: then nothing is claimed.
    fn counterexample(
        &self,
        calls: &[&Call<M::Op>],
        stuck: Option<&Call<M::Op>>,
        condition: Condition,
        budget: &Budget,
    ) -> Result<Counterexample, &'static str> {
        let mut allowance = Allowance::new(budget, MAX_CANDIDATES, CANDIDATE_STEPS, u64::MAX);
        let mut is_violation = |candidate: &[&Call<M::Op>]| {
            let Some(budget) = allowance.candidate(0) else { return false };
            matches!(self.search(candidate, true, &mut Meter::new(&budget)), Found::NoOrder { .. })
        };
        let mut kept: Vec<&Call<M::Op>> = calls.to_vec();
        let parts: BTreeSet<u64> = kept.iter().filter_map(|call| self.model.part(&call.op)).collect();
        for part in parts {
            let without: Vec<_> =
                kept.iter().copied().filter(|call| self.model.part(&call.op) != Some(part)).collect();
            if !without.is_empty() && is_violation(&without) {
                kept = without;
            }
        }
        let observers = kept.iter().rev().filter(|call| !self.model.changes(&call.op));
        let observers: Vec<Rank> = observers.map(|call| call.call).collect();
        leave_out(observers, 1, |out| {
            let out: BTreeSet<Rank> = out.iter().copied().collect();
            let without: Vec<_> = kept.iter().copied().filter(|call| !out.contains(&call.call)).collect();
            let goes = is_violation(&without);
            if goes {
                kept = without;
            }
            goes
        });
        let plain = self.search(&kept, false, &mut Meter::new(&budget.with_steps(CANDIDATE_STEPS * 10)));
        if matches!(plain, Found::Order(_)) {
            return Err("two searches contradict each other");
        }
        Ok(self.told(&kept, calls.len(), stuck, condition, matches!(plain, Found::NoOrder { .. })))
    }

    fn told(
        &self,
        kept: &[&Call<M::Op>],
        of_ops: usize,
        stuck: Option<&Call<M::Op>>,
        condition: Condition,
        rechecked: bool,
    ) -> Counterexample {
        let describe =
            |call: &Call<M::Op>| format!("process {} {}", call.process, self.model.describe(&call.op));
        let mut sentence =
            format!("no order that keeps {} explains these {} operations", condition.kept(), kept.len());
        let culprit = stuck.and_then(|stuck| kept.iter().position(|kept| kept.call == stuck.call));
        if let Some(at) = culprit {
            sentence.push_str(&format!("; the longest attempt has no place for: {}", describe(kept[at])));
        }
        let view = |at: usize, impossible: bool| explain::view(self.model, kept[at], impossible);
        Counterexample::drawn(sentence, kept.len(), culprit, view, of_ops, rechecked)
    }
}
