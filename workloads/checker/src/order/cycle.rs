//! Cycles: the shortest one that can be had, and all operations that a proof of it leans on.

use std::collections::{BTreeSet, VecDeque};

use super::graph::{Graph, NONE, Node, Why, at, number};
use super::registers::Registers;

/// From how many nodes the shortest of the given edges' cycles is looked for.
const MOST_STARTS: usize = 64;
/// How many derived edges are explained at most; a proof that leans on more is not small.
const MOST_EXPLAINED: usize = 2_000;

/// The edges of a short cycle: the shortest through this edge, or one of the given edges.
pub(super) fn shortest(graph: &Graph, closing: Option<u32>) -> Vec<u32> {
    if let Some(closing) = closing {
        let edge = graph.edge(closing);
        let mut cycle = vec![closing];
        cycle.extend(path(graph, edge.to, edge.from, closing).unwrap_or_default());
        return cycle;
    }
    let mut cyclic = vec![true; graph.nodes()];
    for node in graph.sorted() {
        cyclic[at(node)] = false;
    }
    let nodes: Vec<Node> = (0..number(graph.nodes())).filter(|&node| cyclic[at(node)]).collect();
    let mut best: Option<Vec<u32>> = None;
    // Those that only come after a cycle have no way back; the starts are spread over the rest.
    let stride = nodes.len().div_ceil(MOST_STARTS).max(1);
    for &start in nodes.iter().step_by(stride).chain(&nodes).take(2 * MOST_STARTS) {
        let cycle = graph.outgoing(start).filter_map(|(number, edge)| {
            let mut cycle = vec![number];
            cycle.extend(path(graph, edge.to, start, NONE)?);
            Some(cycle)
        });
        best = cycle.chain(best).min_by_key(Vec::len);
    }
    best.unwrap_or_default()
}

/// The edges of a shortest way from one node to another, of edges older than `before`.
fn path(graph: &Graph, from: Node, to: Node, before: u32) -> Option<Vec<u32>> {
    let mut came_by: std::collections::BTreeMap<Node, u32> = std::collections::BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    let mut seen = BTreeSet::from([from]);
    while let Some(node) = queue.pop_front() {
        if node == to {
            let (mut edges, mut node) = (Vec::new(), node);
            while node != from {
                let edge = *came_by.get(&node)?;
                edges.push(edge);
                node = graph.edge(edge).from;
            }
            edges.reverse();
            return Some(edges);
        }
        for (number, edge) in graph.outgoing(node) {
            if number < before && seen.insert(edge.to) {
                came_by.insert(edge.to, number);
                queue.push_back(edge.to);
            }
        }
    }
    None
}

/// The operations on a cycle, and those that its derived edges follow from. Each derived edge follows from
/// older ones only, so this ends.
pub(super) fn involved(graph: &Graph, registers: &Registers, cycle: &[u32]) -> BTreeSet<usize> {
    let mut ops = BTreeSet::new();
    let mut open: Vec<u32> = cycle.to_vec();
    let mut explained: BTreeSet<u32> = BTreeSet::new();
    while let Some(number) = open.pop() {
        if !explained.insert(number) || explained.len() > MOST_EXPLAINED {
            continue;
        }
        let edge = graph.edge(number);
        ops.extend([edge.from, edge.to].into_iter().filter(|&node| graph.is_op(node)).map(at));
        let needed = match edge.why {
            Why::Overwritten(observer) => Some((edge.from, observer)),
            Why::Outdated(observer) => registers.source_of(at(observer)).map(|source| (source, edge.to)),
            Why::Program | Why::Time | Why::Source | Why::Initial | Why::Claim => None,
        };
        if let Some((from, to)) = needed {
            ops.extend([at(from), at(to)]);
            open.extend(path(graph, from, to, number).unwrap_or_default());
        }
    }
    ops
}
