//! Whether one order of all changes explains what watchers were told.
//!
//! Changes that were told next to each other are next to each other in any order: they form a *block*. One
//! block comes before another where one of its changes comes before one of the other's: by version, as a
//! watcher was told, or in real time. Blocks in themselves must contradict none of these. Then there is an
//! order of all of them exactly if no block comes before itself by way of others.
//!
//! Real time relates nearly every pair, so it is no list of edges. Of a block two moments count: when the
//! first of its changes is known to be *over*, and when the last of its writes was *invoked*. `A` comes
//! before `B` in real time exactly if `A` was over before `B` was invoked. Versions and what was told are
//! edges. If they have no cycle, each block takes over the earliest moment of those that come behind it, and
//! the latest one of those before it. From then on a comparison of moments knows the edges, too; and a
//! relation that compares one moment of each has a cycle only if two blocks come before each other: of a
//! cycle's blocks, the one that is over first comes before the one that comes before it. (Gibbons and Korach,
//! SIAM Journal on Computing 1997, judge registers by such zones.) Two such blocks are found by sorting.

use std::collections::{BTreeMap, VecDeque};

use super::told::{Change, Told};
use super::{Broken, Promised};
use crate::history::{NEVER, Op, Rank, describe};

/// Values that a sentence names at most.
const MOST_NAMED: usize = 12;
/// From how many blocks a short cycle is looked for.
const MOST_STARTS: usize = 32;

/// Changes that are next to each other.
struct Block<'a> {
    changes: Vec<usize>,
    /// The earliest moment at which one of them, or the beginning of a watcher before one of them, was over.
    over: (Rank, usize, &'a Op),
    /// The latest moment at which one of them was invoked.
    invoked: (Rank, usize),
}

/// Why one block is before another.
#[derive(Clone, Copy)]
enum Why<'a> {
    /// By the moments of the two.
    RealTime,
    /// By the versions of two changes.
    Versions(usize, usize),
    /// A watcher was told one and later the other.
    Told(usize, usize, &'a Op),
}

/// Finds an order, or says why there is none.
pub(super) fn explain<'a>(told: &Told<'a>, promised: Promised) -> Result<(), Broken<'a>> {
    let mut block_of = vec![usize::MAX; told.changes.len()];
    let mut blocks = Vec::new();
    let heads = (0..told.changes.len()).filter(|&at| told.changes[at].before.is_none());
    for head in heads.filter(|&at| told.changes[at].known != NEVER) {
        let block = Block::from(told, head)?;
        block.changes.iter().for_each(|&at| block_of[at] = blocks.len());
        blocks.push(block);
    }
    let ring = |at: &usize| told.changes[*at].known != NEVER && block_of[*at] == usize::MAX;
    if let Some(at) = (0..told.changes.len()).find(ring) {
        return Err(round(told, at));
    }
    let mut edges = Edges { to: vec![Vec::new(); blocks.len()] };
    let versions: Vec<usize> =
        told.versions.values().copied().filter(|at| block_of[*at] != usize::MAX).collect();
    for pair in versions.windows(2).filter(|pair| block_of[pair[0]] != block_of[pair[1]]) {
        edges.to[block_of[pair[0]]].push((block_of[pair[1]], Why::Versions(pair[0], pair[1])));
    }
    for &(one, other, by) in &told.later {
        edges.to[block_of[one]].push((block_of[other], Why::Told(one, other, by)));
    }
    let cycle = match edges.sorted() {
        Ok(sorted) => twice_before(&zones(&blocks, &edges, &sorted)),
        Err(left) => edges.cycle(&left),
    };
    if cycle.is_empty() { Ok(()) } else { Err(contradiction(told, &blocks, &cycle, promised)) }
}

/// The moments of a block and of those that it is before and behind: each with the block whose own it is.
#[derive(Clone, Copy)]
struct Zone {
    over: (Rank, usize),
    invoked: (Rank, usize),
}

