//! What is known of the operations to come, when the whole history is there.

use super::super::problem::{Problem, Val, index};
use super::core::{Ahead, Need};
use crate::history::{NEVER, Rank};

/// Lists of something for each value, in one piece, and how far into each list time has come.
struct ByValue<T> {
    items: Vec<T>,
    ends: Vec<u32>,
    at: Vec<u32>,
}

impl<T: Copy + Default> ByValue<T> {
    fn of(values: usize, items: impl Iterator<Item = (Val, T)> + Clone) -> Self {
        let mut starts = vec![0_u32; values + 1];
        for (value, _) in items.clone() {
            starts[index(value) + 1] += 1;
        }
        for value in 0..values {
            starts[value + 1] += starts[value];
        }
        let total = starts.last().copied().unwrap_or(0);
        let mut filled = starts.clone();
        let mut sorted = vec![T::default(); index(total)];
        for (value, item) in items {
            sorted[index(filled[index(value)])] = item;
            filled[index(value)] += 1;
        }
        Self { items: sorted, ends: filled, at: starts }
    }

    fn first(&mut self, value: Val, is_past: impl Fn(&T) -> bool) -> Option<T> {
        let end = *self.ends.get(index(value))?;
        let at = &mut self.at[index(value)];
        while *at < end {
            let item = self.items[index(*at)];
            if !is_past(&item) {
                return Some(item);
            }
            *at += 1;
        }
        None
    }
}

/// Knows everything.
pub(super) struct Whole {
    /// Calls and returns of what happened and needs the value.
    needs: ByValue<(Rank, Rank)>,
    /// Calls of what writes it.
    sources: ByValue<Rank>,
    pub(super) now: Rank,
}

impl Whole {
    pub(super) fn of(problem: &Problem) -> Self {
        let happened = problem.entries.iter().filter(|entry| !entry.is_open());
        let needs = happened.filter_map(|entry| Some((entry.action.required()?, (entry.call, entry.ret))));
        let sources = problem.entries.iter().filter_map(|entry| Some((entry.action.written()?, entry.call)));
        let values = problem.values();
        Self { needs: ByValue::of(values, needs), sources: ByValue::of(values, sources), now: 0 }
    }
}

impl Ahead for Whole {
    fn need_of(&mut self, value: Val) -> Option<Need> {
        let now = self.now;
        self.needs.first(value, |&(call, _)| call <= now).map(|(_, ret)| Need { ret })
    }

    fn next_source(&mut self, value: Val) -> Rank {
        let now = self.now;
        self.sources.first(value, |&call| call <= now).unwrap_or(NEVER)
    }
}
