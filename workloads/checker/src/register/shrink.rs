//! Makes a violation small.
//!
//! A part of a history is a fair counterexample only if the whole being linearizable would make the part
//! linearizable; otherwise leaving something out makes the violation. Parts are described by the values that are
//! kept and, among their operations, which reads and refusals are kept:
//!
//! - All changes that write a kept value are kept, so no read loses the write it came from.
//! - A compare-and-set to a kept value from one that is not kept counts as a write: less is asked of it.
//! - Every other operation on a value that is not kept is left out.
//!
//! **This is fair for reads and changes.** Take a linearization of the whole and leave out the same operations. A
//! kept read of v stands, in the whole, after a change to v with no change between. That change is kept, so it is
//! still the last one before the read. The same goes for a compare-and-set from a kept value.
//!
//! **A refusal from s needs more**, because the change that justified it may be left out and uncover s. It is
//! kept only (a) when no change is left out; or (b) when s has a single source and a kept operation that was called
//! after the refusal had returned needs s (reads it, takes it): then the refusal stands before s was written, in
//! the whole and in the part; or (c) when no left-out change can be the last one before the refusal: each was called after the refusal
//! returned, or had returned before the call of a kept change that itself returned before the refusal was called.

use std::collections::BTreeSet;

use super::problem::{Action, Entry, NIL, Problem, Val};
use super::zones::{self, Contradiction, Zones};
use super::{Found, dfs, frontier};
use crate::budget::{Budget, Meter};
use crate::history::Rank;

/// A small part of a problem that has no order.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The part, as a problem of its own.
    pub part: Problem,
    /// For each of its entries the entry of the whole.
    pub from: Vec<usize>,
    /// What the plain search says of the part.
    pub plain: Found,
    /// Why the part has no order, if the test by zones sees it.
    pub contradiction: Option<Contradiction>,
    /// The operation of the part that the search could not place, when there is no contradiction to tell.
    pub stuck_at: Option<usize>,
}

/// Up to this many entries a part is judged by the plain search; above, by the frontier.
const PLAIN_ENTRIES: usize = 60;
/// Steps for judging one candidate, for all of them (looking at an entry is a step here), and how many are
/// judged at most.
const CANDIDATE_STEPS: u64 = 1_000_000;
const SHRINK_STEPS: u64 = 100_000_000;
const MAX_CANDIDATES: u32 = 2_000;
/// The first window around the place where a search got stuck, in ranks.
const FIRST_WINDOW: Rank = 64;

/// Which part is kept.
#[derive(Clone)]
struct Selection {
    values: BTreeSet<Val>,
    /// Reads and refusals that are left out although their values are kept.
    dropped: BTreeSet<usize>,
}

/// Reduces a history to what a contradiction is about.
#[must_use]
pub fn from_contradiction(problem: &Problem, contradiction: &Contradiction, budget: Budget) -> Shrunk {
    let mut shrinker = Shrinker::new(problem, budget);
    let (values, ops) = zones::values_of(problem, contradiction);
    let values: BTreeSet<Val> = values.into_iter().collect();
    let unnamed = |at: &usize| match problem.entries[*at].action {
        Action::Read(value) | Action::Refused(value) => values.contains(&value) && !ops.contains(at),
        Action::Write(_) | Action::Cas { .. } => false,
    };
    let dropped = (0..problem.entries.len()).filter(unnamed).collect();
    let exact = Selection { dropped, values };
    let wider = Selection { dropped: BTreeSet::new(), ..exact.clone() };
    for candidate in [exact, wider] {
        if shrinker.is_violation(&candidate) {
            return shrinker.finish(candidate);
        }
    }
    shrinker.finish(Selection::all(problem))
}

