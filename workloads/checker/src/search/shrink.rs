//! Makes a violation small, whatever the object.
//!
//! A part of a history is a fair counterexample only if the whole having an order would give the part one;
//! otherwise leaving something out makes the violation (a read without the write that it saw). For an object
//! of which nothing is known but its model, four things may be left out:
//!
//! 1. *What comes after.* Histories are closed under prefixes: cut at any moment, what has not returned by
//!    then is of unknown fate, and keeps its answer in case it happened.
//! 2. *Observations.* What changes nothing in any state can be taken out of every order.
//! 3. *Elements*, as far as the model says so ([`Model::without`]).
//! 4. *A past that makes no difference.* Take a moment, and leave out operations that had returned by then.
//!    If, for each configuration that the whole could have been in at that moment, the rest could have been
//!    in it too (or in one that can do more, see [`super::frontier`]), then the rest can go on in every way
//!    in which the whole can. This is looked up, not argued: both are run up to that moment. It is what
//!    reduces a lock that was taken and released a thousand times to its last holder.
//!
//! And where the object itself knows what its past comes to ([`Model::since`]), that is told as one
//! operation.
//!
//! Each is an implication from the larger history to the smaller one, so they can follow each other in any
//! order. How things are left out is `minimize`.

use std::collections::{BTreeSet, HashMap};

use super::frontier::{Frontier, events};
use super::sabotage::{Rule, is_broken};
use super::{Found, depth_first, frontier, plain};
use crate::budget::{Budget, Meter};
use crate::history::{NEVER, Rank};
use crate::minimize::{Allowance, leave_out, leave_out_pairs, widths};
use crate::model::{Call, Model, Since};

/// A small part of a history that has no order.
#[derive(Clone, Debug)]
pub struct Shrunk<O> {
    /// The operations, those that are cut of unknown fate, those that are about elements left out without
    /// these.
    pub part: Vec<Call<O>>,
    /// For each its place in the whole.
    pub from: Vec<usize>,
    /// Which of them stands for all that was before, by its place in the whole.
    pub past: Option<usize>,
    /// What the plain search says of the part.
    pub plain: Found,
}

impl<O> Shrunk<O> {
    /// The operations, as the searches take them.
    #[must_use]
    pub fn calls(&self) -> Vec<&Call<O>> {
        self.part.iter().collect()
    }
}

/// Up to this many operations a candidate is judged by the plain search; above, by the others.
const PLAIN_OPS: usize = 40;
/// Steps for judging one candidate: at least these, and this many times what the history itself took. A part
/// that takes much more is one in which something was left out that kept the others in order. Steps for all
/// candidates (looking at eight operations is a step here), and how many are judged at most.
const CANDIDATE_STEPS: u64 = 2_000;
const CANDIDATE_FACTOR: u64 = 8;
const SHRINK_STEPS: u64 = 2_000_000;
const MAX_CANDIDATES: u32 = 2_000;
/// Steps for the plain search's last word.
const LAST_STEPS: u64 = 1_000_000;
/// The first window around the place where a search got stuck, in ranks.
const FIRST_WINDOW: Rank = 64;
/// The widest window when nothing is known yet of whether there is a violation.
const LAST_WINDOW_ON_SUSPICION: Rank = 4096;
/// After this many rounds over all rules nothing more is expected.
const MAX_ROUNDS: u32 = 4;

/// An object, and the same as far as the history can tell ([`Model::as_seen_by`]), by which it is searched.
pub struct Object<'a, M> {
    /// The object.
    pub itself: &'a M,
    /// As the history sees it.
    pub seen: &'a M,
}

impl<M> Clone for Object<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Object<'_, M> {}

impl<'a, M> Object<'a, M> {
    /// An object of which all is seen.
    #[must_use]
    pub fn plain(model: &'a M) -> Self {
        Self { itself: model, seen: model }
    }
}

/// What is left out of a history.
#[derive(Clone, Default)]
struct Selection {
    gone: BTreeSet<u64>,
    dropped: BTreeSet<usize>,
}

