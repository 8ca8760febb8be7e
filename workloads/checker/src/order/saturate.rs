//! What every legal order must also keep, derived until nothing follows any more.
//!
//! Where a value has one writer, an answer says which write it saw. Let r be a certain observer of what w
//! wrote, and w' another certain write to the same register. In a legal order w' does not stand between w and
//! r, so
//!
//! - if w' comes before r, then w' comes before w ([`Why::Overwritten`]);
//! - if w comes before w', then r comes before w' ([`Why::Outdated`]).
//!
//! A cycle refutes the history. No cycle proves nothing by itself when several registers are involved
//! (deciding is NP-complete then), but the edges guide the search so well that it rarely has to take a choice
//! back.
//!
//! Which nodes come before a node is one number per lane: how much of that lane does; and which come after
//! it, where in each lane that begins. Both are kept up to date as edges are added, so each rule looks only
//! at the last write of each lane that comes before an observer, and at the first of each lane that comes
//! after a source: the others of that lane follow from these.

use super::graph::{Graph, NONE, Node, Why, at, number};
use super::mutate::{Mutation, broken};
use super::registers::Registers;
use crate::budget::{Exhausted, Meter};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Saturation {
    /// Nothing contradicts itself.
    Complete,
    /// The edge that closed a cycle; none when the given edges have one.
    Cycle(Option<u32>),
}

/// Adds to a graph what is certain from the answers alone: sources before observers, and who saw a register
/// that nobody had written before whoever writes it.
pub(super) fn add_sources(graph: &mut Graph, registers: &Registers) {
    for entry in 0..registers.entries.len() {
        if let Some(source) = registers.source_of(entry) {
            graph.add(source, number(entry), Why::Source);
        }
    }
    let writers = Writers::of(graph, registers);
    for entry in 0..registers.entries.len() {
        let Some(nil) =
            registers.entries[entry].action.required().filter(|&value| at(value) < registers.keys)
        else {
            continue;
        };
        if registers.optional[entry] {
            continue;
        }
        // Later observers of the same lane are enough, but there are few who found nothing.
        for (_, writes) in &writers.lanes_of[at(nil)] {
            if let Some(&(_, first)) = writes.iter().find(|&&(_, write)| at(write) != entry) {
                if broken(Mutation::InitialReversed) {
                    graph.add(first, number(entry), Why::Initial);
                } else {
                    graph.add(number(entry), first, Why::Initial);
                }
            }
        }
    }
}

/// The writes of one lane to one register, by position.
type LaneWrites = (u32, Vec<(u32, Node)>);

/// The certain writes of each register, by lane and position.
struct Writers {
    lanes_of: Vec<Vec<LaneWrites>>,
}

impl Writers {
    fn of(graph: &Graph, registers: &Registers) -> Self {
        let mut found: Vec<(u32, u32, u32, Node)> = Vec::new();
        for (entry, of) in registers.entries.iter().enumerate() {
            if of.action.written().is_some() && !registers.optional[entry] {
                let (lane, position) = graph.place[entry];
                found.push((of.key, lane, position, number(entry)));
            }
        }
        found.sort_unstable();
        let mut lanes_of: Vec<Vec<LaneWrites>> = vec![Vec::new(); registers.keys];
        for (key, lane, position, node) in found {
            let lanes = &mut lanes_of[at(key)];
            match lanes.last_mut() {
                Some((last, writes)) if *last == lane => writes.push((position, node)),
                _ => lanes.push((lane, vec![(position, node)])),
            }
        }
        Self { lanes_of }
    }
}

/// Bytes per node and lane: one number for what is before, one for what is after.
const CLOCK_BYTES: usize = 8;

struct Saturator<'a> {
    graph: &'a mut Graph,
    registers: &'a Registers,
    writers: Writers,
    lanes: usize,
    /// For node and lane: how many of that lane come before the node.
    before: Vec<u32>,
    /// For node and lane: the first position of that lane that comes after the node, or [`NONE`].
    after: Vec<u32>,
    /// For each entry the one whose value it saw, and for each source its observers.
    source: Vec<u32>,
    observers: Vec<Vec<u32>>,
    /// Entries to which a rule has to be applied (again).
    dirty: Vec<Node>,
    is_dirty: Vec<bool>,
}

/// Derives what follows, until nothing does or a cycle shows.
///
/// # Errors
/// When the budget is spent; the edges so far are all certain.
pub(super) fn saturate(
    graph: &mut Graph,
    registers: &Registers,
    meter: &mut Meter,
) -> Result<Saturation, Exhausted> {
    let sorted = graph.sorted();
    if sorted.len() < graph.nodes() {
        return Ok(Saturation::Cycle(None));
    }
    meter.hold(graph.nodes().saturating_mul(graph.lanes()), CLOCK_BYTES)?;
    let mut saturator = Saturator::new(graph, registers, &sorted);
    saturator.run(meter)
}

