//! Depth-first search for an order, after Wing and Gong, with Lowe's memory of visited configurations.
//!
//! A configuration is the set of operations placed so far and what the object holds. Remembering whole sets
//! costs memory with the square of the history, so a configuration is remembered as a fingerprint: the
//! exclusive or of one 128-bit number per placed operation, and the fingerprint of the state. Two different
//! configurations share one with a probability of about 2^-128 a pair; at the pairs of 10^8 configurations,
//! more than a budget holds, that is below 10^-21, and every violation is judged again on a few operations
//! besides.
//!
//! What is remembered only spares work: where there is no room for more it is forgotten and the search goes
//! on, so memory is no reason for this search to give up. A search whose steps ran out goes on where it was
//! ([`Search::run`]).
//!
//! The prunings are the first two of the [`super::frontier`]. The search is strongest where few orders have
//! to be tried; where many are dead ends it is the frontier that answers.

use super::Found;
use super::sabotage::{Rule, is_broken};
use crate::budget::Meter;
use crate::hash::{self, FINGERPRINT_BYTES, Fingerprints};
use crate::history::{NEVER, Rank};
use crate::model::{Call, Model};

/// Decides depth first; an order is the one on its stack. The calls are sorted by call.
#[must_use]
pub fn search<M: Model>(model: &M, calls: &[&Call<M::Op>], meter: &mut Meter) -> Found {
    Search::new(model, calls).run(meter)
}

/// Configurations that are remembered at least, however little memory there is.
const LEAST_REMEMBERED: usize = 1 << 10;

/// An operation on the stack, with what to restore when it is taken back. A forced one has no alternative.
struct Placed<S> {
    at: usize,
    state: S,
    forced: bool,
}

const HEAD: usize = 0;
/// The end of the list, and "no such node".
const END: usize = usize::MAX;

/// An operation is compared with this many that are open when it is called.
const MOST_COMPARED: usize = 64;

/// A search under way. Calls and returns are a doubly linked list, from which placed operations are taken out
/// and put back.
pub struct Search<'a, M: Model> {
    model: &'a M,
    calls: &'a [&'a Call<M::Op>],
    /// For each node of the list its operation, whether it is a return, and its rank. Node 0 is the head.
    nodes: Vec<(usize, bool, Rank)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    call_node: Vec<usize>,
    return_node: Vec<usize>,
    /// Operations that are the same, were called earlier and return earlier: they go first.
    ahead: Vec<Vec<usize>>,
    is_placed: Vec<bool>,
    observes: Vec<bool>,
    state: M::State,
    fingerprint: u128,
    stack: Vec<Placed<M::State>>,
    /// The last return that could not be passed.
    furthest: Option<(Rank, usize)>,
    seen: Fingerprints,
    /// The most operations that were placed.
    reached: usize,
    /// The node that is looked at next.
    cursor: usize,
}