/// Reduces a history of which it is known that it has no order and which return shows it first.
#[must_use]
pub fn from_stuck<M: Model>(
    object: Object<'_, M>,
    calls: &[&Call<M::Op>],
    stuck_at: usize,
    budget: &Budget,
) -> Shrunk<M::Op> {
    let whole = prefix(calls, stuck_at);
    match without_the_past(object, &whole, stuck_at, budget) {
        Some(Recent { rest, past, culprit }) => {
            let shrinker = Shrinker::new(object, rest, Some(culprit), budget);
            Shrinker { past: Some(past), ..shrinker }.run()
        }
        None => Shrinker::new(object, whole, Some(stuck_at), budget).run(),
    }
}

/// A history whose past is told as one operation, all by their places in the whole.
struct Recent<O> {
    rest: Placed<O>,
    past: usize,
    culprit: usize,
}

/// Operations with their places in the whole.
type Placed<O> = Vec<(usize, Call<O>)>;

/// The history with its past told as one operation, where the object knows how: as much of it as leaves a
/// violation.
fn without_the_past<M: Model>(
    object: Object<'_, M>,
    whole: &[(usize, Call<M::Op>)],
    stuck_at: usize,
    budget: &Budget,
) -> Option<Recent<M::Op>> {
    let calls: Vec<&Call<M::Op>> = whole.iter().map(|(_, call)| call).collect();
    let called = whole.iter().find(|&&(from, _)| from == stuck_at)?.1.call;
    let mut moments: Vec<Rank> = calls.iter().map(|call| call.call).filter(|&call| call <= called).collect();
    moments.sort_unstable();
    let mut kept = 1;
    while kept < moments.len() {
        let Since { past, rest } = object.itself.since(&calls, moments[moments.len() - kept])?;
        let part: Vec<&Call<M::Op>> = rest.iter().map(|(_, call)| call).collect();
        let mut meter = Meter::new(&budget.with_steps(budget.steps.min(SHRINK_STEPS)));
        if let Found::NoOrder { stuck_at } = frontier::search(object.seen, &part, false, &mut meter) {
            let part = prefix(&part, stuck_at);
            let from = |at: usize| whole[rest[at].0].0;
            let (past, culprit) = (whole[past].0, from(stuck_at));
            let rest = part.into_iter().map(|(at, call)| (from(at), call)).collect();
            return Some(Recent { rest, past, culprit });
        }
        kept = kept.saturating_mul(4);
    }
    None
}

/// Reduces a history that was refuted by what some elements show.
#[must_use]
pub fn from_elements<M: Model>(
    object: Object<'_, M>,
    calls: &[&Call<M::Op>],
    elements: &[u64],
    budget: &Budget,
) -> Shrunk<M::Op> {
    let gone = |element: u64| !elements.contains(&element);
    let unfair = object.itself.unfair(calls, &gone);
    let calls = calls.iter().enumerate();
    let few = calls.clone().filter(|(at, _)| unfair.binary_search(at).is_err()).filter_map(|(at, &call)| {
        object.itself.without(&call.op, &gone).map(|op| (at, Call { op, ..call.clone() }))
    });
    let whole = || calls.map(|(at, &call)| (at, call.clone())).collect();
    of_part(object, few.collect(), budget).unwrap_or_else(|| as_it_is(object, whole(), budget))
}

/// Reduces nothing.
#[must_use]
pub fn as_it_is<M: Model>(
    object: Object<'_, M>,
    part: Vec<(usize, Call<M::Op>)>,
    budget: &Budget,
) -> Shrunk<M::Op> {
    Shrinker::new(object, part, None, budget).finish(&Selection::default())
}

/// Reduces a part of a history, if it has no order.
fn of_part<M: Model>(
    object: Object<'_, M>,
    part: Vec<(usize, Call<M::Op>)>,
    budget: &Budget,
) -> Option<Shrunk<M::Op>> {
    let mut shrinker = Shrinker::new(object, part, None, budget);
    let stuck_at = shrinker.refutes(&Selection::default())?;
    let (from, part): (Vec<usize>, Vec<Call<M::Op>>) = shrinker.base.into_iter().unzip();
    let part = prefix(&part.iter().collect::<Vec<_>>(), stuck_at);
    let part = part.into_iter().map(|(at, call)| (from[at], call)).collect();
    Some(Shrinker::new(object, part, Some(from[stuck_at]), budget).run())
}