fn zones(blocks: &[Block<'_>], edges: &Edges<'_>, sorted: &[usize]) -> Vec<Zone> {
    let own =
        |(block, of): (usize, &Block<'_>)| Zone { over: (of.over.0, block), invoked: (of.invoked.0, block) };
    let mut zones: Vec<Zone> = blocks.iter().enumerate().map(own).collect();
    for &from in sorted {
        for (to, _) in &edges.to[from] {
            zones[*to].invoked = zones[*to].invoked.max(zones[from].invoked);
        }
    }
    for &from in sorted.iter().rev() {
        for (to, _) in &edges.to[from] {
            zones[from].over = zones[from].over.min(zones[*to].over);
        }
    }
    zones
}

/// Two blocks that come before each other; nothing where there are none.
fn twice_before<'a>(zones: &[Zone]) -> Vec<(usize, usize, Why<'a>)> {
    let is_wide = |zone: &&Zone| zone.over.0 < zone.invoked.0;
    let mut wide: Vec<Zone> = zones.iter().filter(is_wide).copied().collect();
    wide.sort_unstable_by_key(|zone| zone.over);
    let both = |one: &Zone, other: &Zone| {
        vec![(one.over.1, other.invoked.1, Why::RealTime), (other.over.1, one.invoked.1, Why::RealTime)]
    };
    let mut widest: Option<Zone> = None;
    for zone in &wide {
        if let Some(before) = widest.filter(|before| zone.over.0 < before.invoked.0) {
            return both(&before, zone);
        }
        widest = Some(*zone);
    }
    // Wide ones are apart, so that for each of the others the last one before it is the only candidate.
    for zone in zones.iter().filter(|zone| !is_wide(zone)) {
        let place = wide.partition_point(|wide| wide.over.0 < zone.invoked.0);
        let around = place.checked_sub(1).map(|place| wide[place]);
        if let Some(around) = around.filter(|around| zone.over.0 < around.invoked.0) {
            return both(&around, zone);
        }
    }
    Vec::new()
}

impl<'a> Block<'a> {
    /// The block that begins with a change: in itself it must keep real time and versions.
    fn from(told: &Told<'a>, head: usize) -> Result<Self, Broken<'a>> {
        let first = &told.changes[head];
        let mut block = Self { changes: Vec::new(), over: (NEVER, head, first.witness), invoked: (0, head) };
        let mut newest: Option<usize> = None;
        let mut next = Some(head);
        while let Some(at) = next {
            let change = &told.changes[at];
            let is_later = !block.changes.is_empty();
            for begin in &change.begins {
                if is_later && block.invoked.0 > begin.ret {
                    return Err(missed_at_the_beginning(told, block.invoked.1, at, begin));
                }
                block.over = block.over.min_by_rank((begin.ret, at, begin));
            }
            if is_later && block.invoked.0 > change.known {
                return Err(turned(told, block.invoked.1, at));
            }
            if let (Some(newest), Some(version)) = (newest, change.version)
                && told.changes[newest].version > Some(version)
            {
                return Err(turned_by_version(told, newest, at));
            }
            newest = change.version.map_or(newest, |_| Some(at));
            block.over = block.over.min_by_rank((change.known, at, change.witness));
            block.invoked = block.invoked.max((change.write.call, at));
            block.changes.push(at);
            next = change.after.map(|(after, _)| after);
        }
        Ok(block)
    }
}

/// The earlier of two, where operations can't be compared.
trait MinByRank {
    fn min_by_rank(self, other: Self) -> Self;
}

impl MinByRank for (Rank, usize, &Op) {
    fn min_by_rank(self, other: Self) -> Self {
        if other.0 < self.0 { other } else { self }
    }
}

/// That a change is known to be done.
fn known(change: &Change<'_>) -> String {
    if change.witness.index == change.write.index {
        describe(change.write)
    } else {
        format!("{} ({})", describe(change.write), describe(change.witness))
    }
}

fn turned<'a>(told: &Told<'a>, before: usize, at: usize) -> Broken<'a> {
    let (earlier, later) = (&told.changes[at], &told.changes[before]);
    let why =
        format!("{} was over when {} began, and was told behind it", known(earlier), describe(later.write));
    Broken { kind: "changes were told out of order", why, ops: involved(told, &[at, before]) }
}

fn turned_by_version<'a>(told: &Told<'a>, before: usize, at: usize) -> Broken<'a> {
    let version = |at: usize| told.changes[at].version.unwrap_or_default();
    let why = format!(
        "{} has version {}, and was told behind version {}: {}",
        describe(told.changes[at].write),
        version(at),
        version(before),
        describe(told.changes[before].write)
    );
    Broken { kind: "changes were told out of order", why, ops: involved(told, &[before, at]) }
}

