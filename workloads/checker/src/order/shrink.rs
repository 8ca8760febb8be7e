//! Makes a violation of an order of registers small.
//!
//! What may be left out is said in [`super::part`]: without real time between all operations a prefix is no
//! part, so nothing is cut by time, and a part of one key need not be one of another. How it is left out is
//! [`crate::minimize`].

use std::collections::BTreeSet;

use super::RealTime;
use super::decide::{Decision, decide, plain};
use super::part::{registers_of, with_sources};
use super::registers::Registers;
use super::search::Found;
use crate::budget::{Budget, Meter};
use crate::history::Rank;
use crate::minimize::{Allowance, leave_out, leave_out_singly, widths};

/// Steps for judging one candidate, how many are judged at most, and how many entries may be looked at in
/// all.
const CANDIDATE_STEPS: u64 = 300_000;
const MAX_CANDIDATES: u32 = 3_000;
const LOOK_STEPS: u64 = 20_000_000;
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
    let allowance = Allowance::new(budget, MAX_CANDIDATES, CANDIDATE_STEPS, LOOK_STEPS + CANDIDATE_STEPS);
    let mut shrinker = Shrinker { whole, real_time, allowance };
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
    allowance: Allowance<'a>,
}

impl Shrinker<'_> {
    fn is_violation(&mut self, kept: &BTreeSet<usize>) -> bool {
        let looked_at = self.whole.entries.len() / 8 + kept.len();
        let Some(budget) = self.allowance.candidate(looked_at) else { return false };
        let part = registers_of(self.whole, kept);
        matches!(decide(&part, self.real_time, &budget), Decision::None { .. })
    }

    /// The operations around those near which the search got stuck, in a window that grows until it is a
    /// violation.
    fn window(&mut self, near: &BTreeSet<usize>) -> Option<BTreeSet<usize>> {
        let entries = &self.whole.entries;
        let centre = near.iter().map(|&entry| entries[entry].span.call).min()?;
        let end = entries.last()?.span.call;
        for width in widths(FIRST_WINDOW, end.saturating_mul(2)) {
            let (first, last) = (centre.saturating_sub(width), centre.saturating_add(width));
            let window = (0..entries.len())
                .filter(|&entry| entries[entry].span.call <= last && entries[entry].span.ret >= first);
            let window = with_sources(self.whole, &window.collect());
            if self.is_violation(&window) {
                return Some(window);
            }
        }
        None
    }

    fn leave_out(&mut self, kept: &mut BTreeSet<usize>) {
        // From the end, so that what is left out early is what nothing leans on.
        let entries: Vec<usize> = kept.iter().rev().copied().collect();
        let mut leave = |out: &[usize]| {
            let out: BTreeSet<usize> = out.iter().copied().collect();
            let candidate: BTreeSet<usize> = kept.difference(&out).copied().collect();
            let is_violation = self.is_violation(&candidate);
            if is_violation {
                *kept = candidate;
            }
            is_violation
        };
        let left = leave_out(entries, 1, &mut leave);
        leave_out_singly(left, leave);
    }
}
