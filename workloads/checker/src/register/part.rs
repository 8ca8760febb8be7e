//! Parts of a history that are fair: if the whole is linearizable, so is the part.
//!
//! Otherwise leaving something out makes the violation. There are two kinds of parts.
//!
//! **By value** ([`Selection`]). A part is described by the values that are kept and, among their operations,
//! which reads and refusals are kept:
//!
//! - All changes that write a kept value are kept, so no read loses the write it came from.
//! - A compare-and-set to a kept value from one that is not kept counts as a write: less is asked of it.
//! - Every other operation on a value that is not kept is left out.
//!
//! This is fair for reads and changes. Take a linearization of the whole and leave out the same operations. A
//! kept read of v stands, in the whole, after a change to v with no change between. That change is kept, so
//! it is still the last one before the read. The same goes for a compare-and-set from a kept value.
//!
//! A refusal from s needs more, because the change that justified it may be left out and uncover s. It is
//! kept only (a) when no change is left out; or (b) when s has a single source and a kept operation that was
//! called after the refusal had returned needs s (reads it, takes it): then the refusal stands before s was
//! written, in the whole and in the part; or (c) when no left-out change can be the last one before the
//! refusal: each was called after the refusal returned, or had returned before the call of a kept change that
//! itself returned before the refusal was called. In a part of a part, the changes that were left out before
//! count as well.
//!
//! **By time** ([`stretch`]). Take a linearization of the whole. *Its beginning*, up to the last operation
//! that had returned before some moment, holds only operations called before that moment; so those are a
//! part, in which a change that returned later may be absent and anything else that returned later is left
//! out. *Its end*, from an operation K on that shows the register to hold v, holds everything called after K
//! returned and nothing that returned before K was called; so K as a write of v, and what was not over when K
//! was called, are a part, in which a change that overlaps K may be absent and anything else that overlaps K
//! is left out.

use std::collections::BTreeMap;

use super::mutant::{self, Mutant};
use super::problem::{Action, Entry, NIL, Problem, Val, index};
use crate::history::{NEVER, Rank};

/// A part of a problem, or of a part.
pub(super) struct Part {
    /// With values numbered anew.
    pub(super) problem: Problem,
    /// For each of its entries that of the problem it was made from.
    pub(super) from: Vec<usize>,
    /// For each refusal the latest return of a change that was called before the refusal returned and is left
    /// out by value, now or in an earlier step; 0 for none. A part of a part has to answer for all of them:
    /// what made the refusal fair may be left out only later.
    pub(super) left_out: Vec<Rank>,
}

/// Which part is kept, by value.
#[derive(Clone)]
pub(super) struct Selection {
    pub(super) keeps: Vec<bool>,
    /// Reads and refusals that are left out although their values are kept.
    pub(super) dropped: Vec<bool>,
}

impl Selection {
    pub(super) fn all(problem: &Problem) -> Self {
        Self { keeps: vec![true; problem.values()], dropped: vec![false; problem.entries.len()] }
    }

    pub(super) fn of(problem: &Problem, values: impl IntoIterator<Item = Val>) -> Self {
        let mut selection = Self { keeps: vec![false; problem.values()], ..Self::all(problem) };
        values.into_iter().for_each(|value| selection.keeps[index(value)] = true);
        selection
    }

    fn is_kept(&self, value: Val) -> bool {
        value == NIL || self.keeps[index(value)]
    }

    /// The part of a problem from which other changes were left out before: `before` is as
    /// [`Part::left_out`], empty for none at all.
    pub(super) fn part(&self, problem: &Problem, before: &[Rank]) -> Part {
        let fairness = Fairness::of(self, problem);
        let mut entries: Vec<(Entry, usize)> = Vec::new();
        let mut left_out = Vec::new();
        for (at, entry) in problem.entries.iter().enumerate() {
            let action = match entry.action {
                _ if self.dropped[at] => continue,
                Action::Read(value) | Action::Refused(value) if !self.is_kept(value) => continue,
                Action::Write(to) | Action::Cas { to, .. } if !self.is_kept(to) => continue,
                Action::Cas { from, to } if !self.is_kept(from) => Action::Write(to),
                action => action,
            };
            let mut latest = before.get(at).copied().unwrap_or(0);
            if let Action::Refused(from) = action {
                latest = latest.max(fairness.latest_left_out(entry));
                if !fairness.allows(entry, from, latest) {
                    continue;
                }
            }
            left_out.push(latest);
            entries.push((Entry { action, ..*entry }, at));
        }
        Part { left_out, ..renumbered(entries) }
    }
}