/// A change that was invoked when a watcher had begun is before the first one that it was told.
fn missed_at_the_beginning<'a>(told: &Told<'a>, missed: usize, at: usize, begin: &'a Op) -> Broken<'a> {
    let why = format!(
        "{}; then {} began, which others were told before {}; this watcher was told {} first",
        describe(begin),
        describe(told.changes[missed].write),
        told.changes[at].value,
        told.changes[at].value
    );
    let mut ops = vec![begin];
    ops.extend(involved(told, &[missed, at]));
    Broken { kind: "a change was lost", why, ops }
}

/// Changes that were told in a ring.
fn round<'a>(told: &Told<'a>, at: usize) -> Broken<'a> {
    let mut ring = vec![at];
    while let Some((after, _)) = ring.last().and_then(|last| told.changes[*last].after)
        && after != at
        && ring.len() < told.changes.len()
    {
        ring.push(after);
    }
    ring.truncate(6);
    let why = format!(
        "some were told {} before {}, and others behind it",
        told.changes[at].value,
        ring.get(1).map_or(0, |next| told.changes[*next].value)
    );
    Broken { kind: "changes were told out of order", why, ops: involved(told, &ring) }
}

/// The writes of some changes in the order of their calls, and the answers by which each of them is known and
/// is next to another.
fn involved<'a>(told: &Told<'a>, changes: &[usize]) -> Vec<&'a Op> {
    let mut ops: Vec<&Op> = Vec::new();
    for change in changes.iter().map(|at| &told.changes[*at]) {
        ops.extend([change.write, change.witness]);
        ops.extend(change.before.or(change.after).map(|(_, by)| by));
    }
    ops.sort_unstable_by_key(|op| op.call);
    ops.dedup_by_key(|op| op.index);
    ops
}

/// A block that must be between two changes of another one: the two that are nearest to it.
fn left_out<'a>(told: &Told<'a>, around: &Block<'a>, within: &Block<'a>) -> Option<Broken<'a>> {
    let change = |at: &usize| &told.changes[*at];
    let is_behind = |at: &usize| change(at).write.call > within.over.0;
    let last = around.changes.iter().position(is_behind)?;
    let is_before = |at: &usize| change(at).known < within.invoked.0;
    let first = around.changes[..last].iter().rposition(is_before)?;
    let (before, behind) = (change(&around.changes[first]), change(&around.changes[last]));
    let missing = &told.changes[within.invoked.1];
    let values: Vec<String> =
        around.changes[first..=last].iter().map(|at| change(at).value.to_string()).take(MOST_NAMED).collect();
    let why = format!(
        "{} was over when {} began, and that was over when {} began; but watchers were told [{}], without {}",
        known(before),
        describe(missing.write),
        describe(behind.write),
        values.join(" "),
        missing.value
    );
    let mut ops = vec![before.write, before.witness, missing.write, within.over.2, behind.write];
    ops.sort_unstable_by_key(|op| op.call);
    // The answer that told what came behind it stands last: that is what can't be.
    ops.extend(behind.before.map(|(_, by)| by));
    ops.dedup_by_key(|op| op.index);
    Some(Broken { kind: "a change was lost", why, ops })
}

