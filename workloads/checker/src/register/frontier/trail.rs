//! How each configuration came about, when the order is asked for.
//!
//! Every placement is a node that points to the one before it, so configurations share what they have in
//! common. Nodes that no configuration leads to any more are swept out whenever their number has doubled;
//! what is left is mostly the one trunk that all have in common, eight bytes for each operation of the
//! history.

use super::super::problem::index;

#[derive(Clone, Copy)]
struct Node {
    before: u32,
    op: u32,
}

pub(super) struct Trail {
    nodes: Vec<Node>,
    sweep_at: usize,
    is_kept: bool,
}

/// The beginning, where nothing is placed.
pub(super) const ROOT: u32 = u32::MAX;
const FIRST_SWEEP: usize = 1 << 16;

impl Trail {
    pub(super) fn new(is_kept: bool) -> Self {
        Self { nodes: Vec::new(), sweep_at: FIRST_SWEEP, is_kept }
    }

    pub(super) fn push(&mut self, before: u32, op: u32) -> u32 {
        if !self.is_kept {
            return ROOT;
        }
        self.nodes.push(Node { before, op });
        u32::try_from(self.nodes.len() - 1).unwrap_or(ROOT)
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    /// Sweeps if it is time to; `live` are the nodes that are led to.
    pub(super) fn sweep<'a>(&mut self, live: impl Iterator<Item = &'a mut u32>) {
        if self.nodes.len() < self.sweep_at {
            return;
        }
        let mut is_reached = vec![false; self.nodes.len()];
        let live: Vec<&mut u32> = live.collect();
        for &&mut start in &live {
            let mut at = start;
            while at != ROOT && !std::mem::replace(&mut is_reached[index(at)], true) {
                at = self.nodes[index(at)].before;
            }
        }
        // A node comes after the one before it, so one pass renumbers all.
        let mut numbers = vec![ROOT; self.nodes.len()];
        let mut kept = 0;
        for at in 0..self.nodes.len() {
            if is_reached[at] {
                let Node { before, op } = self.nodes[at];
                let before = if before == ROOT { ROOT } else { numbers[index(before)] };
                self.nodes[kept] = Node { before, op };
                numbers[at] = u32::try_from(kept).unwrap_or(ROOT);
                kept += 1;
            }
        }
        self.nodes.truncate(kept);
        self.sweep_at = FIRST_SWEEP.max(kept * 2);
        for at in live {
            *at = if *at == ROOT { ROOT } else { numbers[index(*at)] };
        }
    }

    /// The operations on the way to `end`.
    pub(super) fn order(&self, end: u32) -> Vec<usize> {
        let mut order = Vec::new();
        let mut at = end;
        while at != ROOT {
            let node = self.nodes[index(at)];
            order.push(index(node.op));
            at = node.before;
        }
        order.reverse();
        order
    }
}
