//! Depth-first search for an order, after Wing and Gong, with Lowe's memory of visited configurations.
//!
//! A configuration is the set of operations placed so far and the register's value. Remembering whole sets
//! costs memory with the square of the history, so a configuration is remembered as a fingerprint: the
//! exclusive or of one 128-bit number per placed operation, mixed with the value. Two different
//! configurations share one with a probability of about 2^-128 a pair; at the 10^8 pairs of configurations
//! that a large budget can hold times itself that is below 10^-21, and every violation is judged again on a
//! few operations besides.
//!
//! The search is strongest where many operations stay open and few orders have to be tried; where many orders
//! are dead ends it is the [`super::frontier`] that answers. Four prunings, none of them in the plain search:
//!
//! 1. Unobserved open changes are set aside, as [`super::reduce`] proves.
//! 2. An operation that changes nothing and whose answer is right is placed at once: if any order goes on
//!    from here, one does in which it comes next, because taking it from its later place to this one changes
//!    nobody's answer.
//! 3. Of two changes that do the same, the one that was called first and need not return later goes first
//!    (*twins*, `Twins`): in an order that has them the other way round they can be exchanged.
//! 4. A change of unknown fate is followed at once by an operation that needs its value or by a refusal that
//!    must not find the value before it (*lazy*, as [`super::frontier`] proves). What may follow is a part of
//!    the configuration.

use std::collections::HashMap;

use super::mutant::{self, Mutant};
use super::problem::{Action, NIL, Problem, Val, index};
use super::reduce::Reduced;
use super::{Found, Reached, Searched};
use crate::budget::Meter;
use crate::hash::{self, FINGERPRINT_BYTES, Fingerprints, mix, wide};
use crate::history::{NEVER, Rank};

/// The plain search: nothing set aside, nothing hurried. It is what others are judged by.
#[must_use]
pub fn plain(problem: &Problem, meter: &mut Meter) -> Found {
    Search::new(&Reduced::nothing(problem), false).run(meter).found
}

/// The search with its prunings.
#[must_use]
pub fn reduced(problem: &Problem, meter: &mut Meter) -> Found {
    search(problem, meter).found
}

/// The search with its prunings, with the order that it found and how far it got.
#[must_use]
pub fn search(problem: &Problem, meter: &mut Meter) -> Searched {
    Search::new(&Reduced::of(problem), true).run(meter)
}

/// An operation on the stack, with what to restore when it is taken back. A forced one has no alternative.
struct Placed {
    slot: u32,
    state: Val,
    spent: u32,
    forced: bool,
}

/// A call or a return.
#[derive(Clone, Copy)]
struct Node {
    slot: u32,
    is_return: bool,
    rank: Rank,
}

/// Calls and returns as a doubly linked list, from which placed operations are taken out and put back. Node 0
/// is the head; slots are indices into `kept`.
struct Search<'a> {
    reduced: &'a Reduced<'a>,
    pruned: bool,
    nodes: Vec<Node>,
    next: Vec<u32>,
    previous: Vec<u32>,
    call_node: Vec<u32>,
    return_node: Vec<u32>,
    twins: Twins,
    placed: Vec<bool>,
    stack: Vec<Placed>,
    state: Val,
    spent: u32,
    fingerprint: u128,
}

const HEAD: u32 = 0;
/// The end of the list, and "no such node".
const END: u32 = u32::MAX;

impl<'a> Search<'a> {
    fn new(reduced: &'a Reduced<'a>, pruned: bool) -> Self {
        let slots = reduced.kept.len();
        let entry = |slot: u32| &reduced.problem.entries[reduced.kept[index(slot)]];
        let every = || 0..number(slots);
        let mut nodes = vec![Node { slot: END, is_return: false, rank: 0 }];
        nodes.extend(every().map(|slot| Node { slot, is_return: false, rank: entry(slot).call }));
        let returned = every().filter(|&slot| !entry(slot).is_open());
        nodes.extend(returned.map(|slot| Node { slot, is_return: true, rank: entry(slot).ret }));
        nodes[1..].sort_unstable_by_key(|node| node.rank);
        let (mut call_node, mut return_node) = (vec![END; slots], vec![END; slots]);
        for (node, &Node { slot, is_return, .. }) in nodes.iter().enumerate().skip(1) {
            let of_slot = if is_return { &mut return_node } else { &mut call_node };
            of_slot[index(slot)] = number(node);
        }
        let next = (1..number(nodes.len())).chain([END]).collect();
        let previous = [END].into_iter().chain(0..number(nodes.len() - 1)).collect();
        let twins = if pruned { Twins::of(reduced) } else { Twins::default() };
        Self {
            reduced,
            pruned,
            nodes,
            next,
            previous,
            call_node,
            return_node,
            twins,
            placed: vec![false; slots],
            stack: Vec::new(),
            state: NIL,
            spent: 0,
            fingerprint: 0,
        }
    }