/// Reduces a history that a search found to have no order, beginning near the entry that it could not place.
#[must_use]
pub fn from_stuck(problem: &Problem, stuck_at: usize, budget: Budget) -> Shrunk {
    let mut shrinker = Shrinker::new(problem, budget);
    let all = Selection::all(problem);
    let centre = problem.entries[stuck_at].call;
    let end = problem.entries.last().map_or(0, |entry| entry.call);
    let mut width = FIRST_WINDOW;
    while width < end.saturating_mul(2) {
        let near = |entry: &&Entry| {
            entry.ret >= centre.saturating_sub(width) && entry.call <= centre.saturating_add(width)
        };
        let touched = problem.entries.iter().filter(near).flat_map(|entry| match entry.action {
            Action::Read(v) | Action::Write(v) | Action::Refused(v) => [Some(v), None],
            Action::Cas { from, to } => [Some(from), Some(to)],
        });
        let window = Selection { values: touched.flatten().collect(), dropped: BTreeSet::new() };
        if shrinker.is_violation(&window) {
            return shrinker.finish(window);
        }
        width = width.saturating_mul(4);
    }
    shrinker.finish(all)
}

impl Selection {
    fn all(problem: &Problem) -> Self {
        let values = (0..problem.values()).filter_map(|value| Val::try_from(value).ok()).collect();
        Self { values, dropped: BTreeSet::new() }
    }

    /// The part as a problem, with where its entries come from.
    fn part(&self, problem: &Problem) -> (Problem, Vec<usize>) {
        let kept = |value: Val| value == NIL || self.values.contains(&value);
        let everything = problem.sources.iter().zip(0..).all(|(&sources, value)| sources == 0 || kept(value));
        let mut entries: Vec<Entry> = Vec::new();
        let mut from = Vec::new();
        for (at, entry) in problem.entries.iter().enumerate() {
            let action = match entry.action {
                _ if self.dropped.contains(&at) => continue,
                Action::Read(value) if !kept(value) => continue,
                Action::Write(to) | Action::Cas { to, .. } if !kept(to) => continue,
                Action::Cas { from, to } if !kept(from) => Action::Write(to),
                Action::Refused(from) if !kept(from) => continue,
                Action::Refused(_) if !everything && !self.is_fair_refusal(problem, at) => continue,
                action => action,
            };
            entries.push(Entry { action, ..*entry });
            from.push(at);
        }
        (Problem::new(entries), from)
    }

    /// Rules (b) and (c) of the module's introduction.
    fn is_fair_refusal(&self, problem: &Problem, at: usize) -> bool {
        let refused = &problem.entries[at];
        let Action::Refused(from) = refused.action else { return true };
        let happened = || problem.entries.iter().filter(|entry| !entry.is_open());
        let is_kept = |entry: &Entry| entry.action.written().is_some_and(|to| self.values.contains(&to));
        let needs = |entry: &Entry| entry.action.required() == Some(from) && entry.call > refused.ret;
        if problem.is_single_source(from) {
            let mut entries =
                problem.entries.iter().enumerate().filter(|(_, entry)| !entry.is_open() && needs(entry));
            let is_there = |at: usize, entry: &Entry| match entry.action {
                Action::Read(_) => !self.dropped.contains(&at),
                _ => is_kept(entry),
            };
            if entries.any(|(at, entry)| is_there(at, entry)) {
                return true;
            }
        }
        let shield = happened()
            .filter(|entry| is_kept(entry) && entry.ret < refused.call)
            .map(|entry| entry.call)
            .max();
        let harmless =
            |entry: &Entry| entry.call > refused.ret || shield.is_some_and(|shield| entry.ret < shield);
        problem
            .entries
            .iter()
            .filter(|entry| entry.action.written().is_some() && !is_kept(entry))
            .all(harmless)
    }
}

struct Shrinker<'a> {
    problem: &'a Problem,
    budget: Budget,
    candidates: u32,
    steps: u64,
}

impl<'a> Shrinker<'a> {
    fn new(problem: &'a Problem, budget: Budget) -> Self {
        Self { problem, budget, candidates: 0, steps: budget.steps.min(SHRINK_STEPS) }
    }