/// Reduces what the operations around a suspect are about, if that has no order: for when the whole is too
/// much to be judged.
#[must_use]
pub fn around<M: Model>(
    object: Object<'_, M>,
    calls: &[&Call<M::Op>],
    suspect: usize,
    budget: &Budget,
) -> Option<Shrunk<M::Op>> {
    let whole = calls.iter().map(|&call| call.clone()).enumerate().collect();
    let mut shrinker = Shrinker::new(object, whole, Some(suspect), budget);
    let near = shrinker.near(LAST_WINDOW_ON_SUSPICION);
    (!near.gone.is_empty()).then(|| shrinker.reduce(near))
}

/// Reduces a part whose elements contradict each other, whenever: nothing is cut, because what comes later is
/// a part of the contradiction. None if it has an order.
#[must_use]
pub fn by_elements<M: Model>(
    object: Object<'_, M>,
    part: Vec<(usize, Call<M::Op>)>,
    budget: &Budget,
) -> Option<Shrunk<M::Op>> {
    let mut shrinker = Shrinker::new(object, part, None, budget);
    let all = Selection::default();
    shrinker.refutes(&all)?;
    Some(shrinker.reduce(all))
}

/// The history up to the return of one operation, with what is left of it.
fn prefix<O: Clone>(calls: &[&Call<O>], last: usize) -> Vec<(usize, Call<O>)> {
    let end = calls[last].ret;
    let cut = |call: &Call<O>| Call { ret: if call.ret > end { NEVER } else { call.ret }, ..call.clone() };
    calls.iter().enumerate().filter(|(_, call)| call.call < end).map(|(at, call)| (at, cut(call))).collect()
}

struct Shrinker<'a, M: Model> {
    model: &'a M,
    seen: &'a M,
    base: Vec<(usize, Call<M::Op>)>,
    /// The operation that gets no place, by its place in the whole.
    culprit: Option<usize>,
    /// An operation that is kept although the rest explains the state: the last change that was about the
    /// same.
    pinned: Option<usize>,
    /// The operation that stands for the past, which stays: without it nobody could say what there was.
    past: Option<usize>,
    budget: &'a Budget,
    allowance: Allowance<'a>,
}

/// Configurations at a moment, by state: which of the pending operations are placed.
struct Moment<S> {
    pending: Vec<usize>,
    configs: HashMap<S, Vec<Vec<bool>>>,
}

impl<'a, M: Model> Shrinker<'a, M> {
    fn new(
        object: Object<'a, M>,
        base: Vec<(usize, Call<M::Op>)>,
        culprit: Option<usize>,
        budget: &'a Budget,
    ) -> Self {
        let Object { itself: model, seen } = object;
        let about =
            |at: usize| base.iter().find(|&&(from, _)| from == at).map(|(_, call)| model.elements(&call.op));
        let about = culprit.and_then(about).unwrap_or_default();
        let is_about =
            |call: &Call<M::Op>| model.elements(&call.op).iter().any(|element| about.contains(element));
        let related = base.iter().filter(|&(from, call)| {
            Some(*from) != culprit && !call.is_open() && !model.observes(&call.op) && is_about(call)
        });
        let pinned = related.max_by_key(|(_, call)| call.call).map(|&(from, _)| from);
        let mut candidate_steps = CANDIDATE_STEPS;
        // Without a culprit no search was made, and the history may be too hard for one.
        if culprit.is_some() {
            let calls: Vec<&Call<M::Op>> = base.iter().map(|(_, call)| call).collect();
            let mut meter = Meter::new(&budget.with_steps(budget.steps.min(SHRINK_STEPS)));
            // Whatever it finds: how much it takes is what is asked.
            let _ = frontier::search(seen, &calls, false, &mut meter);
            candidate_steps = candidate_steps.max(meter.spent().saturating_mul(CANDIDATE_FACTOR));
        }
        let steps = budget.steps.min(SHRINK_STEPS.max(candidate_steps.saturating_mul(2)));
        let allowance = Allowance::new(budget, MAX_CANDIDATES, candidate_steps, steps);
        Self { model, seen, base, culprit, pinned, past: None, budget, allowance }
    }

    fn elements(&self) -> BTreeSet<u64> {
        self.base.iter().flat_map(|(_, call)| self.model.elements(&call.op)).collect()
    }

