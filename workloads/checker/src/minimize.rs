//! Makes a violation small: in which order parts of a history are tried, whatever it is a history of.
//!
//! A shrinker has three things of its own, which stay with the algorithm that they belong to: which parts are
//! *fair* (if the whole had an order, the part would have one), who *judges* a part, and where to begin. What
//! they share is here: what the candidates may cost (`Allowance`), windows that grow around a suspect
//! (`widths`), and the order in which things are left out ([`leave_out`], the delta debugging of Zeller and
//! Hildebrandt, 2002).

use crate::budget::{Budget, Meter};
use crate::history::Rank;

/// What the candidates of one shrinker may cost, each and together.
#[derive(Debug)]
pub(crate) struct Allowance<'a> {
    budget: &'a Budget,
    candidates: u32,
    steps: u64,
    candidate_steps: u64,
}

impl<'a> Allowance<'a> {
    /// So many candidates of so many steps each, and so many steps for all of them.
    pub(crate) fn new(budget: &'a Budget, candidates: u32, candidate_steps: u64, steps: u64) -> Self {
        Self { budget, candidates, steps, candidate_steps }
    }

    /// The budget for judging one more candidate, for which so many operations were looked at; none when
    /// enough was tried or somebody rang.
    pub(crate) fn candidate(&mut self, looked_at: usize) -> Option<Budget> {
        if self.steps == 0 || self.budget.interrupt.rung().is_some() {
            return None;
        }
        self.candidates = self.candidates.checked_sub(1)?;
        let steps = self.candidate_steps.min(self.steps);
        self.spend(u64::try_from(looked_at).unwrap_or(u64::MAX));
        Some(self.budget.with_steps(steps))
    }

    /// Pays for what judging a candidate took.
    pub(crate) fn pay(&mut self, meter: &Meter) {
        self.spend(meter.spent());
    }

    fn spend(&mut self, steps: u64) {
        self.steps = self.steps.saturating_sub(steps);
    }
}

/// Each window is so many times the one before.
const WINDOW_GROWTH: Rank = 4;

/// The widths of windows around a suspect, from the first on, below a limit.
pub(crate) fn widths(first: Rank, below: Rank) -> impl Iterator<Item = Rank> {
    std::iter::successors(Some(first), |width| width.checked_mul(WINDOW_GROWTH))
        .take_while(move |&width| width < below)
}

/// Tries to leave out all items, then chunks of half the size and so on, down to single items. `leave` says
/// whether what it is given can go too; then it is gone. What is left is returned. Chunks begin at so many
/// items after the first: at two, where what goes together (a lock taken and released) may begin at either.
pub fn leave_out<T: Copy>(
    mut items: Vec<T>,
    beginnings: usize,
    mut leave: impl FnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut chunk = items.len();
    while !items.is_empty() && chunk > 0 {
        for first in 0..chunk.min(beginnings) {
            leave_out_chunks(&mut items, first, chunk, &mut leave);
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    items
}

/// Tries to leave out single items until none can go.
pub fn leave_out_singly<T: Copy>(mut items: Vec<T>, mut leave: impl FnMut(&[T]) -> bool) {
    loop {
        let before = items.len();
        leave_out_chunks(&mut items, 0, 1, &mut leave);
        if items.len() == before {
            return;
        }
    }
}

fn leave_out_chunks<T>(items: &mut Vec<T>, first: usize, chunk: usize, leave: &mut impl FnMut(&[T]) -> bool) {
    let mut start = first;
    while start < items.len() {
        let end = (start + chunk).min(items.len());
        if leave(&items[start..end]) {
            items.drain(start..end);
        } else {
            start = end;
        }
    }
}

/// Up to this many items are left out two by two, however far apart they stand.
const MOST_PAIRED: usize = 32;

/// Tries to leave out items two by two.
pub(crate) fn leave_out_pairs<T: Copy>(mut items: Vec<T>, mut leave: impl FnMut(&[T]) -> bool) {
    let mut first = 0;
    while first < items.len() && items.len() <= MOST_PAIRED {
        match (first + 1..items.len()).find(|&second| leave(&[items[first], items[second]])) {
            Some(second) => {
                items.remove(second);
                items.remove(first);
            }
            None => first += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Interrupt;

    /// What is left of `count` items when a candidate is a violation as long as `needs` holds of it.
    fn left(count: u32, needs: impl Fn(&[u32]) -> bool) -> Vec<u32> {
        let mut kept: Vec<u32> = (0..count).collect();
        let left = leave_out(kept.clone(), 1, |out| {
            let without: Vec<u32> = kept.iter().copied().filter(|item| !out.contains(item)).collect();
            let is_violation = needs(&without);
            if is_violation {
                kept = without;
            }
            is_violation
        });
        assert_eq!(left, kept);
        left
    }

    #[test]
    fn what_is_needed_stays_and_nothing_else() {
        for count in 1..40 {
            assert!(left(count, |_| true).is_empty());
            let last = count - 1;
            assert_eq!(left(count, |kept| kept.contains(&last)), [last]);
            if count > 7 {
                assert_eq!(left(count, |kept| kept.contains(&3) && kept.contains(&7)), [3, 7]);
            }
        }
    }

    #[test]
    fn what_goes_only_together_goes_where_it_begins_at_the_second() {
        let mut kept: Vec<u32> = (0..6).collect();
        // 1 and 2 go together, and so do 3 and 4; 0 and 5 stay.
        let fair = |kept: &[u32]| {
            let has = |item: u32| kept.contains(&item);
            has(0) && has(5) && has(1) == has(2) && has(3) == has(4)
        };
        let left = leave_out(kept.clone(), 2, |out| {
            let without: Vec<u32> = kept.iter().copied().filter(|item| !out.contains(item)).collect();
            let goes = fair(&without);
            if goes {
                kept = without;
            }
            goes
        });
        assert_eq!(left, [0, 5]);
    }

    #[test]
    fn an_allowance_ends_by_candidates_by_steps_and_by_the_bell() {
        let budget = Budget::new(1_000, 1 << 20);
        let mut by_candidates = Allowance::new(&budget, 2, 10, 100);
        assert_eq!(by_candidates.candidate(0).map(|budget| budget.steps), Some(10));
        assert!(by_candidates.candidate(0).is_some() && by_candidates.candidate(0).is_none());
        let mut by_steps = Allowance::new(&budget, 9, 10, 12);
        assert!(by_steps.candidate(5).is_some());
        assert_eq!(by_steps.candidate(7).map(|budget| budget.steps), Some(7));
        assert!(by_steps.candidate(0).is_none());
        let interrupt = Interrupt::armed();
        let budget = Budget { interrupt: interrupt.clone(), ..budget };
        let mut by_bell = Allowance::new(&budget, 9, 10, 100);
        interrupt.time_is_over();
        assert!(by_bell.candidate(0).is_none());
    }
}