    fn action(&self, slot: u32) -> Action {
        self.reduced.problem.entries[self.reduced.kept[index(slot)]].action
    }

    fn is_open(&self, slot: u32) -> bool {
        self.return_node[index(slot)] == END
    }

    /// The value that the change of unknown fate on top of the stack replaced, if one is there.
    fn lazy(&self) -> Option<Val> {
        self.stack.last().filter(|placed| self.is_open(placed.slot)).map(|placed| placed.state)
    }

    fn run(mut self, meter: &mut Meter) -> Searched {
        let mut seen = Fingerprints::default();
        let mut cursor = self.next[index(HEAD)];
        let mut deepest = (0, END);
        while cursor != END {
            if let Err(exhausted) = meter.step() {
                return self.ended(Found::GaveUp(exhausted), deepest.0, seen.len());
            }
            let Node { slot, is_return, .. } = self.nodes[index(cursor)];
            let onwards = if is_return {
                if self.stack.len() >= deepest.0 {
                    deepest = (self.stack.len(), slot);
                }
                self.backtrack()
            } else {
                if seen.len() == seen.capacity()
                    && let Err(exhausted) = meter.hold(seen.capacity().max(2) * 2, FINGERPRINT_BYTES)
                {
                    return self.ended(Found::GaveUp(exhausted), deepest.0, seen.len());
                }
                self.try_next(slot, cursor, &mut seen)
            };
            match onwards {
                Some(node) => cursor = node,
                None => return self.stuck(deepest, seen.len()),
            }
        }
        let order = self.order();
        let explained = self.reduced.kept.len();
        Searched { order: Some(order), ..self.ended(Found::Order, explained, seen.len()) }
    }

    /// Places the operation of `slot` if it can come next; says where to go on.
    fn try_next(&mut self, slot: u32, cursor: u32, seen: &mut Fingerprints) -> Option<u32> {
        let next = Some(self.next[index(cursor)]);
        let action = self.action(slot);
        if self.pruned && self.twins.must_wait(slot, &self.placed) {
            return next;
        }
        let lazy = if self.pruned { self.lazy() } else { None };
        let is_needed = |left| action.required() == Some(self.state) || action == Action::Refused(left);
        if lazy.is_some_and(|left| !is_needed(left))
            || (self.is_open(slot) && self.pruned && action.written() == Some(self.state))
        {
            return next;
        }
        let limit = if action.apply(self.state).is_none() { self.first_return(cursor) } else { NEVER };
        let Some((to, to_spent)) = self.reduced.apply(action, self.state, self.spent, limit) else {
            return next;
        };
        let forced = self.pruned && to == self.state && action.changes_nothing();
        let fingerprint = self.fingerprint ^ hash::of_operation(index(slot));
        let left = (self.pruned && self.is_open(slot)).then_some(self.state);
        if seen.insert(configuration_number(fingerprint, to, to_spent, left)) {
            self.stack.push(Placed { slot, state: self.state, spent: self.spent, forced });
            (self.state, self.spent, self.fingerprint) = (to, to_spent, fingerprint);
            self.lift(slot);
            return Some(self.next[index(HEAD)]);
        }
        // With a forced one placed the configuration was tried and led nowhere, and so would this.
        if forced { self.backtrack() } else { next }
    }

    fn stuck(&self, (explained, slot): (usize, u32), configurations: usize) -> Searched {
        let stuck_at = self.reduced.kept.get(index(slot)).copied().unwrap_or(0);
        self.ended(Found::NoOrder { stuck_at }, explained, configurations)
    }

    fn ended(&self, found: Found, explained: usize, configurations: usize) -> Searched {
        let reached = Reached { explained, of: self.reduced.kept.len(), configurations };
        Searched { found, order: None, reached }
    }