impl<'a> Saturator<'a> {
    fn new(graph: &'a mut Graph, registers: &'a Registers, sorted: &[Node]) -> Self {
        let (nodes, lanes, entries) = (graph.nodes(), graph.lanes(), registers.entries.len());
        let source: Vec<u32> = (0..entries).map(|entry| registers.source_of(entry).unwrap_or(NONE)).collect();
        let mut observers = vec![Vec::new(); entries];
        for (entry, &source) in source.iter().enumerate().filter(|(_, source)| **source != NONE) {
            observers[at(source)].push(number(entry));
        }
        let mut saturator = Self {
            writers: Writers::of(graph, registers),
            graph,
            registers,
            lanes,
            before: vec![0; nodes * lanes],
            after: vec![NONE; nodes * lanes],
            source,
            observers,
            dirty: Vec::new(),
            is_dirty: vec![false; entries],
        };
        for &node in sorted {
            let edges: Vec<Node> = saturator.graph.outgoing(node).map(|(_, edge)| edge.to).collect();
            for to in edges {
                saturator.learn_before(node, to);
            }
        }
        for &node in sorted.iter().rev() {
            let edges: Vec<Node> = saturator.graph.incoming(node).map(|(_, edge)| edge.from).collect();
            for from in edges {
                saturator.learn_after(from, node);
            }
        }
        for &node in sorted.iter().rev().filter(|&&node| at(node) < entries) {
            saturator.mark(node);
        }
        saturator
    }

    fn run(&mut self, meter: &mut Meter) -> Result<Saturation, Exhausted> {
        while let Some(node) = self.dirty.pop() {
            self.is_dirty[at(node)] = false;
            for (from, to, why) in self.implied(node) {
                meter.step()?;
                if from == to || self.is_before(to, from) {
                    return Ok(Saturation::Cycle(Some(self.graph.add(from, to, why))));
                }
                if !self.is_before(from, to) {
                    self.graph.add(from, to, why);
                    self.spread(from, to, meter)?;
                }
            }
        }
        Ok(Saturation::Complete)
    }

    /// What both rules say about a node: as an observer, and as a source.
    fn implied(&self, node: Node) -> Vec<(Node, Node, Why)> {
        let mut implied = Vec::new();
        let lanes = &self.writers.lanes_of[at(self.registers.entries[at(node)].key)];
        let source = self.source[at(node)];
        if source != NONE {
            for (lane, writes) in lanes {
                let before = self.before[at(node) * self.lanes + at(*lane)];
                let mut count = writes.partition_point(|&(position, _)| position < before);
                if broken(Mutation::OverwrittenWide) {
                    count = (count + 1).min(writes.len());
                }
                let Some(&(_, write)) = count.checked_sub(1).and_then(|last| writes.get(last)) else {
                    continue;
                };
                if write != source && write != node {
                    implied.push((write, source, Why::Overwritten(node)));
                }
            }
        }
        if !self.observers[at(node)].is_empty() {
            for (lane, writes) in lanes {
                let after = self.after[at(node) * self.lanes + at(*lane)];
                let mut count = writes.partition_point(|&(position, _)| position < after);
                if broken(Mutation::OutdatedWide) {
                    count = count.saturating_sub(1);
                }
                let Some(&(_, write)) = writes.get(count) else { continue };
                let others = self.observers[at(node)].iter().filter(|&&observer| observer != write);
                implied.extend(others.filter(|_| write != node).map(|&o| (o, write, Why::Outdated(o))));
            }
        }
        implied
    }

    /// Whether one node is known to come before another.
    fn is_before(&self, from: Node, to: Node) -> bool {
        let (lane, position) = self.graph.place[at(from)];
        self.before[at(to) * self.lanes + at(lane)] > position
    }

    /// Tells everybody after `to` what is before `from`, and everybody before `from` what is after `to`.
    fn spread(&mut self, from: Node, to: Node, meter: &mut Meter) -> Result<(), Exhausted> {
        let mut later = vec![(from, to)];
        while let Some((from, to)) = later.pop() {
            meter.step()?;
            if self.learn_before(from, to) {
                self.mark(to);
                later.extend(self.graph.outgoing(to).map(|(_, edge)| (to, edge.to)));
            }
        }
        let mut earlier = vec![(from, to)];
        while let Some((from, to)) = earlier.pop() {
            meter.step()?;
            if self.learn_after(from, to) {
                self.mark(from);
                earlier.extend(self.graph.incoming(from).map(|(_, edge)| (edge.from, from)));
            }
        }
        Ok(())
    }

    /// `to` learns what is before it through `from`.
    fn learn_before(&mut self, from: Node, to: Node) -> bool {
        let (lane, position) = self.graph.place[at(from)];
        let (base, other) = (at(to) * self.lanes, at(from) * self.lanes);
        let mut learnt = false;
        for l in 0..self.lanes {
            let mut known = self.before[other + l];
            if l == at(lane) {
                known = known.max(position + 1);
            }
            if known > self.before[base + l] {
                self.before[base + l] = known;
                learnt = true;
            }
        }
        learnt
    }

    /// `from` learns what is after it through `to`.
    fn learn_after(&mut self, from: Node, to: Node) -> bool {
        let (lane, position) = self.graph.place[at(to)];
        let (base, other) = (at(from) * self.lanes, at(to) * self.lanes);
        let mut learnt = false;
        for l in 0..self.lanes {
            let mut known = self.after[other + l];
            if l == at(lane) {
                known = known.min(position);
            }
            if known < self.after[base + l] {
                self.after[base + l] = known;
                learnt = true;
            }
        }
        learnt
    }

    fn mark(&mut self, node: Node) {
        if let Some(is_dirty) = self.is_dirty.get_mut(at(node))
            && !std::mem::replace(is_dirty, true)
        {
            self.dirty.push(node);
        }
    }
}
