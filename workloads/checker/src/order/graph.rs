//! The order that is given before any answer is looked at: program order and real time, as a graph.
//!
//! Program order within a group (a process, a session) is the order of intervals: one operation comes before
//! another if it had returned when the other was called. For a process that is a chain; in a session whose
//! client had several requests in flight, or where an operation of unknown fate (which never returns) stays
//! behind while the session goes on, those in flight together are not ordered.
//!
//! Real time between groups relates up to n² pairs, so it is not written out: a *moment* is a node of its
//! own, after everything that had returned by then and before everything that was called later. Moments form
//! a chain, hence each operation has at most two edges to them.
//!
//! Every node stands in a *lane* (a chain of the graph) at a position, so that "what is before this node"
//! fits into one number per lane.

use std::collections::{BTreeMap, BTreeSet};

use super::RealTime;
use super::mutate::{Mutation, broken};
use crate::confirm;
use crate::history::{NEVER, Rank};

/// A node: operations are numbered from 0 as given, moments follow.
pub(super) type Node = u32;

/// No node, no edge.
pub(super) const NONE: u32 = u32::MAX;

/// A node or an edge as an index.
pub(super) fn at(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// An index as a number of a node, an edge, a lane or a position. Histories are shorter than 2^31 events.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

/// When an operation took place, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Rank of the call.
    pub(super) call: Rank,
    /// Rank of the return, or [`NEVER`].
    pub(super) ret: Rank,
    /// Whose program order it stands in.
    pub(super) group: u64,
    /// Whether it asks for a change.
    pub(super) update: bool,
}

impl Span {
    /// The same, as far as real time binds it.
    pub(super) fn bound(self, real_time: RealTime) -> confirm::Span {
        let Self { call, ret, group, update } = self;
        confirm::Span { call, ret, group: Some(group), bound: real_time.binds(update) }
    }
}

/// Why one node comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// One group asked for both, one after the other.
    Program,
    /// Real time that binds between groups.
    Time,
    /// The second saw what the first wrote.
    Source,
    /// The first found the register as nobody had written it, the second writes it.
    Initial,
    /// The system says so. Never part of a proof.
    Claim,
    /// The first writes the same key, and comes before this observer of what the second wrote.
    Overwritten(Node),
    /// The first observes this write, which comes before the second, a write to the same key.
    Outdated(Node),
}

/// One edge, in the lists of both its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) why: Why,
    next_out: u32,
    next_in: u32,
}

/// A growing graph of who comes before whom.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    /// Operations; nodes from here on are moments.
    pub(super) ops: usize,
    edges: Vec<Edge>,
    first_out: Vec<u32>,
    first_in: Vec<u32>,
    /// The lane of each node and its position there.
    pub(super) place: Vec<(u32, u32)>,
    lengths: Vec<u32>,
}

impl Graph {
    /// Program order of all operations, and as much of real time as the condition asks for.
    pub(super) fn of(spans: &[Span], real_time: RealTime) -> Self {
        let mut graph = Self {
            ops: spans.len(),
            edges: Vec::with_capacity(spans.len() * 4),
            first_out: vec![NONE; spans.len()],
            first_in: vec![NONE; spans.len()],
            place: vec![(NONE, NONE); spans.len()],
            lengths: Vec::new(),
        };
        let mut by_call: Vec<usize> = (0..spans.len()).collect();
        by_call.sort_by_key(|&op| spans[op].call);
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for &op in &by_call {
            groups.entry(spans[op].group).or_default().push(op);
        }
        for members in groups.values() {
            graph.program_order(spans, members);
        }
        match real_time {
            RealTime::None => {}
            RealTime::All => graph.moments(spans, &by_call, Why::Time),
            RealTime::Updates => {
                let binds = |&op: &usize| spans[op].update || broken(Mutation::TimeBindsReads);
                let updates: Vec<usize> = by_call.into_iter().filter(binds).collect();
                graph.moments(spans, &updates, Why::Time);
            }
        }
        graph
    }

    /// Lanes for the members of one group, which are sorted by call: each takes the lane whose last operation
    /// returned first, if that was before its call.
    fn program_order(&mut self, spans: &[Span], members: &[usize]) {
        let first_lane = self.lengths.len();
        let mut ends: BTreeSet<(Rank, u32, usize)> = BTreeSet::new();
        for &op in members {
            let span = spans[op];
            let lane = match ends.first().copied() {
                Some(end) if end.0 < span.call => {
                    ends.remove(&end);
                    if !broken(Mutation::NoProgramOrder) {
                        self.add(number(end.2), number(op), Why::Program);
                    }
                    end.1
                }
                _ => self.new_lane(),
            };
            self.append_to(lane, number(op));
            ends.insert((span.ret, lane, op));
        }
        if self.lengths.len() > first_lane + 1 {
            self.moments(spans, members, Why::Program);
        }
    }

