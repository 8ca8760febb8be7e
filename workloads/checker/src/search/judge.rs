//! Which search is tried when and on which part, and what is made of its answer.

use std::collections::BTreeMap;

use serde_json::json;

use super::shrink::{self, Shrunk};
use super::{Found, confirm, depth_first, explain, frontier};
use crate::budget::{Budget, Exhausted, Meter};
use crate::model::{Call, Model, Shortcut};
use crate::parallel;
use crate::verdict::{CheckResult, Counterexample, Judged, PartOrder, Verdict};

/// The name of the check.
pub const NAME: &str = "linearizable";

/// A member of the portfolio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// What the object knows of its own.
    Shortcut,
    /// Breadth-first search.
    Frontier,
    /// Depth-first search.
    DepthFirst,
}

impl Algorithm {
    /// The name in results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shortcut => "near-linear",
            Self::Frontier => "frontier",
            Self::DepthFirst => "depth-first",
        }
    }
}

/// Steps of the searches' first round; each round has [`ROUND_GROWTH`] times the one before.
const FIRST_ROUND_STEPS: u64 = 1 << 16;
const ROUND_GROWTH: u64 = 4;
/// More parts than this are not told one by one.
const MAX_PARTS_TOLD: usize = 100;

/// What was found out about one part.
struct PartResult {
    verdict: Verdict,
    decided_by: Option<Algorithm>,
    reason: Option<String>,
    counterexample: Option<Counterexample>,
    order: Option<Vec<usize>>,
}

impl PartResult {
    fn new(verdict: Verdict, decided_by: Algorithm) -> Self {
        Self { verdict, decided_by: Some(decided_by), reason: None, counterexample: None, order: None }
    }

    fn unknown(reason: String) -> Self {
        let unknown = Self::new(Verdict::Unknown, Algorithm::Shortcut);
        Self { decided_by: None, reason: Some(reason), ..unknown }
    }
}

/// Judges a history: each part of the object by itself with the budget's steps, up to `threads` parts at a time, which
/// share its memory. With `want_witness` a valid verdict comes with an order for each part.
pub fn judge<M>(
    model: &M,
    calls: &[Call<M::Op>],
    budget: &Budget,
    threads: usize,
    want_witness: bool,
) -> Judged
where
    M: Model + Sync,
    M::Op: Send + Sync,
{
    let mut parts: BTreeMap<Option<u64>, Vec<&Call<M::Op>>> = BTreeMap::new();
    for call in calls {
        parts.entry(model.part(&call.op)).or_default().push(call);
    }
    let parts: Vec<Part<'_, M::Op>> = parts.into_iter().collect();
    let results = parallel::each(&parts, budget, threads, |(_, calls), share| {
        judge_part(model, calls, share, want_witness)
    });
    merge(model, &parts, results)
}

fn judge_part<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    budget: &Budget,
    want_witness: bool,
) -> PartResult {
    match model.shortcut(calls) {
        Shortcut::None => {}
        Shortcut::Order(order) => {
            if confirm(model, calls, &order).is_ok() {
                return PartResult {
                    order: Some(order),
                    ..PartResult::new(Verdict::Valid, Algorithm::Shortcut)
                };
            }
        }
        Shortcut::Refuted { elements, sentence, .. } => {
            let shrunk = shrink::from_elements(model, calls, &elements, budget);
            return violation(model, calls, &shrunk, Some(sentence), Algorithm::Shortcut, budget);
        }
    }
    search(model, calls, budget, want_witness)
}

fn search<M: Model>(model: &M, calls: &[&Call<M::Op>], budget: &Budget, want_witness: bool) -> PartResult {
    let mut spent = 0_u64;
    let mut round = FIRST_ROUND_STEPS;
    let mut gave_up: [Option<(Exhausted, usize)>; 2] = [None, None];
    let members = [Algorithm::Frontier, Algorithm::DepthFirst];
    loop {
        for (algorithm, given_up) in members.into_iter().zip(&mut gave_up) {
            // More steps do not help a search that lacks memory, room or time.
            if given_up.is_some_and(|(why, _)| why != Exhausted::Steps) {
                continue;
            }
            let mut meter = Meter::new(&budget.with_steps(round.min(budget.steps - spent)));
            let found = match algorithm {
                Algorithm::DepthFirst => depth_first::search(model, calls, &mut meter),
                _ => frontier::search(model, calls, want_witness, &mut meter),
            };
            spent += meter.spent();
            match found {
                Found::Order(order) => return confirmed(model, calls, order, algorithm),
                Found::NoOrder { stuck_at } => {
                    let shrunk = shrink::from_stuck(model, calls, stuck_at, budget);
                    return violation(model, calls, &shrunk, None, algorithm, budget);
                }
                Found::GaveUp { why, reached } => *given_up = Some((why, reached)),
            }
        }
        let [breadth, depth] = gave_up.map(|why| why.unwrap_or((Exhausted::Steps, 0)));
        if spent >= budget.steps || [breadth, depth].iter().all(|&(why, _)| why != Exhausted::Steps) {
            return PartResult::unknown(format!(
                "{} of {} operations were explained when it stopped: breadth first, {}; depth first, {}",
                breadth.1.max(depth.1),
                calls.len(),
                breadth.0,
                depth.0,
            ));
        }
        round = round.saturating_mul(ROUND_GROWTH);
    }
}

