//! Depth-first search for an order, after Wing and Gong, with Lowe's memory of visited configurations.
//!
//! A configuration is the set of operations placed so far and the register's value. Remembering whole sets costs
//! memory with the square of the history, so a configuration is remembered as a fingerprint: the exclusive or of
//! one 128-bit number per placed operation, mixed with the value. Two different configurations share one with a
//! probability of about 2^-128 a pair; at the 10^8 pairs of configurations that a large budget can hold times
//! itself that is below 10^-21, and every violation is judged again on a few operations besides.
//!
//! The search is strongest where many operations stay open and few orders have to be tried; where many orders
//! are dead ends it is the [`super::frontier`] that answers.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::Found;
use super::problem::{Action, NIL, Problem, Val};
use super::reduce::Reduced;
use crate::budget::{Exhausted, Meter};
use crate::history::{NEVER, Rank};

/// The plain search: nothing set aside, nothing hurried. It is what others are judged by.
#[must_use]
pub fn plain(problem: &Problem, meter: &mut Meter) -> Found {
    Search::new(&Reduced::nothing(problem), false).run(meter)
}

/// The search with unobserved open changes set aside, and with operations that change nothing placed as soon as
/// their answer is right: if any order goes on from here, one does in which they come next, because taking them
/// from their later place to this one changes nobody's answer.
#[must_use]
pub fn reduced(problem: &Problem, meter: &mut Meter) -> Found {
    Search::new(&Reduced::of(problem), true).run(meter)
}

/// An operation on the stack, with what to restore when it is taken back. A forced one has no alternative.
struct Placed {
    slot: usize,
    state: Val,
    spent: u32,
    forced: bool,
}

/// Calls and returns as a doubly linked list, from which placed operations are taken out and put back.
struct Search<'a> {
    reduced: &'a Reduced<'a>,
    eager: bool,
    /// For each node of the list its slot (index into `kept`), whether it is a return, and its rank. Node 0 is
    /// the head.
    nodes: Vec<(usize, bool, Rank)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    call_node: Vec<usize>,
    return_node: Vec<usize>,
}

const HEAD: usize = 0;
/// The end of the list, and "no such node".
const END: usize = usize::MAX;

/// Bytes that one remembered fingerprint takes in the hash set, spare room included.
const FINGERPRINT_BYTES: usize = 34;

impl<'a> Search<'a> {
    fn new(reduced: &'a Reduced<'a>, eager: bool) -> Self {
        let entry = |slot: usize| &reduced.problem.entries[reduced.kept[slot]];
        let slots = reduced.kept.len();
        let mut nodes: Vec<(usize, bool, Rank)> = vec![(END, false, 0)];
        nodes.extend((0..slots).map(|slot| (slot, false, entry(slot).call)));
        nodes.extend((0..slots).filter(|&s| !entry(s).is_open()).map(|slot| (slot, true, entry(slot).ret)));
        nodes[1..].sort_unstable_by_key(|&(_, _, rank)| rank);
        let (mut call_node, mut return_node) = (vec![END; slots], vec![END; slots]);
        for (node, &(slot, is_return, _)) in nodes.iter().enumerate().skip(1) {
            if is_return { return_node[slot] = node } else { call_node[slot] = node }
        }
        let next = (1..nodes.len()).chain([END]).collect();
        let previous = [END].into_iter().chain(0..nodes.len() - 1).collect();
        Self { reduced, eager, nodes, next, previous, call_node, return_node }
    }

