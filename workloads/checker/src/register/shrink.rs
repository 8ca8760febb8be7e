//! Makes a violation small.
//!
//! Beginning from what a contradiction names, or around the operation that a search could not place, fair
//! parts of the history (`part`) are judged; the first that is a violation takes the place of the history,
//! and is made smaller in turn: by leaving out values, reads and refusals, and by cutting time at both ends.
//! A fair part of a fair part is one.
//!
//! How things are left out is `minimize`. What is fair stays apart from that of any object
//! ([`crate::search::shrink`]): here whole values go, with arguments about refusals that no other object has,
//! and parts are judged by the searches of registers.

use std::borrow::Cow;

use super::blocks::{self, Contradiction, Tested};
use super::part::{Part, Selection, stretch};
use super::problem::{Action, Entry, Problem, Val, index};
use super::{Found, dfs, frontier};
use crate::budget::{Budget, Meter};
use crate::history::Rank;
use crate::minimize::{self, Allowance, widths};

/// A small part of a problem that has no order.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The part, as a problem of its own.
    pub part: Problem,
    /// For each of its entries the entry of the whole.
    pub from: Vec<usize>,
    /// What the plain search says of the part.
    pub plain: Found,
    /// Why the part has no order, if the test by blocks sees it.
    pub contradiction: Option<Contradiction>,
    /// The operation of the part that the search could not place, when there is no contradiction to tell.
    pub stuck_at: Option<usize>,
}

/// Steps for judging one candidate, for all of them (looking at an entry is a step here), and how many are
/// judged at most.
const CANDIDATE_STEPS: u64 = 1_000_000;
const SHRINK_STEPS: u64 = 100_000_000;
const MAX_CANDIDATES: u32 = 2_000;
/// The first window around the place where a search got stuck, in ranks.
const FIRST_WINDOW: Rank = 64;
/// The widest window when nothing is known yet of whether there is a violation.
const LAST_WINDOW_ON_SUSPICION: Rank = 4096;
/// Up to this many entries a part is cut by time at every place; above, at a few.
const CUT_EVERYWHERE: usize = 300;

/// Reduces a history to what a contradiction is about.
#[must_use]
pub fn from_contradiction(problem: &Problem, contradiction: &Contradiction, budget: &Budget) -> Shrunk {
    let mut shrinker = Shrinker::new(problem, budget);
    shrinker.take_contradiction(contradiction);
    shrinker.finish()
}

/// A contradiction among the values that come from one operation each.
pub struct UniqueValues {
    part: Part,
    contradiction: Contradiction,
}

/// A violation among the values that come from one operation each, in a history where others come from
/// several: the part of those values is fair, and the test by blocks applies to it.
#[must_use]
pub fn among_unique_values(problem: &Problem) -> Option<UniqueValues> {
    let unique = (1..problem.values()).filter_map(|value| Val::try_from(value).ok());
    let unique: Vec<Val> = unique.filter(|&value| problem.is_single_source(value)).collect();
    if unique.is_empty() {
        return None;
    }
    let part = Selection::of(problem, unique).part(problem, &[]);
    match blocks::test(&part.problem) {
        Tested::Refuted(contradiction) => Some(UniqueValues { part, contradiction }),
        Tested::Order(_) | Tested::Ambiguous => None,
    }
}

/// Reduces a history to what such a contradiction is about.
#[must_use]
pub fn from_unique_values(problem: &Problem, found: UniqueValues, budget: &Budget) -> Shrunk {
    let mut shrinker = Shrinker::new(problem, budget);
    shrinker.descend(found.part);
    shrinker.take_contradiction(&found.contradiction);
    shrinker.finish()
}

/// Reduces a history that a search found to have no order, beginning near the entry that it could not place.
#[must_use]
pub fn from_stuck(problem: &Problem, stuck_at: usize, budget: &Budget) -> Shrunk {
    let mut shrinker = Shrinker::new(problem, budget);
    let end = problem.entries.last().map_or(0, |entry| entry.call);
    if !shrinker.take_near(stuck_at, end) {
        shrinker.cut_around(stuck_at);
    }
    shrinker.finish()
}

/// A violation near an entry, if there is one: for when the whole is too much to be judged.
#[must_use]
pub fn around(problem: &Problem, suspect: usize, budget: &Budget) -> Option<Shrunk> {
    let mut shrinker = Shrinker::new(problem, budget);
    shrinker.take_near(suspect, LAST_WINDOW_ON_SUSPICION).then(|| shrinker.finish())
}

struct Shrinker<'a> {
    base: Cow<'a, Problem>,
    /// For each entry of the base that of the whole; none for the whole itself.
    from: Option<Vec<usize>>,
    /// As [`Part::left_out`]; empty for the whole.
    left_out: Vec<Rank>,
    budget: &'a Budget,
    allowance: Allowance<'a>,
    is_cut: bool,
    /// The entry of the whole from which on time is kept: what came before it is accounted for by nothing
    /// else.
    beginning: Option<usize>,
}