/// An order that was asked for is confirmed, so that no bug of a search can pass for a proof.
fn confirmed<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    order: Option<Vec<usize>>,
    algorithm: Algorithm,
) -> PartResult {
    match order.as_ref().map(|order| confirm(model, calls, order)) {
        None | Some(Ok(())) => PartResult { order, ..PartResult::new(Verdict::Valid, algorithm) },
        Some(Err(unfit)) => PartResult::unknown(format!(
            "the order that {} found is none, {unfit}: a bug of this checker",
            algorithm.as_str()
        )),
    }
}

/// A violation stands only if the part of the history that is shown for it is one by the plain search too. The plain
/// search may give up on a part that could not be made small; an outright contradiction between the two means that this
/// checker is wrong somewhere, and then nothing is claimed.
fn violation<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    shrunk: &Shrunk<M::Op>,
    sentence: Option<String>,
    by: Algorithm,
    budget: &Budget,
) -> PartResult {
    if matches!(shrunk.plain, Found::Order(_)) {
        let by = by.as_str();
        let reason = format!("{by} refuted the history, the plain search did not: a bug of this checker");
        return PartResult::unknown(reason);
    }
    let counterexample = explain::counterexample(model, shrunk, sentence, calls.len(), budget);
    PartResult { counterexample: Some(counterexample), ..PartResult::new(Verdict::Invalid, by) }
}

type Part<'a, O> = (Option<u64>, Vec<&'a Call<O>>);

fn merge<M: Model>(model: &M, parts: &[Part<'_, M::Op>], results: Vec<PartResult>) -> Judged {
    let name = |at: usize| parts[at].0.map(|part| model.part_name(part));
    let called =
        |at: usize| name(at).map_or_else(|| format!("the {}", model.name()), |name| format!("key {name}"));
    let verdict = results.iter().map(|result| result.verdict).fold(Verdict::Valid, Verdict::merge);
    let ops: usize = parts.iter().map(|(_, calls)| calls.len()).sum();
    let open = parts.iter().flat_map(|(_, calls)| calls).filter(|call| call.is_open()).count();
    let verdicts: Vec<Verdict> = results.iter().map(|result| result.verdict).collect();
    let with =
        |verdict| verdicts.iter().enumerate().filter(move |&(_, found)| *found == verdict).map(|(at, _)| at);
    let told = |items: Vec<String>, separator: &str| {
        let more = items.len().saturating_sub(MAX_PARTS_TOLD / 10);
        let more = if more == 0 { String::new() } else { format!("{separator}{more} more") };
        format!("{}{more}", items.into_iter().take(MAX_PARTS_TOLD / 10).collect::<Vec<_>>().join(separator))
    };
    let summary = match verdict {
        Verdict::Valid if ops == 0 => format!("no operation says anything about a {}", model.name()),
        Verdict::Valid => format!("{ops} operations on {} are linearizable", count(model, parts)),
        Verdict::Invalid => {
            format!("not linearizable: {}", told(with(Verdict::Invalid).map(called).collect(), ", "))
        }
        Verdict::Unknown => {
            let reason = |at: usize| results[at].reason.as_deref().unwrap_or("no reason");
            let undecided =
                with(Verdict::Unknown).map(|at| format!("{}: {}", called(at), reason(at))).collect();
            format!("not decided within the budget: {}", told(undecided, "; "))
        }
    };
    let mut algorithms: Vec<Algorithm> = results.iter().filter_map(|result| result.decided_by).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    let algorithms: Vec<&str> = algorithms.into_iter().map(Algorithm::as_str).collect();
    // Whatever is not valid comes first, and is told first.
    let mut told: Vec<usize> = (0..results.len()).collect();
    told.sort_by_key(|&at| std::cmp::Reverse(results[at].verdict));
    let of_part = |at: usize| {
        let result = &results[at];
        json!({"key": name(at), "verdict": result.verdict, "ops": parts[at].1.len(), "reason": result.reason,
               "decided_by": result.decided_by.map(Algorithm::as_str)})
    };
    let per_part: Vec<serde_json::Value> = told.into_iter().take(MAX_PARTS_TOLD).map(of_part).collect();
    let evidence =
        json!({"model": model.name(), "ops": ops, "open": open, "parts": parts.len(), "keys": per_part});
    let mut result = CheckResult::new(NAME, verdict, summary).with_evidence(evidence);
    if !algorithms.is_empty() {
        result = result.with_decided_by(algorithms.join(", "));
    }
    let mut witness = Vec::new();
    let mut smallest: Option<Counterexample> = None;
    for ((part, calls), part_result) in parts.iter().zip(results) {
        if let Some(order) = part_result.order.filter(|_| verdict == Verdict::Valid) {
            witness.push(PartOrder {
                part: *part,
                order: order.into_iter().map(|at| calls[at].index).collect(),
            });
        }
        // The smallest of the counterexamples is the one to show.
        if let Some(found) = part_result.counterexample
            && smallest.as_ref().is_none_or(|smallest| found.ops.len() < smallest.ops.len())
        {
            smallest = Some(found);
        }
    }
    if let Some(counterexample) = smallest {
        result = result.with_counterexample(counterexample);
    }
    Judged { result, witness }
}

fn count<M: Model>(model: &M, parts: &[Part<'_, M::Op>]) -> String {
    match parts {
        [(None, _)] => format!("a {}", model.name()),
        [_] => "1 key".to_owned(),
        parts => format!("{} keys", parts.len()),
    }
}
