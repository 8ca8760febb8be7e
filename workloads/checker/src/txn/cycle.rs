//! Small cycles, and what they are called.
//!
//! Each component is narrowed to the kinds of edges that a shape allows; in what is left, the shortest way
//! back from the end of an edge to its beginning closes a cycle. Of a large component only a sample of edges
//! is tried: that there is a cycle is certain by then, and only its size is at stake.

use std::collections::VecDeque;

use super::condition::{Anomaly, Condition, Order, Shape};
use super::graph::{ALL, COMMITS, Graph, Kind, View, WRITES};
use super::hop::{Hop, Reason};
use super::intern::{NONE, to_u32};
use super::local::Findings;
use crate::budget::{Exhausted, Meter};
use crate::scc::components;

/// Components that are looked into, at each level.
const MAX_COMPONENTS: usize = 64;
/// Edges of a component from which a way back is looked for.
const MAX_STARTS: usize = 48;
/// In a component of more transactions the first small cycle is enough, whatever its shape.
const LARGE: u32 = 10_000;

/// The view in which a cycle breaks a condition.
pub(super) fn level(graph: &Graph, condition: Condition) -> View<'_> {
    let order = condition.order();
    let (kinds, split) = match condition {
        Condition::ReadUncommitted => (WRITES, false),
        Condition::ReadCommitted => (COMMITS, false),
        Condition::SnapshotIsolation => (ALL, true),
        _ => (ALL, false),
    };
    View { graph, kinds, order, split }
}

/// The nodes of the components of a view that have a cycle, the smallest component first, without the chain
/// of time.
pub(super) fn cyclic(view: View<'_>, meter: &mut Meter) -> Result<Vec<Vec<u32>>, Exhausted> {
    Ok(parts_of(view, components(&view, meter)?.cyclic))
}

/// The nodes of components of points.
pub(super) fn parts_of(view: View<'_>, cyclic: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let mut parts: Vec<Vec<u32>> = cyclic
        .into_iter()
        .map(|points| {
            let mut nodes: Vec<u32> =
                points.into_iter().filter_map(|point| view.node(point).map(|(node, _)| node)).collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        })
        .collect();
    parts.sort_by_key(Vec::len);
    parts
}

/// A part of the graph, and what its nodes are called outside.
struct Part {
    graph: Graph,
    names: Vec<u32>,
}

impl Part {
    fn of(graph: &Graph, names: &[u32], members: &[u32]) -> Self {
        let names = members.iter().map(|&member| names[member as usize]).collect();
        Self { graph: graph.part(members), names }
    }
}

/// Finds what conditions are broken by cycles, and examples of each shape, in the cyclic components of the
/// whole graph.
///
/// # Errors
/// Why it gave up; what was found until then stands.
pub(super) fn find(
    graph: &Graph,
    parts: &[Vec<u32>],
    findings: &mut Findings,
    broken: &mut Vec<Condition>,
    meter: &mut Meter,
) -> Result<(), Exhausted> {
    if parts.is_empty() {
        return Ok(());
    }
    // Whether a condition is broken is decided by all components together, before any of them is looked into.
    let everything: Vec<u32> = (0..graph.nodes).collect();
    let mut members: Vec<u32> = parts.iter().flatten().copied().collect();
    members.sort_unstable();
    let whole = Part::of(graph, &everything, &members);
    broken.push(Condition::StrictSerializable);
    for condition in Condition::ALL.into_iter().rev().skip(1) {
        if components(&level(&whole.graph, condition), meter)?.cyclic.is_empty() {
            break;
        }
        broken.push(condition);
    }
    for order in [Order::Free, Order::Process, Order::Realtime] {
        let view = View { graph: &whole.graph, kinds: ALL, order, split: false };
        for members in cyclic(view, meter)?.iter().take(MAX_COMPONENTS) {
            look_into(&Part::of(&whole.graph, &whole.names, members), order, findings, meter)?;
        }
    }
    Ok(())
}

fn look_into(part: &Part, order: Order, findings: &mut Findings, meter: &mut Meter) -> Result<(), Exhausted> {
    for (shape, kinds, split) in [
        (Shape::G0, WRITES, false),
        (Shape::G1c, COMMITS, false),
        (Shape::GSingle, COMMITS, false),
        (Shape::GNonadjacent, ALL, true),
        (Shape::G2Item, ALL, false),
    ] {
        // A way back may use the start's own kind only where the view has it, so a part of one
        // anti-dependency is searched as it is.
        if shape == Shape::GSingle {
            close(part, View { graph: &part.graph, kinds, order, split }, shape, findings, meter)?;
            continue;
        }
        let view = View { graph: &part.graph, kinds, order, split };
        for members in cyclic(view, meter)?.iter().take(MAX_COMPONENTS) {
            let narrow = Part::of(&part.graph, &part.names, members);
            let view = View { graph: &narrow.graph, kinds, order, split };
            close(&narrow, view, shape, findings, meter)?;
        }
    }
    Ok(())
}

