//! Parts of a register's history by value: which refused compare-and-sets may stay.
//!
//! A part is *fair* if it has an order whenever the whole has one. One by value keeps all changes that write
//! a kept value; a compare-and-set to a kept value from one that is not kept counts as a write; all else on a
//! value that is not kept is left out ([`left_of`]). That is fair for reads and changes. Take a linearization
//! of the whole and leave out the same operations. A kept read of v stands, in the whole, after a change to v
//! with no change between. That change is kept, so it is still the last one before the read. The same goes
//! for a compare-and-set from a kept value.
//!
//! A refusal from s needs more, because the change that justified it may be left out and uncover s. It is
//! kept only (a) when no change that was called before it returned is left out; or (b) when s has a single
//! source and a kept operation that was called after the refusal had returned needs s (reads it, takes it):
//! then the refusal stands before s was written, in the whole and in the part; or (c) when no left-out change
//! can be the last one before the refusal: each was called after the refusal returned, or had returned before
//! the call of a kept change that itself returned before the refusal was called.

use std::collections::BTreeMap;

use super::problem::{Action, Entry, NIL, Problem, Val, index};
use crate::history::Rank;
use crate::search::sabotage::{Rule, is_broken};

/// What remains of an operation when some values are not kept; none when nothing does.
pub(crate) fn left_of(action: Action, is_kept: impl Fn(Val) -> bool) -> Option<Action> {
    match action {
        Action::Read(value) | Action::Refused(value) if !is_kept(value) => None,
        Action::Write(to) | Action::Cas { to, .. } if !is_kept(to) => None,
        Action::Cas { from, to } if !is_kept(from) => Some(Action::Write(to)),
        action => Some(action),
    }
}

/// The refusals of kept values that must be left out all the same, by place.
pub(crate) fn unfair(problem: &Problem, is_kept: impl Fn(Val) -> bool) -> Vec<usize> {
    if !problem.has_refused || is_broken(Rule::EveryRefusalIsFair) {
        return Vec::new();
    }
    // For each value the latest call of a kept operation that happened and needs it.
    let mut needed: BTreeMap<Val, Rank> = BTreeMap::new();
    // Returns of kept changes that happened, with the latest call among those up to there; and calls of
    // changes that are left out, with the latest return among those up to there.
    let mut shields: Vec<(Rank, Rank)> = Vec::new();
    let mut left_out = shields.clone();
    for entry in &problem.entries {
        let is_there = entry.action.written().is_none_or(&is_kept);
        match entry.action.written() {
            Some(_) if !is_there => left_out.push((entry.call, entry.ret)),
            Some(_) if !entry.is_open() => shields.push((entry.ret, entry.call)),
            _ => {}
        }
        if let Some(value) = entry.action.required().filter(|&value| is_kept(value))
            && is_there
            && !entry.is_open()
        {
            let latest = needed.entry(value).or_insert(entry.call);
            *latest = entry.call.max(*latest);
        }
    }
    shields.sort_unstable();
    for list in [&mut shields, &mut left_out] {
        let mut highest = 0;
        for (_, value) in list.iter_mut() {
            highest = highest.max(*value);
            *value = highest;
        }
    }
    let is_fair = |entry: &Entry, from: Val| {
        let Some(latest) = highest_up_to(&left_out, entry.ret) else { return true };
        let single = problem.is_single_source(from) || is_broken(Rule::FairWithSeveralSources);
        let is_later = |&call: &Rank| call > entry.ret || is_broken(Rule::FairIfNeededEver);
        single && needed.get(&from).is_some_and(is_later)
            || highest_up_to(&shields, entry.call)
                .is_some_and(|shield| latest < shield || is_broken(Rule::AnyShieldIsFair))
    };
    let refusals = problem.entries.iter().enumerate();
    refusals
        .filter(|(_, entry)| matches!(entry.action, Action::Refused(from) if !is_fair(entry, from)))
        .map(|(at, _)| at)
        .collect()
}

/// What stands beside the last rank below `limit`.
fn highest_up_to(list: &[(Rank, Rank)], limit: Rank) -> Option<Rank> {
    list.partition_point(|&(rank, _)| rank < limit).checked_sub(1).map(|at| list[at].1)
}

/// The part of the operations on these values, numbered as before, and for each of its entries that of the
/// whole.
pub(super) fn of_values(problem: &Problem, values: impl IntoIterator<Item = Val>) -> (Problem, Vec<usize>) {
    let mut keeps = vec![false; problem.values()];
    values.into_iter().for_each(|value| keeps[index(value)] = true);
    let is_kept = |value: Val| value == NIL || keeps[index(value)];
    let unfair = unfair(problem, is_kept);
    let entries = problem.entries.iter().enumerate();
    let (entries, from) = entries
        .filter(|(at, _)| unfair.binary_search(at).is_err())
        .filter_map(|(at, entry)| Some((Entry { action: left_of(entry.action, is_kept)?, ..*entry }, at)))
        .unzip();
    (Problem::new(entries), from)
}
