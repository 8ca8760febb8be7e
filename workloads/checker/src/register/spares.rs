//! Changes of unknown fate whose value nobody asked for: any of them may be absent, and any may be the reason
//! for a refusal.
//!
//! Let A be an open write of a value x, or an open compare-and-set from u to x, such that no read returned x
//! and no compare-and-set (done, open or refused) names it as its `from`. If a linearization exists, one
//! exists in which A is either absent or stands immediately before a refused compare-and-set whose `from` is
//! the value s that the register held before A. *Proof.* From A up to the next change, the register holds x.
//! What stands there can't be a read or a compare-and-set that needs x, so it is refused compare-and-sets
//! only. Take A out: they now see s, and each is still right unless its `from` is s. If none has that `from`,
//! A may be absent. Otherwise move A to the right, to just before the first of those whose `from` is s:
//! moving an open operation later never breaks real time, because it has no return. ∎

use std::collections::{HashMap, VecDeque};

use super::problem::{Action, Problem, Val, index};
use crate::history::Rank;

/// Which values somebody read or asked for.
pub(super) fn asked_for(problem: &Problem) -> Vec<bool> {
    let mut asked_for = vec![false; problem.values()];
    for entry in &problem.entries {
        match entry.action {
            Action::Read(value) | Action::Refused(value) => asked_for[index(value)] = true,
            Action::Cas { from, .. } => asked_for[index(from)] = true,
            Action::Write(_) => {}
        }
    }
    asked_for
}

/// The unobserved open changes, for whoever builds an order and needs one.
pub(super) struct Spares {
    /// Writes, by call.
    writes: VecDeque<(Rank, usize)>,
    /// For each value the earliest compare-and-set from it.
    cas: HashMap<Val, (Rank, usize)>,
}

impl Spares {
    /// Those of `problem` that are not in `order` already.
    pub(super) fn outside(problem: &Problem, order: &[usize]) -> Self {
        let mut used = vec![false; problem.entries.len()];
        order.iter().for_each(|&at| used[at] = true);
        let asked_for = asked_for(problem);
        let mut spares = Self { writes: VecDeque::new(), cas: HashMap::new() };
        for (at, entry) in problem.entries.iter().enumerate().filter(|(_, entry)| entry.is_open()) {
            match entry.action {
                _ if used[at] || entry.action.written().is_none_or(|to| asked_for[index(to)]) => {}
                Action::Cas { from, .. } => {
                    spares.cas.entry(from).or_insert((entry.call, at));
                }
                _ => spares.writes.push_back((entry.call, at)),
            }
        }
        spares
    }

    /// The writes, by call.
    pub(super) fn into_writes(self) -> Vec<usize> {
        self.writes.into_iter().map(|(_, at)| at).collect()
    }

    /// One that can follow `state` and was called before `limit`.
    pub(super) fn take(&mut self, state: Val, limit: Rank) -> Option<usize> {
        if let Some(&(call, at)) = self.cas.get(&state)
            && call < limit
        {
            self.cas.remove(&state);
            return Some(at);
        }
        self.writes.pop_front_if(|&mut (call, _)| call < limit).map(|(_, at)| at)
    }
}