/// Closes cycles that begin with an edge of a kind, and notes each by what it turns out to be.
fn close(
    part: &Part,
    view: View<'_>,
    shape: Shape,
    findings: &mut Findings,
    meter: &mut Meter,
) -> Result<(), Exhausted> {
    let graph = &part.graph;
    let start = match shape {
        Shape::G0 => Kind::WriteWrite,
        Shape::G1c => Kind::WriteRead,
        _ => Kind::ReadWrite,
    };
    let starts = || {
        (0..graph.txns).flat_map(|from| {
            graph.edges(from).filter(move |&(_, kind)| kind == start).map(move |(to, _)| (from, to))
        })
    };
    let mut best = usize::MAX;
    let mut note = |hops: Vec<Hop>, findings: &mut Findings| {
        for cycle in simple(&without_tails(graph, hops)) {
            let cycle: Vec<Hop> = cycle.into_iter().map(|hop| strongest(graph, hop)).collect();
            let named = cycle.iter().map(|hop| Hop {
                from: part.names[hop.from as usize],
                to: part.names[hop.to as usize],
                ..*hop
            });
            let anomaly = classify(&cycle);
            findings.note_cycle(anomaly, named.collect());
            if graph.txns > LARGE || matches!(anomaly, Anomaly::Cycle(found, _) if found == shape) {
                best = best.min(cycle.len());
            }
        }
        best
    };
    let mut best = usize::MAX;
    let mut pairs = 0;
    // Pairs that contradict each other directly need no search, and most violations are such pairs.
    for (from, to) in starts() {
        if let Some(why) = straight_back(view, from, to) {
            let there = Hop { from, to, why: Reason::Data(start) };
            best = note(vec![there, Hop { from: to, to: from, why }], findings);
            pairs += 1;
            if pairs == MAX_STARTS {
                break;
            }
        }
    }
    let mut ways = Ways::new(graph);
    for (from, to) in starts().step_by(starts().count().div_ceil(MAX_STARTS).max(1)) {
        meter.step()?;
        if best <= 2 {
            break;
        }
        if let Some(way) = ways.shortest(view, start, from, to, best, meter)? {
            let mut hops = vec![Hop { from, to, why: Reason::Data(start) }];
            hops.extend(way);
            best = note(hops, findings);
        }
    }
    Ok(())
}

/// Why `to` has to come before `from`, if one step says so.
#[inline]
fn straight_back(view: View<'_>, from: u32, to: u32) -> Option<Reason> {
    let graph = view.graph;
    if to >= graph.txns {
        return None;
    }
    let allowed = if view.split { view.kinds & !Kind::ReadWrite.bit() } else { view.kinds };
    let mut back = graph.edges(to).filter(|&(back, kind)| back == from && allowed & kind.bit() != 0);
    let by_time = || view.order == Order::Realtime && graph.after[to as usize] <= from;
    let by_process = || view.order == Order::Process && graph.next[to as usize] == from;
    let data = back.next().map(|(_, kind)| Reason::Data(kind));
    data.or_else(|| by_process().then_some(Reason::Process)).or_else(|| by_time().then_some(Reason::Realtime))
}

/// Searches for the shortest way between two points, breadth first.
struct Ways {
    /// For each point, where it was reached from and why; valid where the mark is this search's.
    reached: Vec<(u32, Reason)>,
    mark: Vec<u32>,
    search: u32,
}

impl Ways {
    fn new(graph: &Graph) -> Self {
        let points = graph.nodes as usize * 2;
        Self { reached: vec![(NONE, Reason::Process); points], mark: vec![0; points], search: 0 }
    }

