//! What sessions saw of a key, as an order of its writes.
//!
//! A guarantee of a session says of two answers to it, the second called after the first had come: what the
//! second one shows, or makes, is no older than what the first one showed, or made. Where a value has one
//! writer both are writes, so every such pair is an edge between them. An order of the key's writes that
//! keeps all edges exists where there is no cycle; then nobody is accused, whatever real time says between
//! sessions, of which no guarantee speaks. Nothing is older than what nobody has written.
//!
//! All earlier answers of one kind are one *front*, a node between the writes that they showed and those that
//! come later, so that there are no more edges than a few times the answers.

use std::collections::{HashMap, VecDeque};

use super::Guarantee;
use crate::budget::{Exhausted, Meter};
use crate::history::{Op, OpKind};
use crate::scc::{Digraph, Next, components};

pub(super) fn is_read(op: &Op) -> bool {
    matches!(op.kind(), OpKind::Read { .. })
}

/// The guarantee that two kinds of operations are about, by which of them are reads.
pub(super) fn guarantee(earlier: bool, later: bool) -> Guarantee {
    match (earlier, later) {
        (true, true) => Guarantee::MonotonicReads,
        (false, true) => Guarantee::ReadYourWrites,
        (false, false) => Guarantee::MonotonicWrites,
        (true, false) => Guarantee::WritesFollowReads,
    }
}

/// Two answers to one session, of which the second one is about a write that is no older.
pub(super) type Hop<'a> = (&'a Op, &'a Op);

/// A node on a way, and whether another write than its beginning was passed.
type Step = (u32, bool);

/// What leads from a node.
#[derive(Clone, Copy)]
struct Edge<'a> {
    to: u32,
    /// The answer that showed the write, on the way into a front or out of it.
    by: Option<&'a Op>,
}

/// The writes of a key, and the fronts. Node 0 is what nobody has written.
pub(super) struct Views<'a> {
    edges: Vec<Vec<Edge<'a>>>,
    /// By value.
    writes: HashMap<i64, u32>,
    /// Nodes that are writes, or nothing.
    is_write: Vec<bool>,
    /// How many answers were compared with earlier ones.
    pub(super) compared: usize,
}

impl Digraph for Views<'_> {
    fn len(&self) -> u32 {
        u32::try_from(self.edges.len()).unwrap_or(u32::MAX)
    }

    fn next(&self, node: u32, at: u32) -> Next {
        self.edges[place(node)].get(place(at)).map_or(Next::End, |edge| Next::To(edge.to))
    }
}

fn place(node: u32) -> usize {
    usize::try_from(node).unwrap_or(usize::MAX)
}

impl Default for Views<'_> {
    /// Of a key of which nobody saw anything.
    fn default() -> Self {
        Self { edges: vec![Vec::new()], writes: HashMap::new(), is_write: vec![true], compared: 0 }
    }
}

impl<'a> Views<'a> {
    fn node(&mut self, is_write: bool) -> u32 {
        let node = self.len();
        self.edges.push(Vec::new());
        self.is_write.push(is_write);
        node
    }

    /// The node of what an answer shows or makes.
    fn shown(&mut self, op: &Op) -> u32 {
        let value = match op.kind() {
            OpKind::Read { value } => value,
            kind => kind.written(),
        };
        let Some(value) = value else { return 0 };
        if let Some(node) = self.writes.get(&value) {
            return *node;
        }
        let node = self.node(true);
        self.writes.insert(value, node);
        self.edges[0].push(Edge { to: node, by: None });
        node
    }

    /// Adds the answers to one session, in the order of their calls, as far as these guarantees speak of
    /// them.
    pub(super) fn add(&mut self, ops: &[&'a Op], guarantees: &[Guarantee]) {
        let mut returned = ops.to_vec();
        returned.sort_by_key(|op| op.ret);
        let mut returned = returned.into_iter().peekable();
        // Of changes, and of reads.
        let mut fronts: [Option<u32>; 2] = [None; 2];
        for &op in ops {
            while let Some(earlier) = returned.next_if(|earlier| earlier.ret < op.call) {
                let front = &mut fronts[usize::from(is_read(earlier))];
                let next = self.node(false);
                if let Some(before) = front.replace(next) {
                    self.edges[place(before)].push(Edge { to: next, by: None });
                }
                let shown = self.shown(earlier);
                self.edges[place(shown)].push(Edge { to: next, by: Some(earlier) });
            }
            let now = self.shown(op);
            for (earlier_reads, front) in [false, true].into_iter().zip(fronts) {
                if let Some(front) =
                    front.filter(|_| guarantees.contains(&guarantee(earlier_reads, is_read(op))))
                {
                    self.compared += 1;
                    self.edges[place(front)].push(Edge { to: now, by: Some(op) });
                }
            }
        }
    }

    /// Pairs of answers that no order of the writes keeps together; as few as there are, where that is cheap
    /// to know.
    ///
    /// # Errors
    /// Why it gave up.
    pub(super) fn contradiction(&self, meter: &mut Meter) -> Result<Option<Vec<Hop<'a>>>, Exhausted> {
        let mut shortest: Option<Vec<Hop<'a>>> = None;
        for component in components(self, meter)?.cyclic {
            let inside: std::collections::HashSet<u32> = component.iter().copied().collect();
            let writes = component.iter().copied().filter(|node| self.is_write[place(*node)]);
            if writes.clone().count() < 2 {
                // Whoever saw a write may see it again.
                continue;
            }
            for from in writes.take(MOST_BEGINNINGS) {
                let cycle = self.shortest_from(from, &inside, meter)?;
                if shortest.as_ref().is_none_or(|shortest| cycle.len() < shortest.len()) {
                    shortest = Some(cycle);
                }
            }
        }
        Ok(shortest)
    }

    /// The cycle of the fewest hops through a write and another one.
    fn shortest_from(
        &self,
        from: u32,
        inside: &std::collections::HashSet<u32>,
        meter: &mut Meter,
    ) -> Result<Vec<Hop<'a>>, Exhausted> {
        // A step into a write is a hop, all others are free.
        let mut came: HashMap<Step, (Step, Edge<'a>)> = HashMap::new();
        let mut open = VecDeque::from([(from, false)]);
        while let Some(at) = open.pop_front() {
            meter.step()?;
            for edge in self.edges[place(at.0)].iter().filter(|edge| inside.contains(&edge.to)) {
                let is_write = self.is_write[place(edge.to)];
                let next = (edge.to, at.1 || (is_write && edge.to != from));
                if next == (from, false) || came.contains_key(&next) {
                    continue;
                }
                came.insert(next, (at, *edge));
                if next == (from, true) {
                    return Ok(Self::hops((from, false), next, &came));
                }
                if is_write { open.push_back(next) } else { open.push_front(next) }
            }
        }
        Ok(Vec::new())
    }

    fn hops(from: Step, mut at: Step, came: &HashMap<Step, (Step, Edge<'a>)>) -> Vec<Hop<'a>> {
        let mut labels = Vec::new();
        while at != from {
            let Some((before, edge)) = came.get(&at) else { break };
            labels.extend(edge.by);
            at = *before;
        }
        // On the way from a write to another one an answer leads into a front, and one out of it.
        labels.reverse();
        labels.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    }
}

/// Writes from which a cycle is looked for, of each knot.
const MOST_BEGINNINGS: usize = 64;
