//! Leaves out of a search what can't matter: open changes whose value nobody observed.
//!
//! A run with faults leaves hundreds of operations whose fate is unknown. Each of them doubles what a search
//! has to look at, for ever, so those that can be set aside are.
//!
//! **Claim.** Let A be an open write of a value x, or an open compare-and-set from u to x, such that x is
//! required or asked for nowhere: no read returned it, no compare-and-set (done, open or refused) names it as
//! its `from`. If a linearization exists, one exists in which A is either absent or stands immediately before
//! a refused compare-and-set whose `from` is the value s that the register held before A.
//!
//! **Proof.** Take a linearization with A in it. From A up to the next change, the register holds x. What
//! stands there can't be a read or a compare-and-set that needs x, so it is refused compare-and-sets only.
//! Take A out: they now see s, and each is still right unless its `from` is s. If none has that `from`, A may
//! be absent (an open operation may; the next change is a write, or a compare-and-set, which would have to
//! need x and so is not there). Otherwise move A to the right, to just before the first of those whose `from`
//! is s: the ones it passes see s, which is not their `from`, and moving an open operation later never breaks
//! real time, because it has no return. ∎
//!
//! So a search may drop A and instead allow, for a refused compare-and-set from s while the register holds s,
//! one combined step "some such A that has been called, then the refusal", after which the register holds a
//! value that nobody will ever ask for. Writes are interchangeable here: none has a return and all are
//! allowed once called, so it is enough to count them. A compare-and-set from u serves only while the
//! register holds u; if u can be held in one stretch only, it can serve only once at all, so it is taken
//! before a write and not counted. When u has several sources it stays an ordinary entry.
//!
//! It is not enough to drop A altogether: that would wrongly accuse a history in which only A explains a
//! refusal. The fuzzing tests have that case.

use std::collections::{HashMap, VecDeque};

use super::mutant::{self, Mutant};
use super::problem::{Action, Problem, Val, index};
use crate::history::Rank;

/// A problem without its unobserved open changes.
#[derive(Debug)]
pub struct Reduced<'a> {
    /// The problem it came from.
    pub problem: &'a Problem,
    /// The entries that remain, by their index in the problem, sorted by call.
    pub kept: Vec<usize>,
    /// The set-aside writes, by call: the call and the index in the problem.
    spare_writes: Vec<(Rank, usize)>,
    /// For each value that has one, the earliest call of a set-aside compare-and-set from it.
    spare_cas: HashMap<Val, (Rank, usize)>,
}

/// Which values somebody read or asked for.
pub(super) fn observed(problem: &Problem) -> Vec<bool> {
    let mut observed = vec![false; problem.values()];
    for entry in &problem.entries {
        match entry.action {
            Action::Read(value) | Action::Refused(value) => observed[index(value)] = true,
            Action::Cas { from, .. } => observed[index(from)] = true,
            Action::Write(_) => {}
        }
    }
    observed
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
        let observed = observed(problem);
        let mut spares = Self { writes: VecDeque::new(), cas: HashMap::new() };
        for (at, entry) in problem.entries.iter().enumerate().filter(|(_, entry)| entry.is_open()) {
            match entry.action {
                _ if used[at] || entry.action.written().is_none_or(|to| observed[index(to)]) => {}
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

impl<'a> Reduced<'a> {
    /// Everything stays: for the plain search.
    #[must_use]
    pub fn nothing(problem: &'a Problem) -> Self {
        Self {
            problem,
            kept: (0..problem.entries.len()).collect(),
            spare_writes: Vec::new(),
            spare_cas: HashMap::new(),
        }
    }

    /// Sets aside what the claim above allows.
    #[must_use]
    pub fn of(problem: &'a Problem) -> Self {
        let observed = observed(problem);
        let mut reduced =
            Self { problem, kept: Vec::new(), spare_writes: Vec::new(), spare_cas: HashMap::new() };
        for (at, entry) in problem.entries.iter().enumerate() {
            match entry.action {
                Action::Write(to) if entry.is_open() && !observed[index(to)] => {
                    reduced.spare_writes.push((entry.call, at));
                }
                Action::Cas { from, to }
                    if entry.is_open()
                        && !observed[index(to)]
                        && (problem.is_single_source(from)
                            || mutant::is(Mutant::SpareWithSeveralSources)) =>
                {
                    // Entries come by call, so the first one is the earliest.
                    reduced.spare_cas.entry(from).or_insert((entry.call, at));
                }
                _ => reduced.kept.push(at),
            }
        }
        reduced
    }

    /// The value that stands for "something that nobody will ever ask for".
    #[must_use]
    pub fn other(&self) -> Val {
        Val::try_from(self.problem.values()).unwrap_or(Val::MAX)
    }

    /// What `action` makes of `(state, spent)`, where `spent` counts set-aside writes used up, given that
    /// every operation called before `limit` has been called.
    #[must_use]
    pub fn apply(&self, action: Action, state: Val, spent: u32, limit: Rank) -> Option<(Val, u32)> {
        if let Some(next) = action.apply(state) {
            return Some((next, spent));
        }
        let Action::Refused(from) = action else { return None };
        if mutant::is(Mutant::SpareNeverUsed) {
            return None;
        }
        if self.spare_cas.get(&from).is_some_and(|&(call, _)| call < limit) {
            return Some((self.other(), spent));
        }
        let available = self.spare_writes.partition_point(|&(call, _)| call < limit);
        (index(spent) < available).then(|| (self.other(), spent + 1))
    }

    /// The set-aside change that [`Self::apply`] took before a refusal from `state`, given what was spent
    /// before and after.
    #[must_use]
    pub(super) fn excuse(&self, state: Val, spent: u32, spent_after: u32) -> Option<usize> {
        if spent_after > spent {
            return self.spare_writes.get(index(spent)).map(|&(_, at)| at);
        }
        self.spare_cas.get(&state).map(|&(_, at)| at)
    }
}