    /// A way from `to`, just reached by an edge of kind `start` from `from`, back to `from`, shorter than
    /// `limit`.
    fn shortest(
        &mut self,
        view: View<'_>,
        start: Kind,
        from: u32,
        to: u32,
        limit: usize,
        meter: &mut Meter,
    ) -> Result<Option<Vec<Hop>>, Exhausted> {
        let graph = view.graph;
        self.search += 1;
        let by_read_write = view.split && start == Kind::ReadWrite;
        let first = to * 2 + u32::from(by_read_write);
        let mut queue = VecDeque::from([(first, 1_usize)]);
        self.mark[first as usize] = self.search;
        self.reached[first as usize] = (NONE, Reason::Data(start));
        // Everything from here on was reached through time already.
        let mut horizon = graph.txns;
        while let Some((point, length)) = queue.pop_front() {
            meter.step()?;
            let (node, second) = (point / 2, point % 2 == 1);
            if node == from && !(by_read_write && second) {
                return Ok(Some(self.way(point)));
            }
            if length + 1 >= limit {
                continue;
            }
            let mut reach = |to: u32, to_second: bool, why: Reason, free: bool| {
                let reached = to * 2 + u32::from(to_second);
                if self.mark[reached as usize] != self.search {
                    self.mark[reached as usize] = self.search;
                    self.reached[reached as usize] = (point, why);
                    if free {
                        queue.push_front((reached, length));
                    } else {
                        queue.push_back((reached, length + 1));
                    }
                }
            };
            let is_txn = node < graph.txns;
            for (to, kind) in graph.edges(node) {
                let allowed = view.kinds & kind.bit() != 0
                    && !(view.split && is_txn && second && kind == Kind::ReadWrite);
                if allowed {
                    let to_second = if kind == Kind::Via { second } else { kind == Kind::ReadWrite };
                    reach(to, view.split && to_second, Reason::Data(kind), kind == Kind::Via);
                }
            }
            if !is_txn {
                continue;
            }
            if view.order == Order::Process && graph.next[node as usize] != NONE {
                reach(graph.next[node as usize], false, Reason::Process, false);
            }
            if view.order == Order::Realtime {
                let after = graph.after[node as usize];
                (after..horizon).for_each(|to| reach(to, false, Reason::Realtime, false));
                horizon = horizon.min(after);
            }
        }
        Ok(None)
    }

    fn way(&self, last: u32) -> Vec<Hop> {
        let mut hops = Vec::new();
        let mut point = last;
        loop {
            let (before, why) = self.reached[point as usize];
            if before == NONE {
                break;
            }
            hops.push(Hop { from: before / 2, to: point / 2, why });
            point = before;
        }
        hops.reverse();
        hops
    }
}

/// Joins the two edges at each tail.
fn without_tails(graph: &Graph, hops: Vec<Hop>) -> Vec<Hop> {
    let mut joined: Vec<Hop> = Vec::new();
    for hop in hops {
        match joined.last_mut() {
            Some(last) if last.to >= graph.txns => last.to = hop.to,
            _ => joined.push(hop),
        }
    }
    joined
}

/// The cycles without repetition that a closed way is made of.
fn simple(hops: &[Hop]) -> Vec<Vec<Hop>> {
    let mut cycles = Vec::new();
    let mut open: Vec<Hop> = Vec::new();
    for &hop in hops {
        open.push(hop);
        if let Some(start) = open.iter().position(|before| before.from == hop.to) {
            cycles.push(open.split_off(start));
        }
    }
    cycles
}

/// The same step for the strongest reason there is: of several, writes say most, and what was only read
/// least.
fn strongest(graph: &Graph, hop: Hop) -> Hop {
    let direct = graph.edges(hop.from).filter(|&(to, _)| to == hop.to).map(|(_, kind)| kind);
    let data = direct.filter(|&kind| kind < Kind::ReadWrite).min();
    let why = match (hop.why, data) {
        (Reason::Data(kind), Some(better)) => Reason::Data(kind.min(better)),
        (Reason::Process | Reason::Realtime, Some(better)) => Reason::Data(better),
        (Reason::Realtime, None) if graph.next[hop.from as usize] == hop.to => Reason::Process,
        (why, None) => why,
    };
    Hop { why, ..hop }
}

/// What a cycle is called.
fn classify(cycle: &[Hop]) -> Anomaly {
    let order = if cycle.iter().any(|hop| hop.why == Reason::Realtime) {
        Order::Realtime
    } else if cycle.iter().any(|hop| hop.why == Reason::Process) {
        Order::Process
    } else {
        Order::Free
    };
    let is = |hop: &Hop, kind| hop.why == Reason::Data(kind);
    let overtaken = cycle.iter().filter(|hop| is(hop, Kind::ReadWrite)).count();
    let following = cycle.iter().cycle().skip(1);
    let adjacent =
        cycle.iter().zip(following).any(|(one, next)| is(one, Kind::ReadWrite) && is(next, Kind::ReadWrite));
    let shape = match overtaken {
        0 if cycle.iter().any(|hop| is(hop, Kind::WriteRead)) => Shape::G1c,
        0 => Shape::G0,
        1 => Shape::GSingle,
        _ if adjacent => Shape::G2Item,
        _ => Shape::GNonadjacent,
    };
    Anomaly::Cycle(shape, order)
}

/// How many transactions some components have.
pub(super) fn size(graph: &Graph, parts: &[Vec<u32>]) -> u32 {
    to_u32(parts.iter().flatten().filter(|&&node| node < graph.txns).count())
}
