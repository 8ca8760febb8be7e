//! The referee: Wing and Gong's search with a memory of exact configurations, and nothing else.
//!
//! Nothing is placed eagerly, nothing is set aside, nothing is abbreviated, so there is little to be wrong
//! about. Memory grows with the square of the history: it is for small ones.

use std::collections::HashSet;

use super::Found;
use crate::budget::{Exhausted, Meter};
use crate::history::{NEVER, Rank};
use crate::model::{Call, Model};

/// A configuration that is being gone on from: the state, which operations are placed, and which one to try
/// next.
struct Level<S> {
    state: S,
    placed: Vec<u64>,
    next: usize,
    /// The first return among the operations that are not placed.
    limit: Rank,
}

/// Decides by trying everything. The calls are sorted by call.
#[must_use]
pub fn search<M: Model>(model: &M, calls: &[&Call<M::Op>], meter: &mut Meter) -> Found {
    let has = |placed: &[u64], at: usize| placed[at / 64] >> (at % 64) & 1 == 1;
    let limit = |placed: &[u64]| {
        calls
            .iter()
            .enumerate()
            .filter(|&(at, _)| !has(placed, at))
            .map(|(_, call)| call.ret)
            .min()
            .unwrap_or(NEVER)
    };
    let nothing = vec![0_u64; calls.len().div_ceil(64)];
    let mut seen: HashSet<(Vec<u64>, M::State)> = HashSet::new();
    let mut furthest = limit(&nothing);
    let mut order: Vec<usize> = Vec::new();
    let mut levels = vec![Level { state: model.initial(), limit: furthest, placed: nothing, next: 0 }];
    let entry_bytes = size_of::<(Vec<u64>, M::State)>() + calls.len().div_ceil(8) + 64;
    let gave_up = |why: Exhausted, reached: usize| Found::GaveUp { why, reached };
    while let Some(level) = levels.last_mut() {
        if let Err(why) = meter.step() {
            return gave_up(why, order.len());
        }
        furthest = furthest.max(level.limit);
        if level.limit == NEVER {
            return Found::Order(Some(order));
        }
        // Whoever was called after the first return can't come before it.
        let at = level.next;
        let Some(call) = calls.get(at).filter(|call| call.call < level.limit) else {
            levels.pop();
            order.pop();
            continue;
        };
        level.next += 1;
        if has(&level.placed, at) {
            continue;
        }
        let Some(state) = model.apply(&level.state, &call.op) else { continue };
        let mut placed = level.placed.clone();
        placed[at / 64] |= 1 << (at % 64);
        if seen.insert((placed.clone(), state.clone())) {
            if let Err(why) = meter.hold(seen.len(), entry_bytes) {
                return gave_up(why, order.len());
            }
            order.push(at);
            levels.push(Level { state, limit: limit(&placed), placed, next: 0 });
        }
    }
    let stuck_at = calls.iter().position(|call| call.ret == furthest).unwrap_or(0);
    Found::NoOrder { stuck_at }
}