    fn part(&self, selection: &Selection) -> Vec<(usize, Call<M::Op>)> {
        let kept = || self.base.iter().filter(|(from, _)| !selection.dropped.contains(from));
        if selection.gone.is_empty() {
            return kept().cloned().collect();
        }
        let gone = |element: u64| selection.gone.contains(&element);
        let unfair = self.model.unfair(&kept().map(|(_, call)| call).collect::<Vec<_>>(), &gone);
        let left = kept().enumerate().filter(|(at, _)| unfair.binary_search(at).is_err());
        left.filter_map(|(_, (from, call))| {
            self.model.without(&call.op, &gone).map(|op| (*from, Call { op, ..call.clone() }))
        })
        .collect()
    }

    /// A meter for one candidate; none when enough was tried.
    fn meter(&mut self, ops: usize) -> Option<Meter> {
        self.allowance.candidate(ops / 8).map(|budget| Meter::new(&budget))
    }

    /// Whether the part has no order for certain; if so, at which of its operations that shows.
    fn refutes(&mut self, selection: &Selection) -> Option<usize> {
        let part = self.part(selection);
        if self.past.is_some_and(|past| part.iter().all(|&(from, _)| from != past)) {
            return None;
        }
        let mut meter = self.meter(self.base.len())?;
        let calls: Vec<&Call<M::Op>> = part.iter().map(|(_, call)| call).collect();
        let mut found = if calls.len() <= PLAIN_OPS {
            plain::search(self.model, &calls, &mut meter)
        } else {
            frontier::search(self.seen, &calls, false, &mut meter)
        };
        self.allowance.pay(&meter);
        if matches!(found, Found::GaveUp { .. }) {
            let mut meter = self.meter(calls.len())?;
            found = depth_first::search(self.seen, &calls, &mut meter);
            self.allowance.pay(&meter);
        }
        if let Found::NoOrder { stuck_at } = found { Some(stuck_at) } else { None }
    }

    fn run(mut self) -> Shrunk<M::Op> {
        let near = self.near(Rank::MAX);
        self.reduce(near)
    }

    /// By all rules, from a selection that is a violation on.
    fn reduce(mut self, mut selection: Selection) -> Shrunk<M::Op> {
        for _ in 0..MAX_ROUNDS {
            let before = self.part(&selection).len();
            self.leave_out_elements(&mut selection);
            self.leave_out_observations(&mut selection);
            if !self.model.shows_reasons() {
                self.leave_out_all_pasts(&mut selection);
            }
            if self.part(&selection).len() == before {
                break;
            }
        }
        if self.model.shows_reasons() {
            self.leave_out_all_pasts(&mut selection);
        }
        self.finish(&selection)
    }

    fn leave_out_all_pasts(&mut self, selection: &mut Selection) {
        for moment in self.moments() {
            self.leave_out_the_past(selection, moment);
        }
    }

    /// Only the elements that operations near the culprit are about, in windows up to this width, if that is
    /// a violation.
    fn near(&mut self, widest: Rank) -> Selection {
        let all = self.elements();
        let Some((_, culprit)) = self.base.iter().find(|&&(from, _)| Some(from) == self.culprit) else {
            return Selection::default();
        };
        let (centre, end) = (culprit.call, culprit.ret);
        for width in widths(FIRST_WINDOW, end.min(widest)) {
            let near = self
                .base
                .iter()
                .filter(|(_, call)| call.ret >= centre.saturating_sub(width) && !call.is_open());
            let kept: BTreeSet<u64> = near.flat_map(|(_, call)| self.model.elements(&call.op)).collect();
            let window = Selection { gone: all.difference(&kept).copied().collect(), ..Selection::default() };
            if !window.gone.is_empty() && self.refutes(&window).is_some() {
                return window;
            }
        }
        Selection::default()
    }

    fn leave_out_elements(&mut self, selection: &mut Selection) {
        let elements: Vec<u64> = self.elements().difference(&selection.gone).copied().collect();
        self.leave_out(selection, elements, |selection, element| {
            selection.gone.insert(*element);
        });
    }

    fn leave_out_observations(&mut self, selection: &mut Selection) {
        let part = self.part(selection);
        let droppable =
            part.iter().filter(|(from, call)| self.model.observes(&call.op) && Some(*from) != self.culprit);
        let droppable = droppable.map(|&(from, _)| from).collect();
        self.leave_out(selection, droppable, |selection, at| {
            selection.dropped.insert(*at);
        });
    }

