//! Which algorithm is tried when, and what is made of its answer.

use serde::{Deserialize, Serialize};

use super::blocks::{self, Contradiction, Tested};
use super::problem::Problem;
use super::repair::Unrepaired;
use super::shrink::{self, Shrunk, UniqueValues};
use super::{Found, Reached, Searched, dfs, frontier, order, repair, witness};
use crate::budget::{Budget, Exhausted, Meter};

/// A member of the portfolio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The test by blocks.
    NearLinear,
    /// The order by version.
    Witness,
    /// The order by blocks, with refused compare-and-sets placed in it.
    NearLinearOrder,
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
            Self::NearLinear => "near-linear",
            Self::Witness => "witness",
            Self::NearLinearOrder => "near-linear-order",
            Self::Frontier => "frontier",
            Self::DepthFirst => "depth-first",
        }
    }
}

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
    /// None exists.
    Violation(Shrunk),
    /// Not decided.
    Undecided {
        /// Why.
        reason: String,
    },
}

/// Steps of the searches' first round; each round has [`ROUND_GROWTH`] times the one before. The two searches
/// take turns because each is quick where the other is lost.
const FIRST_ROUND_STEPS: u64 = 1 << 15;
const ROUND_GROWTH: u64 = 8;

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

/// The answer alone: whether an order exists, if that can be told within the budget. [`judge`] also explains,
/// which for a violation takes longer than to find it.
#[must_use]
pub fn has_order(problem: &Problem, budget: &Budget) -> Option<bool> {
    match decide(problem, budget, false).answer {
        Answer::Linearizable { .. } => Some(true),
        Answer::Refuted(_) => Some(false),
        Answer::Undecided { .. } => None,
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
    /// The blocks contradict each other.
    Blocks(Contradiction),
    /// So do those of the values that come from one operation each.
    UniqueValues(UniqueValues),
    /// A search could not place this entry.
    Stuck(usize),
    /// A part is known already.
    Shown(Shrunk),
}

impl Refutation {
    fn explain(self, problem: &Problem, budget: &Budget) -> Shrunk {
        match self {
            Self::Blocks(contradiction) => shrink::from_contradiction(problem, &contradiction, budget),
            Self::UniqueValues(found) => shrink::from_unique_values(problem, found, budget),
            Self::Stuck(at) => shrink::from_stuck(problem, at, budget),
            Self::Shown(shrunk) => shrunk,
        }
    }
}

fn decide(problem: &Problem, budget: &Budget, wants_order: bool) -> Decided {
    let by_blocks = match blocks::test(problem) {
        Tested::Refuted(contradiction) => {
            return refuted(Refutation::Blocks(contradiction), Algorithm::NearLinear);
        }
        Tested::Order(order) if order::verify(problem, &order).is_ok() => {
            return linearizable(order, Algorithm::NearLinear);
        }
        Tested::Order(order) => Some(order),
        Tested::Ambiguous => {
            if let Some(found) = shrink::among_unique_values(problem) {
                return refuted(Refutation::UniqueValues(found), Algorithm::NearLinear);
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
    search(problem, budget, wants_order)
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

/// The order by blocks with the refused compare-and-sets in it; where that can't be had, what is around the
/// one that has no place may be a violation by itself.
fn with_refusals(problem: &Problem, order: &[usize], budget: &Budget) -> Option<Decided> {
    let placed = order::place_what_fits(problem, order, &mut Meter::new(budget)).ok()?;
    let settled =
        if placed.misfits == 0 { Ok(placed.order) } else { repair::settle(problem, placed.order, budget) };
    match settled {
        Ok(order) if order::verify(problem, &order).is_ok() => {
            Some(linearizable(order, Algorithm::NearLinearOrder))
        }
        Err(Unrepaired::Around(at)) => {
            let shrunk = shrink::around(problem, at, budget)?;
            Some(refuted(Refutation::Shown(shrunk), Algorithm::NearLinearOrder))
        }
        Ok(_) | Err(Unrepaired::Exhausted(_)) => None,
    }
}

type Run<'a> = dyn Fn(&mut Meter) -> Searched + 'a;

fn search(problem: &Problem, budget: &Budget, wants_order: bool) -> Decided {
    let mut spent = 0_u64;
    let mut round = FIRST_ROUND_STEPS;
    let mut gave_up: [Option<(Exhausted, Reached)>; 2] = [None, None];
    let by_frontier = |meter: &mut Meter| frontier::search_for(problem, wants_order, meter);
    let by_depth = |meter: &mut Meter| dfs::search(problem, meter);
    let searches: [(Algorithm, &Run<'_>); 2] =
        [(Algorithm::Frontier, &by_frontier), (Algorithm::DepthFirst, &by_depth)];
    // More steps do not help a search that lacks anything else.
    let wants_more =
        |gave_up: &Option<(Exhausted, Reached)>| matches!(gave_up, None | Some((Exhausted::Steps, _)));
    loop {
        for (nth, (algorithm, run)) in searches.iter().enumerate() {
            if !wants_more(&gave_up[nth]) {
                continue;
            }
            // Near the end of the budget each of those that are still to come gets its share.
            let sharing = gave_up[nth..].iter().filter(|gave_up| wants_more(gave_up)).count();
            let share = (budget.steps - spent).div_ceil(u64::try_from(sharing).unwrap_or(1));
            let mut meter = Meter::new(&budget.with_steps(round.min(share)));
            let Searched { found, order, reached } = run(&mut meter);
            spent += meter.spent();
            match found {
                Found::Order => {
                    return match order {
                        Some(order) if order::verify(problem, &order).is_err() => undecided(format!(
                            "{} found an order that is none: a bug of this checker",
                            algorithm.as_str()
                        )),
                        witness => Decided { answer: Answer::Linearizable { witness }, by: Some(*algorithm) },
                    };
                }
                Found::NoOrder { stuck_at } => {
                    return refuted(Refutation::Stuck(stuck_at), *algorithm);
                }
                Found::GaveUp(why) => gave_up[nth] = Some((why, reached)),
            }
        }
        if spent >= budget.steps || !gave_up.iter().any(wants_more) {
            return undecided(reason(&searches.map(|(algorithm, _)| algorithm), &gave_up));
        }
        round = round.saturating_mul(ROUND_GROWTH);
    }
}

/// Why each search gave up, and where.
fn reason(algorithms: &[Algorithm], gave_up: &[Option<(Exhausted, Reached)>]) -> String {
    let parts: Vec<String> = algorithms
        .iter()
        .zip(gave_up)
        .map(|(algorithm, gave_up)| {
            let name = if *algorithm == Algorithm::Frontier { "breadth first" } else { "depth first" };
            match gave_up {
                Some((why, reached)) => format!("{name}: {reached}; {why}"),
                None => format!("{name}: {}", Exhausted::Steps),
            }
        })
        .collect();
    parts.join(". ")
}

/// A violation stands only if the part of the history that is shown for it is one by the plain search too.
/// The plain search may give up on a part that could not be made small; an outright contradiction between the
/// two means that this checker is wrong somewhere, and then nothing is claimed.
fn violation(shrunk: Shrunk, by: Option<Algorithm>) -> Judgement {
    let decision = match shrunk.plain {
        Found::NoOrder { .. } | Found::GaveUp(_) => Decision::Violation(shrunk),
        Found::Order => Decision::Undecided {
            reason: format!(
                "{} refuted the history, the plain search did not: a bug of this checker",
                by.map_or("nobody", Algorithm::as_str)
            ),
        },
    };
    Judgement { decision, decided_by: by }
}