    fn is_violation(&mut self, selection: &Selection) -> bool {
        if self.candidates >= MAX_CANDIDATES || self.steps == 0 {
            return false;
        }
        self.candidates += 1;
        let (part, _) = selection.part(self.problem);
        let looked_at = u64::try_from(self.problem.entries.len()).unwrap_or(u64::MAX);
        let mut meter = Meter::new(Budget { steps: CANDIDATE_STEPS.min(self.steps), ..self.budget });
        let found = if part.entries.len() <= PLAIN_ENTRIES {
            dfs::plain(&part, &mut meter)
        } else if matches!(zones::test(&part), Zones::Refuted(_)) {
            Found::NoOrder { stuck_at: 0 }
        } else {
            frontier::search(&part, &mut meter)
        };
        self.steps = self.steps.saturating_sub(looked_at + meter.spent());
        matches!(found, Found::NoOrder { .. })
    }

    /// Leaves out values, then reads and refusals, as long as the rest is a violation.
    fn finish(mut self, mut selection: Selection) -> Shrunk {
        let values: Vec<Val> = selection.values.iter().copied().collect();
        self.leave_out(&mut selection, values, |selection, value| {
            selection.values.remove(value);
        });
        let (part, from) = selection.part(self.problem);
        let droppable = part.entries.iter().zip(from).filter(|(entry, _)| entry.action.written().is_none());
        let droppable: Vec<usize> = droppable.map(|(_, from)| from).collect();
        self.leave_out(&mut selection, droppable, |selection, at| {
            selection.dropped.insert(*at);
        });
        // A value may be needed only for a read that has gone by now.
        let values: Vec<Val> = selection.values.iter().copied().collect();
        self.leave_out(&mut selection, values, |selection, value| {
            selection.values.remove(value);
        });
        let (part, from) = selection.part(self.problem);
        let steps = self.budget.steps.min(CANDIDATE_STEPS);
        let plain = dfs::plain(&part, &mut Meter::new(Budget { steps, ..self.budget }));
        let contradiction = match zones::test(&part) {
            Zones::Refuted(contradiction) => Some(contradiction),
            _ => None,
        };
        let stuck_at = match plain {
            Found::NoOrder { stuck_at } => Some(stuck_at),
            _ => None,
        };
        Shrunk { part, from, plain, contradiction, stuck_at }
    }

    /// Delta debugging: tries to leave out halves, then quarters, down to single items.
    fn leave_out<T: Clone>(
        &mut self,
        selection: &mut Selection,
        mut items: Vec<T>,
        leave: impl Fn(&mut Selection, &T),
    ) {
        let mut chunk = items.len().div_ceil(2).max(1);
        while !items.is_empty() {
            let mut start = 0;
            while start < items.len() {
                let end = (start + chunk).min(items.len());
                let mut candidate = selection.clone();
                items[start..end].iter().for_each(|item| leave(&mut candidate, item));
                if self.is_violation(&candidate) {
                    *selection = candidate;
                    items.drain(start..end);
                } else {
                    start = end;
                }
            }
            if chunk == 1 {
                return;
            }
            chunk = chunk.div_ceil(2);
        }
    }
}

/// A part chosen by the bits of `mask`, for the test that parts are fair.
#[cfg(test)]
pub(super) fn random_part(problem: &Problem, mask: u64) -> (Problem, Vec<usize>) {
    let bit = |at: usize| mask >> (at % 48) & 1 == 1;
    let values =
        (0..problem.values()).filter(|&value| bit(value)).filter_map(|value| Val::try_from(value).ok());
    let droppable = |at: &usize| problem.entries[*at].action.written().is_none();
    let dropped = (0..problem.entries.len()).filter(|&at| bit(at + 20) && bit(at + 7)).filter(droppable);
    Selection { values: values.collect(), dropped: dropped.collect() }.part(problem)
}
