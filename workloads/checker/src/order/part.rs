//! Parts of a set of operations: those of keys that nothing connects, and those that a counterexample keeps.
//!
//! **Keys by themselves.** Neither condition is local, because a group's order runs through all keys that it
//! touches. But when no group touches both of two sets of keys, each set can be judged by itself. Without
//! real time nothing relates them. With real time among updates, take an order of each set and suppose that
//! they do not fit together: then there is a cycle of orders within a set and of real time between sets. Take
//! the shortest. Within a set an order is total, so each stretch of it is one step u1 < u2 between two
//! updates (real time binds nothing else), and u1 was called before u2 returned, as the order keeps real
//! time. A step of real time u2 → v1 says that u2 returned before v1 was called. So calls grow around the
//! cycle: call(u1) < ret(u2) < call(v1) < ... < call(u1), which can't be. (This is the proof that
//! linearizability is local, read for updates alone.)
//!
//! **What a counterexample may leave out.** A part is a fair counterexample only if an order of the whole
//! would leave an order of the part. Any read may go. A write may go when no kept operation needs its value:
//! between a write and a kept reader of it there is no other write, with or without it. A compare-and-set
//! whose own write is kept, but not every source of what it replaced, counts as a write: less is asked of it.
//! One that was refused is kept only with all writes of its key, for one that is left out may be the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, Node, Why, at, number};
use super::mutate::{Mutation, broken};
use super::registers::{Entry, Registers};
use super::{RealTime, graph};
use crate::register::problem::Action;

/// Sets of positions, such that no group and no key occurs in two of them.
pub(super) fn apart(of: impl Iterator<Item = (u64, u64)>) -> Vec<Vec<usize>> {
    let pairs: Vec<(u64, u64)> = of.collect();
    let mut names: BTreeMap<u64, usize> = BTreeMap::new();
    let mut root: Vec<usize> = Vec::new();
    let mut key_of_group: BTreeMap<u64, usize> = BTreeMap::new();
    for &(group, key) in &pairs {
        let key = *names.entry(key).or_insert_with(|| {
            root.push(root.len());
            root.len() - 1
        });
        let other = *key_of_group.entry(group).or_insert(key);
        if !broken(Mutation::AlwaysLocal) {
            let (a, b) = (find(&mut root, key), find(&mut root, other));
            root[a] = b;
        }
    }
    let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (position, (_, key)) in pairs.iter().enumerate() {
        sets.entry(find(&mut root, names[key])).or_default().push(position);
    }
    sets.into_values().collect()
}

fn find(root: &mut [usize], mut of: usize) -> usize {
    while root[of] != of {
        root[of] = root[root[of]];
        of = root[of];
    }
    of
}

/// One order from those of sets that are apart: positions of the whole.
pub(super) fn together(spans: &[graph::Span], real_time: RealTime, orders: &[Vec<Node>]) -> Vec<Node> {
    if let [order] = orders {
        return order.clone();
    }
    let mut graph = Graph::of(spans, real_time);
    let mut placed = vec![false; spans.len()];
    for order in orders {
        order.iter().for_each(|&op| placed[at(op)] = true);
        for pair in order.windows(2) {
            graph.add(pair[0], pair[1], Why::Claim);
        }
    }
    graph.sorted().into_iter().filter(|&node| placed.get(at(node)) == Some(&true)).collect()
}

/// The entries of a part with numbers of its own; those that a part can't fairly keep are gone.
pub(super) fn registers_of(whole: &Registers, kept: &BTreeSet<usize>) -> Registers {
    let has_sources = |value: u32| whole.sources[at(value)].iter().all(|&source| kept.contains(&at(source)));
    let mut writes_of = vec![(0_usize, 0_usize); whole.keys];
    for (at_entry, entry) in whole.entries.iter().enumerate() {
        if entry.action.written().is_some() {
            writes_of[at(entry.key)].0 += 1;
            writes_of[at(entry.key)].1 += usize::from(kept.contains(&at_entry));
        }
    }
    let has_writes = |key: u32| writes_of[at(key)].0 == writes_of[at(key)].1;
    let mut part: Vec<Entry> = Vec::new();
    for &entry in kept {
        let of = whole.entries[entry];
        let action = match of.action {
            Action::Read(value) if !has_sources(value) && !broken(Mutation::LoneReaders) => continue,
            Action::Cas { from, to } if !has_sources(from) && !broken(Mutation::LoneCas) => Action::Write(to),
            Action::Refused(_) if !has_writes(of.key) && !broken(Mutation::LoneRefusals) => continue,
            action => action,
        };
        part.push(Entry { action, ..of });
    }
    renumbered(part)
}

/// With every source of what these observe.
pub(super) fn with_sources(whole: &Registers, kept: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut all = kept.clone();
    for &entry in kept {
        if let Some(needed) = whole.entries[entry].action.required() {
            all.extend(whole.sources[at(needed)].iter().map(|&source| at(source)));
        }
    }
    all
}

fn renumbered(mut entries: Vec<Entry>) -> Registers {
    let mut keys: BTreeMap<u32, u32> = BTreeMap::new();
    for entry in &entries {
        let next = number(keys.len());
        keys.entry(entry.key).or_insert(next);
    }
    let nils = keys.len();
    let mut values: BTreeMap<u32, u32> = keys.clone();
    let mut renumber = |value: u32| {
        let next = number(values.len());
        *values.entry(value).or_insert(next)
    };
    for entry in &mut entries {
        entry.key = keys[&entry.key];
        entry.action = match entry.action {
            Action::Read(value) => Action::Read(renumber(value)),
            Action::Write(value) => Action::Write(renumber(value)),
            Action::Refused(value) => Action::Refused(renumber(value)),
            Action::Cas { from, to } => Action::Cas { from: renumber(from), to: renumber(to) },
        };
    }
    Registers::new(nils, entries)
}