/// Why blocks have no order: each of these is before the next one.
fn contradiction<'a>(
    told: &Told<'a>,
    blocks: &[Block<'a>],
    cycle: &[(usize, usize, Why<'a>)],
    promised: Promised,
) -> Broken<'a> {
    if let [(one, other, Why::RealTime), (from, to, Why::RealTime)] = *cycle
        && (from, to) == (other, one)
        && let Some(broken) = [(one, other), (other, one)]
            .into_iter()
            .find_map(|(around, within)| left_out(told, &blocks[around], &blocks[within]))
    {
        return broken;
    }
    let value = |at: usize| told.changes[at].value;
    let (mut parts, mut changes, mut more) = (Vec::new(), Vec::new(), Vec::new());
    for &(block, next, why) in cycle {
        let (one, other, words) = match why {
            Why::RealTime => {
                let ((_, one, by), (_, other)) = (blocks[block].over, blocks[next].invoked);
                more.push(by);
                let is_write = by.index == told.changes[one].write.index;
                let what =
                    if is_write { String::new() } else { format!("; {} is not before that", value(one)) };
                let began = describe(told.changes[other].write);
                (one, other, format!("{} was over when {began} began{what}", describe(by)))
            }
            Why::Versions(one, other) => {
                let version = |at: usize| told.changes[at].version.unwrap_or_default();
                let words = [(one, version(one)), (other, version(other))]
                    .map(|(at, version)| format!("{} has version {version}", value(at)));
                (one, other, words.join(" and "))
            }
            Why::Told(one, other, by) => {
                more.push(by);
                (one, other, format!("{} was told behind {}", value(other), value(one)))
            }
        };
        parts.push(words);
        changes.extend([one, other]);
    }
    let mut joined: Vec<usize> = cycle.iter().flat_map(|(block, next, _)| [*block, *next]).collect();
    joined.sort_unstable();
    joined.dedup();
    joined.retain(|block| blocks[*block].changes.len() > 1);
    for block in &joined {
        let is_in = |at: &&usize| blocks[*block].changes.contains(at);
        let mut ends: Vec<usize> = changes.iter().filter(is_in).copied().collect();
        ends.sort_unstable_by_key(|at| blocks[*block].changes.iter().position(|other| other == at));
        ends.dedup();
        if let [first, .., last] = ends.as_slice() {
            parts.push(format!("from {} to {} nothing else was told", value(*first), value(*last)));
        }
    }
    let begins = |(block, _, _): &(usize, usize, Why<'_>)| {
        blocks[*block].changes.iter().any(|at| !told.changes[*at].begins.is_empty())
    };
    let is_lost = promised == Promised::EveryChange && (!joined.is_empty() || cycle.iter().any(begins));
    let mut ops = involved(told, &changes);
    ops.extend(more);
    ops.sort_unstable_by_key(|op| op.call);
    ops.dedup_by_key(|op| op.index);
    let kind = if is_lost { "a change was lost" } else { "changes were told out of order" };
    Broken { kind, why: parts.join("; "), ops }
}

/// What versions and watchers say of the order of blocks.
struct Edges<'a> {
    to: Vec<Vec<(usize, Why<'a>)>>,
}

impl<'a> Edges<'a> {
    /// The blocks in an order that keeps all edges; else those that are left in cycles or behind them.
    fn sorted(&self) -> Result<Vec<usize>, Vec<bool>> {
        let mut comes_in = vec![0_usize; self.to.len()];
        self.to.iter().flatten().for_each(|(to, _)| comes_in[*to] += 1);
        let mut sorted: Vec<usize> = (0..self.to.len()).filter(|node| comes_in[*node] == 0).collect();
        let mut done = 0;
        while let Some(&node) = sorted.get(done) {
            done += 1;
            for (to, _) in &self.to[node] {
                comes_in[*to] -= 1;
                if comes_in[*to] == 0 {
                    sorted.push(*to);
                }
            }
        }
        if done == self.to.len() {
            return Ok(sorted);
        }
        Err(comes_in.iter().map(|number| *number > 0).collect())
    }

    /// A short cycle among those that are left.
    fn cycle(&self, left: &[bool]) -> Vec<(usize, usize, Why<'a>)> {
        let all = || (0..self.to.len()).filter(|block| left[*block]);
        let cycles = all().take(MOST_STARTS).filter_map(|start| self.back_to(start, left));
        let short = cycles.min_by_key(Vec::len);
        short.or_else(|| all().find_map(|start| self.back_to(start, left))).unwrap_or_default()
    }

    /// The shortest way from a block back to it.
    fn back_to(&self, start: usize, left: &[bool]) -> Option<Vec<(usize, usize, Why<'a>)>> {
        let mut came: BTreeMap<usize, (usize, Why<'a>)> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &(to, why) in self.to[node].iter().filter(|(to, _)| left[*to]) {
                if came.contains_key(&to) {
                    continue;
                }
                came.insert(to, (node, why));
                if to == start {
                    return Some(Self::way(start, &came));
                }
                queue.push_back(to);
            }
        }
        None
    }

    fn way(start: usize, came: &BTreeMap<usize, (usize, Why<'a>)>) -> Vec<(usize, usize, Why<'a>)> {
        let mut way = Vec::new();
        let mut node = start;
        while let Some((from, why)) = came.get(&node) {
            way.push((*from, node, *why));
            node = *from;
            if node == start {
                break;
            }
        }
        way.reverse();
        way
    }
}