impl<'a> Shrinker<'a> {
    fn new(problem: &'a Problem, budget: &'a Budget) -> Self {
        let steps = budget.steps.min(SHRINK_STEPS);
        Self {
            base: Cow::Borrowed(problem),
            from: None,
            left_out: Vec::new(),
            budget,
            allowance: Allowance::new(budget, MAX_CANDIDATES, CANDIDATE_STEPS, steps),
            is_cut: false,
            beginning: None,
        }
    }

    fn is_violation(&mut self, part: &Problem) -> bool {
        let Some(budget) = self.allowance.candidate(self.base.entries.len()) else { return false };
        let mut meter = Meter::new(&budget);
        // The quick ones judge here; what is left in the end is judged by the plain search.
        let found = if matches!(blocks::test(part), Tested::Refuted(_)) {
            Found::NoOrder { stuck_at: 0 }
        } else {
            match frontier::search(part, &mut meter) {
                Found::GaveUp(_) => {
                    dfs::reduced(part, &mut Meter::new(&self.budget.with_steps(CANDIDATE_STEPS)))
                }
                found => found,
            }
        };
        self.allowance.pay(&meter);
        matches!(found, Found::NoOrder { .. })
    }

    /// Goes on with this part if it is a violation.
    fn take(&mut self, selection: &Selection) -> bool {
        let part = selection.part(&self.base, &self.left_out);
        self.take_part(part)
    }

    fn take_part(&mut self, part: Part) -> bool {
        let is_smaller = part.problem.entries.len() < self.base.entries.len();
        let taken = is_smaller && self.is_violation(&part.problem);
        if taken {
            self.descend(part);
        }
        taken
    }

    fn descend(&mut self, part: Part) {
        let whole = |at: usize| self.from.as_ref().map_or(at, |whole| whole[at]);
        self.from = Some(part.from.into_iter().map(whole).collect());
        self.left_out = part.left_out;
        self.base = Cow::Owned(part.problem);
    }

    /// Goes on with what a contradiction names, or else with all of the values that it is about.
    fn take_contradiction(&mut self, contradiction: &Contradiction) {
        let (values, ops) = blocks::values_of(&self.base, contradiction);
        let wider = Selection::of(&self.base, values);
        let mut exact = wider.clone();
        for (at, entry) in self.base.entries.iter().enumerate() {
            exact.dropped[at] = entry.action.changes_nothing() && !ops.contains(&at);
        }
        let _ = self.take(&exact) || self.take(&wider);
    }

    /// Goes on with the values that occur around an entry, in wider and wider windows.
    fn take_near(&mut self, at: usize, widest: Rank) -> bool {
        let centre = self.base.entries[at].call;
        for width in widths(FIRST_WINDOW, widest.saturating_mul(2)) {
            let near = |entry: &&Entry| {
                entry.ret >= centre.saturating_sub(width) && entry.call <= centre.saturating_add(width)
            };
            let touched = self
                .base
                .entries
                .iter()
                .filter(near)
                .flat_map(|entry| entry.action.written().into_iter().chain(entry.action.mentioned()));
            let window = Selection::of(&self.base, touched);
            if self.take(&window) {
                return true;
            }
            if window.keeps.iter().skip(1).all(|&keeps| keeps) {
                return false;
            }
        }
        false
    }

    /// Goes on with what was called until an entry returned, from some time before it on.
    fn cut_around(&mut self, at: usize) {
        let end = self.base.entries[at].ret.saturating_add(1);
        let mut before = 16;
        while before < at {
            if let Some(start) = self.start_before(at - before)
                && self.take_cut(Some(start), end)
            {
                return;
            }
            before *= 4;
        }
        self.take_cut(None, end);
    }

    fn take_cut(&mut self, start: Option<usize>, end: Rank) -> bool {
        let beginning = start.map(|at| self.from.as_ref().map_or(at, |whole| whole[at]));
        let taken = self.take_part(stretch(&self.base, &self.left_out, start, end));
        if taken {
            self.is_cut = true;
            self.beginning = beginning.or(self.beginning);
        }
        taken
    }

    /// The last entry before `at` that shows what the register holds.
    fn start_before(&self, at: usize) -> Option<usize> {
        let shows = |entry: &Entry| !entry.is_open() && !matches!(entry.action, Action::Refused(_));
        (0..at).rev().find(|&at| shows(&self.base.entries[at]))
    }