/// Decides on refusals, by the rules (a), (b) and (c).
struct Fairness<'a> {
    problem: &'a Problem,
    /// For each value the latest call of a kept operation that happened and needs it.
    needed: BTreeMap<Val, Rank>,
    /// Returns of kept changes that happened, and the latest call among those up to there.
    shields: Vec<(Rank, Rank)>,
    /// Calls of changes left out, and the latest return among those up to there.
    left_out: Vec<(Rank, Rank)>,
}

impl<'a> Fairness<'a> {
    fn of(selection: &Selection, problem: &'a Problem) -> Self {
        let mut fairness =
            Self { problem, needed: BTreeMap::new(), shields: Vec::new(), left_out: Vec::new() };
        if !problem.has_refused {
            return fairness;
        }
        for (at, entry) in problem.entries.iter().enumerate() {
            let is_there = match entry.action.written() {
                Some(to) => selection.is_kept(to),
                None => !selection.dropped[at],
            };
            match entry.action.written() {
                Some(_) if !is_there => fairness.left_out.push((entry.call, entry.ret)),
                Some(_) if !entry.is_open() => fairness.shields.push((entry.ret, entry.call)),
                _ => {}
            }
            if let Some(value) = entry.action.required()
                && is_there
                && !entry.is_open()
                && selection.is_kept(value)
            {
                let latest = fairness.needed.entry(value).or_insert(entry.call);
                *latest = entry.call.max(*latest);
            }
        }
        fairness.shields.sort_unstable();
        for list in [&mut fairness.shields, &mut fairness.left_out] {
            let mut highest = 0;
            for (_, value) in list.iter_mut() {
                highest = highest.max(*value);
                *value = highest;
            }
        }
        fairness
    }

    fn latest_left_out(&self, refused: &Entry) -> Rank {
        highest_up_to(&self.left_out, refused.ret).unwrap_or(0)
    }

    fn allows(&self, refused: &Entry, from: Val, latest_left_out: Rank) -> bool {
        if latest_left_out == 0 || mutant::is(Mutant::EveryRefusalIsFair) {
            return true;
        }
        let single = self.problem.is_single_source(from) || mutant::is(Mutant::FairWithSeveralSources);
        let is_later = |&call: &Rank| call > refused.ret || mutant::is(Mutant::FairIfNeededEver);
        if single && self.needed.get(&from).is_some_and(is_later) {
            return true;
        }
        highest_up_to(&self.shields, refused.call)
            .is_some_and(|shield| latest_left_out < shield || mutant::is(Mutant::AnyShieldIsFair))
    }
}

/// What stands beside the last rank below `limit`.
fn highest_up_to(list: &[(Rank, Rank)], limit: Rank) -> Option<Rank> {
    list.partition_point(|&(rank, _)| rank < limit).checked_sub(1).map(|at| list[at].1)
}

/// The part by time: what is called before `end`, from the entry `start` on (all of it, for none).
pub(super) fn stretch(problem: &Problem, before: &[Rank], start: Option<usize>, end: Rank) -> Part {
    let first = start.map(|at| (at, problem.entries[at]));
    let mut entries: Vec<(Entry, usize)> = Vec::new();
    for (at, entry) in problem.entries.iter().enumerate() {
        if entry.call >= end {
            break;
        }
        let mut part = *entry;
        let mut is_cut = !entry.is_open() && entry.ret > end;
        if let Some((start, first)) = first {
            if at == start {
                let shown = entry.action.written().or(entry.action.required());
                part.action = shown.map_or(entry.action, Action::Write);
                entries.push((part, at));
                continue;
            }
            if entry.ret < first.call {
                continue;
            }
            is_cut |= entry.call < first.ret;
        }
        if is_cut {
            if entry.action.changes_nothing() && !mutant::is(Mutant::CutKeepsQuiet) {
                continue;
            }
            if !mutant::is(Mutant::CutKeepsReturns) && !entry.action.changes_nothing() {
                part.ret = NEVER;
            }
        }
        entries.push((part, at));
    }
    let left_out = entries.iter().map(|&(_, at)| before.get(at).copied().unwrap_or(0)).collect();
    Part { left_out, ..renumbered(entries) }
}

/// A problem of these entries, with values numbered from 0 again.
fn renumbered(entries: Vec<(Entry, usize)>) -> Part {
    let mut values: Vec<Val> = vec![NIL];
    for (entry, _) in &entries {
        values.extend(entry.action.written().into_iter().chain(entry.action.mentioned()));
    }
    values.sort_unstable();
    values.dedup();
    let number = |value: Val| Val::try_from(values.binary_search(&value).unwrap_or(0)).unwrap_or(NIL);
    let (entries, from): (Vec<Entry>, Vec<usize>) = entries
        .into_iter()
        .map(|(entry, at)| (Entry { action: entry.action.map_values(number), ..entry }, at))
        .unzip();
    Part { problem: Problem::new(entries), from, left_out: Vec::new() }
}