impl<'a, M: Model> Search<'a, M> {
    /// A search that has not begun. The calls are sorted by call.
    #[must_use]
    pub fn new(model: &'a M, calls: &'a [&'a Call<M::Op>]) -> Self {
        let count = calls.len();
        let mut nodes: Vec<(usize, bool, Rank)> = vec![(END, false, 0)];
        nodes.extend(calls.iter().enumerate().map(|(at, call)| (at, false, call.call)));
        nodes.extend(
            calls.iter().enumerate().filter(|(_, c)| !c.is_open()).map(|(at, call)| (at, true, call.ret)),
        );
        nodes[1..].sort_unstable_by_key(|&(_, _, rank)| rank);
        let (mut call_node, mut return_node) = (vec![END; count], vec![END; count]);
        for (node, &(at, is_return, _)) in nodes.iter().enumerate().skip(1) {
            if is_return { return_node[at] = node } else { call_node[at] = node }
        }
        let next: Vec<usize> = (1..nodes.len()).chain([END]).collect();
        let previous = [END].into_iter().chain(0..nodes.len() - 1).collect();
        let observes: Vec<bool> = calls.iter().map(|call| model.observes(&call.op)).collect();
        Self {
            model,
            calls,
            ahead: ahead(model, calls, &observes),
            nodes,
            cursor: next[HEAD],
            next,
            previous,
            call_node,
            return_node,
            is_placed: vec![false; count],
            observes,
            state: model.initial(),
            fingerprint: 0,
            stack: Vec::new(),
            furthest: None,
            seen: Fingerprints::default(),
            reached: 0,
        }
    }

    /// Goes on until it has decided or the meter stops it.
    pub fn run(&mut self, meter: &mut Meter) -> Found {
        let mut cursor = self.cursor;
        while cursor != END {
            let (at, is_return, rank) = self.nodes[cursor];
            if let Err(why) = meter.step() {
                self.cursor = cursor;
                return Found::GaveUp { why, reached: self.reached };
            }
            if self.seen.len() > LEAST_REMEMBERED
                && self.seen.len() == self.seen.capacity()
                && meter.hold(2 * self.seen.capacity(), FINGERPRINT_BYTES).is_err()
            {
                self.seen.clear();
            }
            if is_return {
                if self.furthest.is_none_or(|(furthest, _)| furthest < rank) {
                    self.furthest = Some((rank, at));
                }
                match self.backtrack() {
                    Some(after) => cursor = after,
                    None => return self.stuck(),
                }
                continue;
            }
            let next = if self.waits_for_another(at) {
                None
            } else {
                self.model.apply(&self.state, &self.calls[at].op)
            };
            let Some(next) = next else {
                cursor = self.next[cursor];
                continue;
            };
            let forced = self.is_forced(at, &next);
            let placed = self.fingerprint ^ hash::of_operation(at);
            if self.seen.insert(placed ^ hash::of_state(&next)) {
                let state = std::mem::replace(&mut self.state, next);
                self.stack.push(Placed { at, state, forced });
                self.fingerprint = placed;
                self.is_placed[at] = true;
                self.lift(at);
                self.reached = self.reached.max(self.stack.len());
                cursor = self.next[HEAD];
            } else if forced {
                // The configuration with this one placed was tried and led nowhere, and so would this.
                match self.backtrack() {
                    Some(after) => cursor = after,
                    None => return self.stuck(),
                }
            } else {
                cursor = self.next[cursor];
            }
        }
        self.cursor = cursor;
        Found::Order(Some(self.stack.iter().map(|placed| placed.at).collect()))
    }

    fn waits_for_another(&self, at: usize) -> bool {
        self.ahead[at].iter().any(|&first| !self.is_placed[first])
    }

    /// Whether an order that goes on from here can as well go on with this one.
    fn is_forced(&self, at: usize, next: &M::State) -> bool {
        if is_broken(Rule::EagerForAll) {
            return *next == self.state;
        }
        self.observes[at]
    }

    fn stuck(&self) -> Found {
        Found::NoOrder { stuck_at: self.furthest.map_or(0, |(_, at)| at) }
    }

    /// Takes back placements up to and including the last that had an alternative; says where to go on.
    fn backtrack(&mut self) -> Option<usize> {
        loop {
            let placed = self.stack.pop()?;
            self.unlift(placed.at);
            self.is_placed[placed.at] = false;
            self.state = placed.state;
            self.fingerprint ^= hash::of_operation(placed.at);
            if !placed.forced {
                return Some(self.next[self.call_node[placed.at]]);
            }
        }
    }

    fn lift(&mut self, at: usize) {
        for node in [self.call_node[at], self.return_node[at]] {
            if node != END {
                let (before, after) = (self.previous[node], self.next[node]);
                self.next[before] = after;
                if after != END {
                    self.previous[after] = before;
                }
            }
        }
    }

    /// The exact reverse of [`Self::lift`], in the reverse order.
    fn unlift(&mut self, at: usize) {
        for node in [self.return_node[at], self.call_node[at]] {
            if node != END {
                let (before, after) = (self.previous[node], self.next[node]);
                self.next[before] = node;
                if after != END {
                    self.previous[after] = node;
                }
            }
        }
    }
}

/// For each operation those that are the same and go before it: open when it is called, and returning
/// earlier.
fn ahead<M: Model>(model: &M, calls: &[&Call<M::Op>], observes: &[bool]) -> Vec<Vec<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut ahead = vec![Vec::new(); calls.len()];
    for (at, call) in calls.iter().enumerate().filter(|&(at, _)| !observes[at]) {
        open.retain(|&other| calls[other].ret > call.call);
        let first = |&&other: &&usize| {
            let other = calls[other];
            same(model, &other.op, &call.op) && returns_first(other.ret, call.ret)
        };
        ahead[at] = open.iter().rev().take(MOST_COMPARED).filter(first).copied().collect();
        open.push(at);
    }
    ahead
}

fn same<M: Model>(model: &M, one: &M::Op, other: &M::Op) -> bool {
    if is_broken(Rule::AllAreSame) {
        return true;
    }
    model.same(one, other)
}

fn returns_first(one: Rank, other: Rank) -> bool {
    if is_broken(Rule::LaterOfSame) {
        return one > other;
    }
    one < other || one == NEVER && other == NEVER
}
