//! Strongly connected components (Tarjan, SIAM Journal on Computing 1972), without recursion.
//!
//! One pass gives both answers that are needed: the components of more than one node, each of which holds a
//! cycle, and an order of the nodes that keeps every edge when there is none.

use crate::budget::{Exhausted, Meter};

/// No node.
const NONE: u32 = u32::MAX;

/// What follows a node, one at a time.
pub(crate) enum Next {
    /// An edge to this node.
    To(u32),
    /// An edge that does not count here.
    Skip,
    /// No more.
    End,
}

/// A graph whose edges are made when they are asked for.
pub(crate) trait Digraph {
    /// How many nodes there are.
    fn len(&self) -> u32;
    /// What stands at a position in the list of edges of a node.
    fn next(&self, node: u32, at: u32) -> Next;
}

/// What one pass found.
#[derive(Debug, Default)]
pub(crate) struct Components {
    /// Those with more than one node.
    pub(crate) cyclic: Vec<Vec<u32>>,
    /// All nodes, each after those that it leads to, as far as there are no cycles.
    pub(crate) reversed: Vec<u32>,
}

/// Marks a node whose component is known.
const DONE: u32 = NONE - 1;
/// Bytes for each node: index, low link, two stacks, the order.
const NODE_BYTES: usize = 24;

/// Finds the components.
///
/// # Errors
/// Why it gave up.
pub(crate) fn components(graph: &impl Digraph, meter: &mut Meter) -> Result<Components, Exhausted> {
    let mut found = Components::default();
    let mut search = Search { low: vec![NONE; graph.len() as usize], ..Search::default() };
    meter.hold(graph.len() as usize, NODE_BYTES)?;
    for root in 0..graph.len() {
        if search.low[root as usize] == NONE {
            search.from(root, graph, &mut found, meter)?;
        }
    }
    Ok(found)
}

#[derive(Default)]
struct Search {
    /// The lowest number that a node is known to reach; [`DONE`] once its component is known.
    low: Vec<u32>,
    numbered: u32,
    /// Nodes whose component is not known.
    open: Vec<u32>,
    /// The path: a node, its number, and the position among its edges.
    path: Vec<(u32, u32, u32)>,
}

impl Search {
    fn enter(&mut self, node: u32) {
        self.low[node as usize] = self.numbered;
        self.path.push((node, self.numbered, 0));
        self.numbered += 1;
        self.open.push(node);
    }

    fn from(
        &mut self,
        root: u32,
        graph: &impl Digraph,
        found: &mut Components,
        meter: &mut Meter,
    ) -> Result<(), Exhausted> {
        self.enter(root);
        while let Some((node, number, at)) = self.path.last_mut() {
            let (node, number) = (*node, *number);
            *at += 1;
            match graph.next(node, *at - 1) {
                Next::Skip => {}
                Next::To(to) => match self.low[to as usize] {
                    NONE => self.enter(to),
                    DONE => {}
                    reached => self.low[node as usize] = self.low[node as usize].min(reached),
                },
                Next::End => {
                    meter.step()?;
                    self.path.pop();
                    let low = self.low[node as usize];
                    if low == number {
                        self.close(node, found);
                    } else if let Some(&(before, ..)) = self.path.last() {
                        self.low[before as usize] = self.low[before as usize].min(low);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes a component, whose first node this is, from the open ones.
    fn close(&mut self, first: u32, found: &mut Components) {
        let start = self.open.iter().rposition(|&node| node == first).expect("it is open");
        let members = &self.open[start..];
        members.iter().for_each(|&node| self.low[node as usize] = DONE);
        if let [node] = members {
            found.reversed.push(*node);
        } else {
            found.cyclic.push(members.to_vec());
        }
        self.open.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    struct Listed(Vec<Vec<u32>>);

    impl Digraph for Listed {
        fn len(&self) -> u32 {
            u32::try_from(self.0.len()).unwrap()
        }

        fn next(&self, node: u32, at: u32) -> Next {
            self.0[node as usize].get(at as usize).map_or(Next::End, |&to| Next::To(to))
        }
    }

    #[test]
    fn components_are_those_that_reach_each_other() {
        let graph = Listed(vec![vec![1], vec![2, 3], vec![0], vec![4], vec![5], vec![3], vec![6, 0]]);
        let mut found = components(&graph, &mut Meter::new(&Budget::default())).unwrap().cyclic;
        found.iter_mut().for_each(|members| members.sort_unstable());
        found.sort();
        assert_eq!(found, [vec![0, 1, 2], vec![3, 4, 5]]);
    }

    #[test]
    fn without_cycles_the_order_keeps_every_edge() {
        let graph = Listed(vec![vec![3], vec![0, 2], vec![3], vec![]]);
        let found = components(&graph, &mut Meter::new(&Budget::default())).unwrap();
        assert_eq!((found.cyclic.len(), found.reversed), (0, vec![3, 0, 2, 1]));
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack_and_a_spent_budget_ends_it() {
        let chain = Listed((1..300_000).map(|to| vec![to]).chain([vec![]]).collect());
        assert_eq!(components(&chain, &mut Meter::new(&Budget::default())).unwrap().reversed.len(), 300_000);
        let tiny = Meter::new(&Budget::new(10, 1 << 30));
        assert_eq!(components(&chain, &mut { tiny }).unwrap_err(), Exhausted::Steps);
    }
}