    /// Orders every two of these (sorted by call) of which one returned before the other was called.
    fn moments(&mut self, spans: &[Span], members: &[usize], why: Why) {
        let mut returned: Vec<usize> = members.iter().copied().filter(|&op| spans[op].ret != NEVER).collect();
        returned.sort_by_key(|&op| spans[op].ret);
        let mut returned = returned.into_iter().peekable();
        let lane = self.new_lane();
        let mut moment = NONE;
        for &op in members {
            let mut next = NONE;
            while let Some(earlier) = returned.next_if(|&earlier| spans[earlier].ret < spans[op].call) {
                if next == NONE {
                    next = self.new_moment(lane);
                    if moment != NONE {
                        self.add(moment, next, why);
                    }
                }
                self.add(number(earlier), next, why);
            }
            if next != NONE {
                moment = next;
            }
            if moment != NONE {
                self.add(moment, number(op), why);
            }
        }
    }

    fn new_lane(&mut self) -> u32 {
        self.lengths.push(0);
        number(self.lengths.len() - 1)
    }

    fn new_moment(&mut self, lane: u32) -> Node {
        let node = number(self.place.len());
        self.place.push((NONE, NONE));
        self.first_out.push(NONE);
        self.first_in.push(NONE);
        self.append_to(lane, node);
        node
    }

    fn append_to(&mut self, lane: u32, node: Node) {
        self.place[at(node)] = (lane, self.lengths[at(lane)]);
        self.lengths[at(lane)] += 1;
    }

    /// Adds an edge and returns its number.
    pub(super) fn add(&mut self, from: Node, to: Node, why: Why) -> u32 {
        let edge = number(self.edges.len());
        let (next_out, next_in) = (self.first_out[at(from)], self.first_in[at(to)]);
        self.edges.push(Edge { from, to, why, next_out, next_in });
        self.first_out[at(from)] = edge;
        self.first_in[at(to)] = edge;
        edge
    }

    /// Takes back the youngest edges until `count` are left.
    pub(super) fn truncate(&mut self, count: usize) {
        while self.edges.len() > count
            && let Some(edge) = self.edges.pop()
        {
            self.first_out[at(edge.from)] = edge.next_out;
            self.first_in[at(edge.to)] = edge.next_in;
        }
    }

    /// How many edges there are.
    pub(super) fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// One edge.
    pub(super) fn edge(&self, edge: u32) -> Edge {
        self.edges[at(edge)]
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.place.len()
    }

    /// How many lanes there are.
    pub(super) fn lanes(&self) -> usize {
        self.lengths.len()
    }

    /// Whether a node is an operation.
    pub(super) fn is_op(&self, node: Node) -> bool {
        at(node) < self.ops
    }

    /// The edges out of a node, youngest first.
    pub(super) fn outgoing(&self, node: Node) -> impl Iterator<Item = (u32, Edge)> + '_ {
        self.list(self.first_out[at(node)], |edge| edge.next_out)
    }

    /// The edges into a node, youngest first.
    pub(super) fn incoming(&self, node: Node) -> impl Iterator<Item = (u32, Edge)> + '_ {
        self.list(self.first_in[at(node)], |edge| edge.next_in)
    }

    fn list(&self, first: u32, next: fn(&Edge) -> u32) -> impl Iterator<Item = (u32, Edge)> + '_ {
        let mut edge = first;
        std::iter::from_fn(move || {
            let found = self.edges.get(at(edge))?;
            let item = (edge, *found);
            edge = next(found);
            Some(item)
        })
    }

    /// How many edges each node has that come in.
    pub(super) fn blockers(&self) -> Vec<u32> {
        let mut blockers = vec![0; self.nodes()];
        for edge in &self.edges {
            blockers[at(edge.to)] += 1;
        }
        blockers
    }

    /// All nodes, each after those before it; fewer than all when the graph has a cycle.
    pub(super) fn sorted(&self) -> Vec<Node> {
        let mut blockers = self.blockers();
        let mut sorted: Vec<Node> =
            (0..number(self.nodes())).filter(|&node| blockers[at(node)] == 0).collect();
        let mut done = 0;
        while let Some(&node) = sorted.get(done) {
            done += 1;
            for (_, edge) in self.outgoing(node) {
                blockers[at(edge.to)] -= 1;
                if blockers[at(edge.to)] == 0 {
                    sorted.push(edge.to);
                }
            }
        }
        sorted
    }

    /// For each operation the earliest return among it and all that come after it: whoever has the least is
    /// due next.
    pub(super) fn deadlines(&self, spans: &[Span]) -> Vec<Rank> {
        let mut deadlines: Vec<Rank> = spans.iter().map(|span| span.ret).collect();
        deadlines.resize(self.nodes(), NEVER);
        for &node in self.sorted().iter().rev() {
            let later = self.outgoing(node).map(|(_, edge)| deadlines[at(edge.to)]).min();
            deadlines[at(node)] = deadlines[at(node)].min(later.unwrap_or(NEVER));
        }
        deadlines
    }
}