    /// Cuts a small part at every place: first its end, which is a violation up to some moment, then its
    /// beginning.
    fn cut(&mut self) {
        if self.base.entries.len() > CUT_EVERYWHERE {
            return;
        }
        let mut ends: Vec<Rank> =
            self.base.entries.iter().filter(|entry| !entry.is_open()).map(|entry| entry.ret + 1).collect();
        ends.sort_unstable();
        let first = {
            let is_one = |end: Rank, shrinker: &mut Self| {
                let part = stretch(&shrinker.base, &shrinker.left_out, None, end);
                shrinker.is_violation(&part.problem)
            };
            let (mut low, mut high) = (0, ends.len().saturating_sub(1));
            while low < high {
                let middle = (low + high) / 2;
                if is_one(ends[middle], self) { high = middle } else { low = middle + 1 }
            }
            ends.get(low).copied()
        };
        if let Some(end) = first {
            self.take_cut(None, end);
        }
        let mut at = self.base.entries.len();
        while let Some(start) = self.start_before(at) {
            if self.take_cut(Some(start), Rank::MAX) {
                return;
            }
            at = start;
        }
    }

    fn finish(mut self) -> Shrunk {
        for _ in 0..3 {
            let before = self.base.entries.len();
            self.leave_out_values();
            self.leave_out_quiet();
            // Time is cut only where values did not make it small: a read in the place of a write needs
            // explaining.
            if self.base.entries.len() > ENOUGH {
                self.cut();
            }
            if self.base.entries.len() == before {
                break;
            }
        }
        let part = self.base.into_owned();
        let steps = self.budget.steps.min(CANDIDATE_STEPS);
        let plain = dfs::plain(&part, &mut Meter::new(&self.budget.with_steps(steps)));
        let contradiction = match blocks::test(&part) {
            Tested::Refuted(contradiction) if !self.is_cut => Some(contradiction),
            _ => None,
        };
        let stuck_at = match plain {
            Found::NoOrder { stuck_at } => Some(stuck_at),
            _ => None,
        };
        let from = self.from.unwrap_or_else(|| (0..part.entries.len()).collect());
        Shrunk { part, from, plain, contradiction, stuck_at }
    }

    fn leave_out_values(&mut self) {
        let from = self.from.as_deref().unwrap_or_default();
        let beginning = from.iter().position(|&at| Some(at) == self.beginning);
        let needed = beginning.and_then(|at| self.base.entries[at].action.written());
        let values = (1..self.base.values()).filter_map(|value| Val::try_from(value).ok());
        let values: Vec<Val> = values.filter(|&value| Some(value) != needed).collect();
        self.leave_out(values, |selection, &value| selection.keeps[index(value)] = false);
    }

    fn leave_out_quiet(&mut self) {
        let entries = self.base.entries.iter().enumerate();
        let quiet = entries.filter(|(_, entry)| entry.action.changes_nothing()).map(|(at, _)| at).collect();
        self.leave_out(quiet, |selection, &at: &usize| selection.dropped[at] = true);
    }

    fn leave_out<T: Copy>(&mut self, items: Vec<T>, leave: impl Fn(&mut Selection, &T)) {
        let mut selection = Selection::all(&self.base);
        minimize::leave_out(items, 1, |out| {
            let mut candidate = selection.clone();
            out.iter().for_each(|item| leave(&mut candidate, item));
            let part = candidate.part(&self.base, &self.left_out);
            let is_violation = self.is_violation(&part.problem);
            if is_violation {
                selection = candidate;
            }
            is_violation
        });
        self.take(&selection);
    }
}

/// A counterexample of so many operations is small enough not to be cut by time.
const ENOUGH: usize = 5;

/// A part chosen by the bits of `mask`, for the test that parts are fair.
#[cfg(test)]
pub(super) fn random_part(problem: &Problem, mask: u64) -> Problem {
    let bit = |at: usize| mask >> (at % 48) & 1 == 1;
    let values =
        (0..problem.values()).filter(|&value| bit(value)).filter_map(|value| Val::try_from(value).ok());
    let mut selection = Selection::of(problem, values);
    for (at, entry) in problem.entries.iter().enumerate() {
        selection.dropped[at] = entry.action.changes_nothing() && bit(at + 20) && bit(at + 7);
    }
    selection.part(problem, &[]).problem
}

/// A part by time chosen by the bits of `mask`.
#[cfg(test)]
pub(super) fn random_stretch(problem: &Problem, mask: u64) -> Problem {
    let shows = |entry: &Entry| !entry.is_open() && !matches!(entry.action, Action::Refused(_));
    let number = |shift: u32| usize::try_from(mask >> shift & 0xff).unwrap();
    let start = Some(number(0) % problem.entries.len()).filter(|&at| shows(&problem.entries[at]));
    let end = Rank::try_from(number(8) % 24).unwrap();
    // The end must not come before the beginning is over.
    let end = start.map_or(end, |at| end.max(problem.entries[at].ret + 1));
    stretch(problem, &[], start.filter(|_| number(16) % 4 != 0), end).problem
}