    fn run(mut self, meter: &mut Meter) -> Found {
        let mut seen: HashSet<u128, BuildHasherDefault<FingerprintHasher>> = HashSet::default();
        let mut stack: Vec<Placed> = Vec::new();
        let (mut state, mut spent, mut fingerprint) = (NIL, 0_u32, 0_u128);
        let mut cursor = self.next[HEAD];
        let mut deepest = (0, END);
        while cursor != END {
            if let Err(exhausted) = meter.step() {
                return Found::GaveUp(exhausted);
            }
            let (slot, is_return, _) = self.nodes[cursor];
            if !is_return {
                let action = self.reduced.problem.entries[self.reduced.kept[slot]].action;
                let limit = if action.apply(state).is_none() { self.first_return(cursor) } else { NEVER };
                if let Some((to, to_spent)) = self.reduced.apply(action, state, spent, limit) {
                    let placed_fingerprint = fingerprint ^ operation_number(slot);
                    if seen.insert(configuration_number(placed_fingerprint, to, to_spent)) {
                        if meter.hold(seen.capacity(), FINGERPRINT_BYTES).is_err() {
                            return Found::GaveUp(Exhausted::Memory);
                        }
                        let forced = self.eager && to == state && changes_nothing(action);
                        stack.push(Placed { slot, state, spent, forced });
                        (state, spent, fingerprint) = (to, to_spent, placed_fingerprint);
                        self.lift(slot);
                        cursor = self.next[HEAD];
                        continue;
                    }
                    if self.eager && to == state && changes_nothing(action) {
                        // The configuration with this one placed was tried and led nowhere, and so would this.
                        match self.backtrack(&mut stack, &mut state, &mut spent, &mut fingerprint) {
                            Some(after) => cursor = after,
                            None => return self.stuck(deepest.1),
                        }
                        continue;
                    }
                }
                cursor = self.next[cursor];
                continue;
            }
            if stack.len() >= deepest.0 {
                deepest = (stack.len(), slot);
            }
            match self.backtrack(&mut stack, &mut state, &mut spent, &mut fingerprint) {
                Some(after) => cursor = after,
                None => return self.stuck(deepest.1),
            }
        }
        Found::Order
    }

    fn stuck(&self, slot: usize) -> Found {
        Found::NoOrder { stuck_at: self.reduced.kept.get(slot).copied().unwrap_or(0) }
    }

    /// Takes back placements up to and including the last that had an alternative; says where to go on.
    fn backtrack(
        &mut self,
        stack: &mut Vec<Placed>,
        state: &mut Val,
        spent: &mut u32,
        fingerprint: &mut u128,
    ) -> Option<usize> {
        loop {
            let placed = stack.pop()?;
            self.unlift(placed.slot);
            (*state, *spent) = (placed.state, placed.spent);
            *fingerprint ^= operation_number(placed.slot);
            if !placed.forced {
                return Some(self.next[self.call_node[placed.slot]]);
            }
        }
    }

    /// The rank of the first return that is still in the list after `cursor`, which is before any of them.
    fn first_return(&self, mut cursor: usize) -> Rank {
        while cursor != END {
            let (_, is_return, rank) = self.nodes[cursor];
            if is_return {
                return rank;
            }
            cursor = self.next[cursor];
        }
        NEVER
    }

    fn lift(&mut self, slot: usize) {
        for node in [self.call_node[slot], self.return_node[slot]] {
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
    fn unlift(&mut self, slot: usize) {
        for node in [self.return_node[slot], self.call_node[slot]] {
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

fn changes_nothing(action: Action) -> bool {
    matches!(action, Action::Read(_) | Action::Refused(_))
}

/// A fixed pseudo-random number for each operation (splitmix64, twice).
fn operation_number(slot: usize) -> u128 {
    let seed = u64::try_from(slot).unwrap_or(u64::MAX);
    (u128::from(mix(seed ^ 0x6a09_e667_f3bc_c908)) << 64) | u128::from(mix(seed ^ 0xbb67_ae85_84ca_a73b))
}

fn configuration_number(placed: u128, state: Val, spent: u32) -> u128 {
    let register = (u64::from(state) << 32) | u64::from(spent);
    let low = mix(register ^ 0x3c6e_f372_fe94_f82b);
    let high = mix(register ^ 0xa54f_f53a_5f1d_36f1);
    placed ^ ((u128::from(high) << 64) | u128::from(low))
}

fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A fingerprint is as good as random already; half of it is the hash.
#[derive(Default)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0);
    }
}
