//! Which algorithm is tried when, and what is made of its answer.

use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::shrink::{self, Shrunk};
use super::zones::{self, Zones};
use super::{Found, dfs, frontier, order, witness};
use crate::budget::{Budget, Exhausted, Meter};

/// A member of the portfolio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The test by zones.
    NearLinear,
    /// The order by version.
    Witness,
    /// The order by zones, with refused compare-and-sets placed in it.
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
        /// The confirmed order by indices of entries, when it was found as one (the searches do not keep theirs).
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
const FIRST_ROUND_STEPS: u64 = 1 << 18;
const ROUND_GROWTH: u64 = 8;

/// Decides one register.
#[must_use]
pub fn check(problem: &Problem, budget: Budget) -> Judgement {
    let linearizable = |witness: Vec<usize>, by| Judgement {
        decision: Decision::Linearizable { witness: Some(witness) },
        decided_by: Some(by),
    };
    let by_zones = match zones::test(problem) {
        Zones::Refuted(contradiction) => {
            let shrunk = shrink::from_contradiction(problem, &contradiction, budget);
            return violation(shrunk, Algorithm::NearLinear);
        }
        Zones::Order(order) if order::verify(problem, &order).is_ok() => {
            return linearizable(order, Algorithm::NearLinear);
        }
        Zones::Order(order) => Some(order),
        Zones::Ambiguous => None,
    };
    if let Some(order) = witness::by_version(problem)
        && order::verify(problem, &order).is_ok()
    {
        return linearizable(order, Algorithm::Witness);
    }
    if let Some(order) = by_zones.and_then(|order| order::place_refused(problem, &order))
        && order::verify(problem, &order).is_ok()
    {
        return linearizable(order, Algorithm::NearLinearOrder);
    }
    search(problem, budget)
}

fn search(problem: &Problem, budget: Budget) -> Judgement {
    let mut spent = 0_u64;
    let mut round = FIRST_ROUND_STEPS;
    let mut reasons: [Option<Exhausted>; 2] = [None, None];
    loop {
        let searches = [
            (Algorithm::Frontier, frontier::search as fn(&Problem, &mut Meter) -> Found),
            (Algorithm::DepthFirst, dfs::reduced),
        ];
        for ((algorithm, run), reason) in searches.into_iter().zip(&mut reasons) {
            // More steps do not help a search that lacks memory or room.
            if matches!(reason, Some(Exhausted::Memory | Exhausted::Window)) {
                continue;
            }
            let mut meter = Meter::new(Budget { steps: round.min(budget.steps - spent), ..budget });
            let found = run(problem, &mut meter);
            spent += meter.spent();
            match found {
                Found::Order => {
                    return Judgement {
                        decision: Decision::Linearizable { witness: None },
                        decided_by: Some(algorithm),
                    };
                }
                Found::NoOrder { stuck_at } => {
                    return violation(shrink::from_stuck(problem, stuck_at, budget), algorithm);
                }
                Found::GaveUp(why) => *reason = Some(why),
            }
        }
        let gave_up = reasons.iter().all(|r| matches!(r, Some(Exhausted::Memory | Exhausted::Window)));
        if gave_up || spent >= budget.steps {
            let [frontier, depth_first] = reasons.map(|r| r.unwrap_or(Exhausted::Steps));
            let reason = format!("breadth first, {frontier}; depth first, {depth_first}");
            return Judgement { decision: Decision::Undecided { reason }, decided_by: None };
        }
        round = round.saturating_mul(ROUND_GROWTH);
    }
}

/// A violation stands only if the part of the history that is shown for it is one by the plain search too. The
/// plain search may give up on a part that could not be made small; an outright contradiction between the two
/// means that this checker is wrong somewhere, and then nothing is claimed.
fn violation(shrunk: Shrunk, by: Algorithm) -> Judgement {
    let decision = match shrunk.plain {
        Found::NoOrder { .. } | Found::GaveUp(_) => Decision::Violation(shrunk),
        Found::Order => Decision::Undecided {
            reason: format!(
                "{} refuted the history, the plain search did not: a bug of this checker",
                by.as_str()
            ),
        },
    };
    Judgement { decision, decided_by: Some(by) }
}
