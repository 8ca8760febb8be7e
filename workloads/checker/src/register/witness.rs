//! The order that the system claims: by version.
//!
//! Every change of a ZooKeeper node gives it the next version, and every reply shows one. If the system is
//! right, that is the order in which the changes took effect. If it lies, the order does not survive
//! [`super::order::verify`], and nothing is concluded from it.

use std::collections::BTreeMap;

use super::order::place_refused;
use super::problem::{Action, NIL, Problem, Val};
use super::spares::Spares;
use crate::history::{NEVER, Rank};

/// The order by version, with refused compare-and-sets placed where they fit; none when versions are missing
/// or contradict each other, or when they do not fit.
#[must_use]
pub fn by_version(problem: &Problem) -> Option<Vec<usize>> {
    let mut version_of: BTreeMap<Val, i64> = BTreeMap::new();
    let mut changes: BTreeMap<i64, usize> = BTreeMap::new();
    let mut reads: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (at, entry) in problem.entries.iter().enumerate() {
        let shown = match entry.action {
            Action::Read(value) | Action::Write(value) | Action::Cas { to: value, .. } => value,
            Action::Refused(_) => continue,
        };
        if entry.is_open() {
            continue;
        }
        let version = entry.version?;
        if *version_of.entry(shown).or_insert(version) != version {
            return None;
        }
        // What a compare-and-set replaced was the version before its own, whoever wrote that.
        if let Action::Cas { from, .. } = entry.action
            && *version_of.entry(from).or_insert(version - 1) != version - 1
        {
            return None;
        }
        if entry.action.written().is_some() {
            if changes.insert(version, at).is_some() {
                return None;
            }
        } else {
            reads.entry(version).or_default().push(at);
        }
    }
    place_open(problem, &mut version_of, &mut changes)?;
    let order = fill_gaps(problem, &changes, &reads);
    if problem.has_refused { place_refused(problem, &order) } else { Some(order) }
}

/// Gives every open change its version whose value was shown with one; and if it is a compare-and-set, the
/// value that it replaced had the version before, and so on. None when two changes claim one version.
fn place_open(
    problem: &Problem,
    version_of: &mut BTreeMap<Val, i64>,
    changes: &mut BTreeMap<i64, usize>,
) -> Option<()> {
    let mut open: BTreeMap<Val, usize> = BTreeMap::new();
    for (at, entry) in problem.entries.iter().enumerate().filter(|(_, entry)| entry.is_open()) {
        let ambiguous = entry.action.written().is_some_and(|value| open.insert(value, at).is_some());
        if ambiguous {
            return None;
        }
    }
    let mut known: Vec<(Val, i64)> = version_of.iter().map(|(&value, &version)| (value, version)).collect();
    while let Some((value, version)) = known.pop() {
        let Some(at) = open.remove(&value) else { continue };
        if changes.insert(version, at).is_some() {
            return None;
        }
        if let Action::Cas { from, .. } = problem.entries[at].action {
            if *version_of.entry(from).or_insert(version - 1) != version - 1 {
                return None;
            }
            known.push((from, version - 1));
        }
    }
    Some(())
}

/// Puts changes and reads in the order of their versions. Where a version is missing, somebody whose fate is
/// unknown must have written it: the earliest unobserved open write takes the place, if it had been called.
/// The values do not need it there, but a refusal may have no other reason.
fn fill_gaps(
    problem: &Problem,
    changes: &BTreeMap<i64, usize>,
    reads: &BTreeMap<i64, Vec<usize>>,
) -> Vec<usize> {
    let mut versions: Vec<i64> = changes.keys().chain(reads.keys()).copied().collect();
    versions.sort_unstable();
    versions.dedup();
    // For each version the earliest return from there on: what is put before it must have been called by
    // then.
    let mut earliest: Vec<Rank> = vec![NEVER; versions.len() + 1];
    for (at, version) in versions.iter().enumerate().rev() {
        let members = changes.get(version).into_iter().chain(reads.get(version).into_iter().flatten());
        let first = members.map(|&member| problem.entries[member].ret).min().unwrap_or(NEVER);
        earliest[at] = first.min(earliest[at + 1]);
    }
    let mut spares = Spares::outside(problem, &[]);
    let mut state = NIL;
    let mut order = Vec::with_capacity(problem.entries.len());
    let mut expected = versions.first().copied().unwrap_or(0);
    for (at, &version) in versions.iter().enumerate() {
        let follows_cas =
            changes.get(&version).is_some_and(|&c| matches!(problem.entries[c].action, Action::Cas { .. }));
        while expected < version && !follows_cas {
            let Some(spare) = spares.take(state, earliest[at]) else { break };
            order.push(spare);
            state = problem.entries[spare].action.written().unwrap_or(state);
            expected += 1;
        }
        if let Some(&change) = changes.get(&version) {
            order.push(change);
            state = problem.entries[change].action.written().unwrap_or(state);
        }
        order.extend(reads.get(&version).into_iter().flatten());
        expected = version + 1;
    }
    order
}