    fn leave_out<T: Copy>(
        &mut self,
        selection: &mut Selection,
        items: Vec<T>,
        leave: impl Fn(&mut Selection, &T),
    ) {
        let base = selection.clone();
        let mut best = base;
        leave_out(items, 2, |items| {
            let mut candidate = best.clone();
            items.iter().for_each(|item| leave(&mut candidate, item));
            let refutes = self.refutes(&candidate).is_some();
            if refutes {
                best = candidate;
            }
            refutes
        });
        *selection = best;
    }

    /// When to compare what the object could have been: before the culprit was called, and before it
    /// returned.
    fn moments(&self) -> Vec<Rank> {
        let culprit = self.base.iter().find(|&&(from, _)| Some(from) == self.culprit);
        culprit.map_or_else(Vec::new, |(_, call)| vec![call.call, call.ret])
    }

    fn leave_out_the_past(&mut self, selection: &mut Selection, moment: Rank) {
        let part = self.part(selection);
        let Some((whole, _)) = self.at(&part, moment) else { return };
        let is_past = |from: usize, call: &Call<M::Op>| {
            (call.ret < moment || is_broken(Rule::PendingAreDropped))
                && Some(from) != self.culprit
                && Some(from) != self.pinned
                && !(self.model.shows_reasons() && self.model.observes(&call.op))
        };
        let past = part.iter().filter(|(from, call)| is_past(*from, call));
        // In the order of returns, which is close to the order in which they took effect.
        let mut past: Vec<(Rank, usize)> = past.map(|(from, call)| (call.ret, *from)).collect();
        past.sort_unstable();
        let past: Vec<usize> = past.into_iter().map(|(_, from)| from).collect();
        let mut best = selection.clone();
        let mut leave = |items: &[usize]| {
            let mut candidate = best.clone();
            candidate.dropped.extend(items);
            let part = self.part(&candidate);
            let fair =
                self.at(&part, moment).is_some_and(|(rest, violated)| violated && self.covers(&rest, &whole));
            if fair {
                best = candidate;
            }
            fair
        };
        let left = leave_out(past, 2, &mut leave);
        leave_out_pairs(left, &mut leave);
        *selection = best;
    }

    /// What could be at a moment, and whether the part as a whole has no order.
    fn at(&mut self, part: &[(usize, Call<M::Op>)], moment: Rank) -> Option<(Moment<M::State>, bool)> {
        let mut meter = self.meter(part.len())?;
        let calls: Vec<&Call<M::Op>> = part.iter().map(|(_, call)| call).collect();
        let found = at(
            self.seen,
            &calls,
            &part.iter().map(|&(from, _)| from).collect::<Vec<_>>(),
            moment,
            &mut meter,
        );
        self.allowance.pay(&meter);
        found
    }

    fn covers(&self, rest: &Moment<M::State>, whole: &Moment<M::State>) -> bool {
        if is_broken(Rule::ForgetsThePast) {
            return true;
        }
        if is_broken(Rule::PendingAreDropped) {
            return whole.configs.keys().all(|state| rest.configs.contains_key(state));
        }
        let kind = |at: &usize| {
            let call = &self.base.iter().find(|(from, _)| from == at)?.1;
            Some((self.model.observes(&call.op), call.is_open()))
        };
        covers(
            rest,
            whole,
            &whole.pending.iter().map(|at| kind(at).unwrap_or((false, false))).collect::<Vec<_>>(),
        )
    }

    fn finish(&mut self, selection: &Selection) -> Shrunk<M::Op> {
        let (from, part): (Vec<usize>, Vec<Call<M::Op>>) = self.part(selection).into_iter().unzip();
        let steps = self.budget.steps.min(LAST_STEPS);
        let mut meter = Meter::new(&self.budget.with_steps(steps));
        let plain = plain::search(self.model, &part.iter().collect::<Vec<_>>(), &mut meter);
        let past = self.past.filter(|past| from.contains(past));
        Shrunk { part, from, past, plain }
    }
}

