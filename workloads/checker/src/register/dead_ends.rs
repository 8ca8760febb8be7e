//! Where every attempt to put a few operations in order ends: what the register holds then, and which
//! operation, whose turn it is at the latest, can't be.
//!
//! This is for telling, not for deciding: the plain search has decided already. Operations are so few that
//! all orders are tried; when that takes too long, nothing is told.

use std::collections::BTreeSet;

use super::problem::{NIL, Problem, Val};

/// One way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeadEnd {
    /// The entry whose answer can't be.
    pub(super) blocked: usize,
    /// What the register holds.
    pub(super) holds: Val,
}

/// Most operations, most configurations and most dead ends.
const MAX_ENTRIES: usize = 20;
const MAX_CONFIGURATIONS: usize = 20_000;
const MAX_DEAD_ENDS: usize = 6;

/// All dead ends of a problem that has no order; none when they are too many or it is too large.
pub(super) fn of(problem: &Problem) -> Option<Vec<DeadEnd>> {
    let entries = &problem.entries;
    if entries.len() > MAX_ENTRIES {
        return None;
    }
    let mut seen: BTreeSet<(u32, Val)> = BTreeSet::new();
    let mut pending: Vec<(u32, Val)> = vec![(0, NIL)];
    let mut dead_ends: BTreeSet<DeadEnd> = BTreeSet::new();
    while let Some((placed, holds)) = pending.pop() {
        if !seen.insert((placed, holds)) {
            continue;
        }
        let unplaced = || (0..entries.len()).filter(|at| placed >> at & 1 == 0);
        let due = unplaced().filter(|&at| !entries[at].is_open()).min_by_key(|&at| entries[at].ret)?;
        let limit = entries[due].ret;
        let before = pending.len();
        // An operation of unknown fate that is placed last explains nothing, so it makes no new dead end.
        let mut only_open = true;
        for at in unplaced().filter(|&at| entries[at].call < limit) {
            if let Some(next) = entries[at].action.apply(holds) {
                only_open &= entries[at].is_open();
                pending.push((placed | 1 << at, next));
            }
        }
        if pending.len() == before || only_open {
            dead_ends.insert(DeadEnd { blocked: due, holds });
        }
        if seen.len() > MAX_CONFIGURATIONS || dead_ends.len() > MAX_DEAD_ENDS {
            return None;
        }
    }
    (!dead_ends.is_empty()).then(|| dead_ends.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::NEVER;
    use crate::register::{Action, Entry};

    fn entry(call: u32, ret: u32, action: Action) -> Entry {
        Entry { call, ret, action, version: None, op: 0 }
    }

    #[test]
    fn two_writes_that_overlap_leave_two_values_and_a_read_of_a_third_fits_neither() {
        let problem = Problem::new(vec![
            entry(0, 3, Action::Write(1)),
            entry(1, 2, Action::Write(2)),
            entry(4, 5, Action::Read(3)),
            entry(6, NEVER, Action::Write(3)),
        ]);
        let ends = of(&problem).unwrap();
        assert_eq!(ends, [DeadEnd { blocked: 2, holds: 1 }, DeadEnd { blocked: 2, holds: 2 }]);
    }

    #[test]
    fn what_has_an_order_has_no_dead_ends_to_tell() {
        assert_eq!(of(&Problem::new(vec![entry(0, 3, Action::Write(1))])), None);
    }
}
