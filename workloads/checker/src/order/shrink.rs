//! Makes a violation small: halves, quarters and at last single operations are left out while what remains is still a
//! violation. What may be left out is said in [`super::part`].

use std::collections::BTreeSet;

use super::RealTime;
use super::decide::{Decision, decide, plain};
use super::part::{registers_of, with_sources};
use super::registers::Registers;
use super::search::Found;
use crate::budget::{Budget, Meter};
use crate::history::Rank;

/// Steps for judging one candidate, how many are judged at most, and how many entries may be looked at in all.
const CANDIDATE_STEPS: u64 = 300_000;
const MAX_CANDIDATES: u32 = 3_000;
const LOOK_STEPS: usize = 20_000_000;
/// The first window around the place where a search got stuck, in ranks.
const FIRST_WINDOW: Rank = 32;
/// Up to this many entries a part is judged again by the plain search.
const PLAIN_ENTRIES: usize = 40;
const PLAIN_STEPS: u64 = 20_000_000;

/// A small violation.
pub(super) struct Shrunk {
    /// The operations, as registers of their own; their `op` says where they come from.
    pub(super) part: Registers,
    /// Whether the plain search says so too.
    pub(super) rechecked: bool,
}

/// Reduces a violation, beginning with the entries that show it or near which the search got stuck.
pub(super) fn shrink(
    whole: &Registers,
    real_time: RealTime,
    near: &[usize],
    enough: bool,
    budget: &Budget,
) -> Shrunk {
    let mut shrinker = Shrinker { whole, real_time, budget, candidates: MAX_CANDIDATES, looks: LOOK_STEPS };
    let all: BTreeSet<usize> = (0..whole.entries.len()).collect();
    let near: BTreeSet<usize> = near.iter().copied().collect();
    let named = with_sources(whole, &near);
    let mut kept =
        if enough && shrinker.is_violation(&named) { named } else { shrinker.window(&near).unwrap_or(all) };
    shrinker.leave_out(&mut kept);
    let part = registers_of(whole, &kept);
    let rechecked = part.entries.len() <= PLAIN_ENTRIES && {
        let mut meter = Meter::new(&budget.with_steps(PLAIN_STEPS));
        matches!(plain(&part, real_time, &mut meter), Found::NoOrder { .. })
    };
    Shrunk { part, rechecked }
}

struct Shrinker<'a> {
    whole: &'a Registers,
    real_time: RealTime,
    budget: &'a Budget,
    candidates: u32,
    looks: usize,
}

impl Shrinker<'_> {
    fn is_violation(&mut self, kept: &BTreeSet<usize>) -> bool {
        let (Some(candidates), Some(looks)) = (
            self.candidates.checked_sub(1),
            self.looks.checked_sub(self.whole.entries.len() / 8 + kept.len()),
        ) else {
            return false;
        };
        (self.candidates, self.looks) = (candidates, looks);
        let part = registers_of(self.whole, kept);
        let budget = self.budget.with_steps(CANDIDATE_STEPS);
        matches!(decide(&part, self.real_time, &budget), Decision::None { .. })
    }

    /// The operations around those near which the search got stuck, in a window that grows until it is a violation.
    fn window(&mut self, near: &BTreeSet<usize>) -> Option<BTreeSet<usize>> {
        let entries = &self.whole.entries;
        let centre = near.iter().map(|&entry| entries[entry].span.call).min()?;
        let end = entries.last()?.span.call;
        let mut width = FIRST_WINDOW;
        while width < end.saturating_mul(2) {
            let (first, last) = (centre.saturating_sub(width), centre.saturating_add(width));
            let window = (0..entries.len())
                .filter(|&entry| entries[entry].span.call <= last && entries[entry].span.ret >= first);
            let window = with_sources(self.whole, &window.collect());
            if self.is_violation(&window) {
                return Some(window);
            }
            width = width.saturating_mul(4);
        }
        None
    }

    fn leave_out(&mut self, kept: &mut BTreeSet<usize>) {
        let mut chunk = kept.len().div_ceil(2).max(1);
        loop {
            let mut smaller = false;
            let entries: Vec<usize> = kept.iter().copied().collect();
            // From the end, so that what is left out early is what nothing leans on.
            for out in entries.rchunks(chunk) {
                let candidate: BTreeSet<usize> =
                    kept.iter().copied().filter(|entry| !out.contains(entry)).collect();
                if candidate.len() < kept.len() && self.is_violation(&candidate) {
                    *kept = candidate;
                    smaller = true;
                }
            }
            if chunk == 1 && !smaller {
                return;
            }
            chunk = if chunk > 1 { chunk.div_ceil(2) } else { 1 };
        }
    }
}