    /// What is on the stack, with the set-aside changes that were needed.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.stack.len());
        let after = self.stack.iter().skip(1).map(|placed| placed.spent).chain([self.spent]);
        for (placed, spent_after) in self.stack.iter().zip(after) {
            if self.action(placed.slot).apply(placed.state).is_none() {
                order.extend(self.reduced.excuse(placed.state, placed.spent, spent_after));
            }
            order.push(self.reduced.kept[index(placed.slot)]);
        }
        order
    }

    /// Takes back placements up to and including the last that had an alternative; says where to go on.
    fn backtrack(&mut self) -> Option<u32> {
        loop {
            let placed = self.stack.pop()?;
            self.unlift(placed.slot);
            (self.state, self.spent) = (placed.state, placed.spent);
            self.fingerprint ^= hash::of_operation(index(placed.slot));
            if !placed.forced {
                return Some(self.next[index(self.call_node[index(placed.slot)])]);
            }
        }
    }

    /// The rank of the first return that is still in the list after `cursor`, which is before any of them.
    fn first_return(&self, mut cursor: u32) -> Rank {
        while cursor != END {
            let node = self.nodes[index(cursor)];
            if node.is_return {
                return node.rank;
            }
            cursor = self.next[index(cursor)];
        }
        NEVER
    }

    fn lift(&mut self, slot: u32) {
        self.placed[index(slot)] = true;
        for node in [self.call_node[index(slot)], self.return_node[index(slot)]] {
            if node != END {
                let (before, after) = (self.previous[index(node)], self.next[index(node)]);
                self.next[index(before)] = after;
                if after != END {
                    self.previous[index(after)] = before;
                }
            }
        }
    }

    /// The exact reverse of [`Self::lift`], in the reverse order.
    fn unlift(&mut self, slot: u32) {
        self.placed[index(slot)] = false;
        for node in [self.return_node[index(slot)], self.call_node[index(slot)]] {
            if node != END {
                let (before, after) = (self.previous[index(node)], self.next[index(node)]);
                self.next[index(before)] = node;
                if after != END {
                    self.previous[index(after)] = node;
                }
            }
        }
    }
}

/// For each change the last ones before it that do the same: one that returned no later, and, for a change of
/// unknown fate, one of unknown fate. As long as they are not placed there is no need to place this one.
#[derive(Default)]
struct Twins {
    elders: Vec<[u32; 2]>,
}

/// Twins looked at for each change.
const TWINS_LOOKED_AT: usize = 8;

impl Twins {
    fn of(reduced: &Reduced<'_>) -> Self {
        let mut families: HashMap<Action, (Vec<u32>, u32)> = HashMap::new();
        let elders = reduced.kept.iter().zip(0..).map(|(&at, slot)| {
            let entry = &reduced.problem.entries[at];
            if entry.action.changes_nothing() || mutant::is(Mutant::NoTwins) {
                return [END; 2];
            }
            let (closed, open) = families.entry(entry.action).or_insert((Vec::new(), END));
            let returns_no_later = |&&elder: &&u32| {
                reduced.problem.entries[reduced.kept[index(elder)]].ret < entry.ret
                    || mutant::is(Mutant::TwinsOfAnyReturn)
            };
            let elder = closed.iter().rev().take(TWINS_LOOKED_AT).find(returns_no_later).copied();
            if entry.is_open() {
                [elder.unwrap_or(END), std::mem::replace(open, slot)]
            } else {
                closed.push(slot);
                [elder.unwrap_or(END), END]
            }
        });
        Self { elders: elders.collect() }
    }

    fn must_wait(&self, slot: u32, placed: &[bool]) -> bool {
        self.elders[index(slot)].iter().any(|&elder| elder != END && !placed[index(elder)])
    }
}

/// Nodes and slots are fewer than the ranks, which are 32 bits wide.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(END)
}

fn configuration_number(placed: u128, state: Val, spent: u32, left: Option<Val>) -> u128 {
    let left = left.filter(|_| !mutant::is(Mutant::LazyForgotten)).map_or(0, |left| mix(u64::from(left)));
    let register = ((u64::from(state) << 32) | u64::from(spent)) ^ left;
    placed ^ wide(register, 0xa54f_f53a_5f1d_36f1)
}