/// What a history could be at a moment, its operations named by `from`, and whether it has no order.
fn at<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    from: &[usize],
    moment: Rank,
    meter: &mut Meter,
) -> Option<(Moment<M::State>, bool)> {
    let mut frontier = Frontier::new(model, false);
    let mut then = None;
    let mut violated = false;
    for (rank, at) in events(calls) {
        if rank >= moment && then.is_none() {
            then = Some(snapshot(&frontier, calls, from, moment));
        }
        if calls[at].call == rank {
            frontier.called(at, calls[at].op.clone(), calls[at].ret).ok()?;
        } else if !frontier.returned(at, meter).ok()? {
            violated = true;
            break;
        }
    }
    Some((then?, violated))
}

fn snapshot<M: Model>(
    frontier: &Frontier<'_, M>,
    calls: &[&Call<M::Op>],
    from: &[usize],
    moment: Rank,
) -> Moment<M::State> {
    let is_pending = |call: &Call<M::Op>| call.call < moment && call.ret >= moment;
    let pending: Vec<usize> = (0..calls.len()).filter(|&at| is_pending(calls[at])).collect();
    let mut configs: HashMap<M::State, Vec<Vec<bool>>> = HashMap::new();
    for possible in frontier.possible() {
        // What has left the window is placed everywhere.
        let placed = |at: &usize| possible.placed.binary_search(at).is_ok() || !frontier.is_in_window(*at);
        configs.entry(possible.state).or_default().push(pending.iter().map(placed).collect());
    }
    Moment { pending: pending.into_iter().map(|at| from[at]).collect(), configs }
}

/// Whether each configuration of the whole has one of the rest that can do whatever it can. For each pending
/// operation: whether it observes, and whether it never returns.
fn covers<S: Eq + std::hash::Hash>(rest: &Moment<S>, whole: &Moment<S>, kinds: &[(bool, bool)]) -> bool {
    if rest.pending != whole.pending {
        return false;
    }
    let outdoes = |one: &Vec<bool>, other: &Vec<bool>| {
        one.iter().zip(other).zip(kinds).all(|((&one, &other), &(observes, open))| match (observes, open) {
            (true, _) => one || !other,
            (false, true) => !one || other,
            (false, false) => one == other,
        })
    };
    whole.configs.iter().all(|(state, placed)| {
        let there = rest.configs.get(state).map_or(&[][..], Vec::as_slice);
        placed.iter().all(|placed| there.iter().any(|there| outdoes(there, placed)))
    })
}

/// One random use of each rule, whether or not the history has an order, for the test that the rules are
/// fair.
#[cfg(test)]
pub(super) fn random_part<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    chance: &mut dyn FnMut(u32) -> u32,
) -> Vec<Call<M::Op>> {
    let budget = Budget::new(1_000_000, 64 << 20);
    let returned: Vec<usize> = (0..calls.len()).filter(|&at| !calls[at].is_open()).collect();
    let mut below = |bound: usize| usize::try_from(chance(u32::try_from(bound).unwrap())).unwrap();
    let base = match returned.as_slice() {
        [] => return Vec::new(),
        returned if below(2) == 0 => prefix(calls, returned[below(returned.len())]),
        _ => calls.iter().map(|&call| call.clone()).enumerate().collect(),
    };
    let mut shrinker = Shrinker::new(Object::plain(model), base, None, &budget);
    let mut selection = Selection::default();
    if below(2) == 0 {
        selection.gone = shrinker.elements().into_iter().filter(|_| below(2) == 0).collect();
    }
    let part = shrinker.part(&selection);
    selection.dropped = part
        .iter()
        .filter(|(_, call)| model.observes(&call.op))
        .map(|&(from, _)| from)
        .filter(|_| below(2) == 0)
        .collect();
    let part = shrinker.part(&selection);
    let moment = Rank::try_from(below(2 * calls.len() + 1)).unwrap();
    let Some((whole, _)) = shrinker.at(&part, moment) else {
        return part.into_iter().map(|(_, call)| call).collect();
    };
    let is_past = |call: &Call<M::Op>| {
        call.ret < moment || is_broken(Rule::PendingAreDropped) && !model.observes(&call.op)
    };
    let past = part.iter().filter(|(_, call)| is_past(call)).map(|&(from, _)| from);
    let mut candidate = selection.clone();
    candidate.dropped.extend(past.filter(|_| below(2) == 0));
    let rest = shrinker.part(&candidate);
    let fair = shrinker.at(&rest, moment).is_some_and(|(rest, _)| shrinker.covers(&rest, &whole));
    let part = if fair { rest } else { part };
    part.into_iter().map(|(_, call)| call).collect()
}
