//! Breadth-first search over a sliding window: all configurations that can explain the history so far.
//!
//! The events are taken in the order of time. A configuration is the register's value and which of the currently
//! open operations are already placed. At each return the configurations that have not placed the returning
//! operation are carried on, placing open operations one by one, just until they have (Lowe's just-in-time
//! linearization, 2017); those that can't are dropped. When none is left, no order exists. Memory is in
//! proportion to the window and the width of the frontier, not to the history.
//!
//! Three prunings keep the frontier narrow; each is sound with refused compare-and-sets:
//!
//! 1. An operation that changes nothing and whose answer is right is placed at once. From any order that goes on
//!    from here, taking it from its later place to this one changes no other answer.
//! 2. A value with a single source never comes back. A configuration that leaves it while a read of it is still
//!    to come, or by anything else than the compare-and-set that is known to have taken it, can't be completed.
//!    (Reads already called are placed by rule 1.)
//! 3. Unobserved open changes are set aside, as [`super::reduce`] proves; of two configurations that differ only
//!    in how many set-aside writes they have spent, the thriftier one can do whatever the other can.
//!
//! "An unread write may be placed together with the next one" would be sound without refused compare-and-sets
//! and is not with them (the unread write may be the only reason for a refusal), so it is not used.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::Found;
use super::problem::{Action, NIL, Problem, Val, index};
use super::reduce::Reduced;
use crate::budget::{Exhausted, Meter};
use crate::history::Rank;

/// Decides by the frontier, with a window as wide as this history needs.
#[must_use]
pub fn search(problem: &Problem, meter: &mut Meter) -> Found {
    let reduced = Reduced::of(problem);
    match window(&reduced).div_ceil(64) {
        0..=1 => Frontier::<1>::new(&reduced).run(meter),
        2 => Frontier::<2>::new(&reduced).run(meter),
        3..=4 => Frontier::<4>::new(&reduced).run(meter),
        5..=8 => Frontier::<8>::new(&reduced).run(meter),
        9..=16 => Frontier::<16>::new(&reduced).run(meter),
        _ => Found::GaveUp(Exhausted::Window),
    }
}

/// Calls and returns in the order of time: (rank, index into the problem, is a return).
fn events(reduced: &Reduced<'_>) -> Vec<(Rank, usize, bool)> {
    let entries = &reduced.problem.entries;
    let calls = reduced.kept.iter().map(|&at| (entries[at].call, at, false));
    let returned = reduced.kept.iter().filter(|&&at| !entries[at].is_open());
    let returns = returned.map(|&at| (entries[at].ret, at, true));
    let mut events: Vec<_> = calls.chain(returns).collect();
    events.sort_unstable();
    events
}

/// The most operations that are open at once, if those that never return are never released.
fn window(reduced: &Reduced<'_>) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for (_, _, is_return) in events(reduced) {
        if is_return {
            open -= 1
        } else {
            open += 1
        }
        most = most.max(open);
    }
    most
}

/// Which slots of the window are placed.
type Mask<const N: usize> = [u64; N];

fn has<const N: usize>(mask: &Mask<N>, slot: usize) -> bool {
    mask[slot / 64] >> (slot % 64) & 1 == 1
}

fn set<const N: usize>(mask: &mut Mask<N>, slot: usize) {
    mask[slot / 64] |= 1 << (slot % 64);
}

fn clear<const N: usize>(mask: &mut Mask<N>, slot: usize) {
    mask[slot / 64] &= !(1 << (slot % 64));
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Config<const N: usize> {
    placed: Mask<N>,
    state: Val,
}

/// Configurations, each with the fewest set-aside writes spent to reach it.
type Configs<const N: usize> = HashMap<Config<N>, u32, BuildHasherDefault<Fx>>;

struct Frontier<'a, const N: usize> {
    reduced: &'a Reduced<'a>,
    configs: Vec<(Config<N>, u32)>,
    /// The operation in each slot of the window.
    slots: Vec<Option<usize>>,
    free: Vec<usize>,
    /// The occupied slots; those of operations that never return apart, because they are released early.
    occupied: Vec<usize>,
    open_slots: Vec<usize>,
    slot_of: Vec<usize>,
    /// For each value with a single source: the latest call of a read of it, and what is known to take it away.
    last_read: Vec<Option<Rank>>,
    taken_by: Vec<Option<usize>>,
}

impl<'a, const N: usize> Frontier<'a, N> {
    fn new(reduced: &'a Reduced<'a>) -> Self {
        let problem = reduced.problem;
        let mut last_read = vec![None; problem.values()];
        let mut taken_by = vec![None; problem.values()];
        for (at, entry) in problem.entries.iter().enumerate().filter(|(_, entry)| !entry.is_open()) {
            match entry.action {
                Action::Read(value) if problem.is_single_source(value) => {
                    last_read[index(value)] = Some(entry.call);
                }
                Action::Cas { from, .. } if problem.is_single_source(from) => {
                    taken_by[index(from)] = Some(at);
                }
                _ => {}
            }
        }
        Self {
            reduced,
            configs: vec![(Config { placed: [0; N], state: NIL }, 0)],
            slots: Vec::new(),
            free: Vec::new(),
            occupied: Vec::new(),
            open_slots: Vec::new(),
            slot_of: vec![usize::MAX; problem.entries.len()],
            last_read,
            taken_by,
        }
    }

    fn run(mut self, meter: &mut Meter) -> Found {
        for (rank, at, is_return) in events(self.reduced) {
            if is_return {
                match self.on_return(at, rank, meter) {
                    Ok(()) if self.configs.is_empty() => return Found::NoOrder { stuck_at: at },
                    Ok(()) => {}
                    Err(exhausted) => return Found::GaveUp(exhausted),
                }
            } else {
                self.on_call(at);
            }
        }
        Found::Order
    }

    fn entry_action(&self, at: usize) -> Action {
        self.reduced.problem.entries[at].action
    }

    fn on_call(&mut self, at: usize) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(at);
        self.slot_of[at] = slot;
        self.occupied.push(slot);
        if self.reduced.problem.entries[at].is_open() {
            self.open_slots.push(slot);
        }
        let action = self.entry_action(at);
        if matches!(action, Action::Read(_) | Action::Refused(_)) {
            for (config, _) in &mut self.configs {
                if action.apply(config.state).is_some() {
                    set(&mut config.placed, slot);
                }
            }
        }
    }

    /// Carries every configuration on until it has placed the returning operation, then forgets its slot.
    fn on_return(&mut self, at: usize, rank: Rank, meter: &mut Meter) -> Result<(), Exhausted> {
        let slot = self.slot_of[at];
        let mut work: Vec<(Config<N>, u32)> = Vec::new();
        let mut done = Configs::<N>::default();
        let mut seen = Configs::<N>::default();
        for (config, spent) in std::mem::take(&mut self.configs) {
            meter.step()?;
            if has(&config.placed, slot) {
                keep_thriftiest(&mut done, config, spent);
            } else if keep_thriftiest(&mut seen, config, spent) {
                work.push((config, spent));
            }
        }
        while let Some((config, spent)) = work.pop() {
            if seen.get(&config).is_some_and(|&fewest| fewest < spent) {
                continue;
            }
            for &other in &self.occupied {
                if has(&config.placed, other) {
                    continue;
                }
                meter.step()?;
                let Some((next, spent)) = self.place(config, spent, other, rank) else { continue };
                if has(&next.placed, slot) {
                    keep_thriftiest(&mut done, next, spent);
                } else if keep_thriftiest(&mut seen, next, spent) {
                    work.push((next, spent));
                }
            }
            let bytes = size_of::<(Config<N>, u32)>() + 1;
            meter.hold(seen.capacity() + done.capacity() + work.capacity(), bytes)?;
        }
        self.configs = done.into_iter().collect();
        self.release(slot);
        self.release_open();
        Ok(())
    }

    /// The configuration after placing the operation of `slot`, and after it everything that then changes
    /// nothing; none when that is not possible or leads nowhere.
    fn place(&self, config: Config<N>, spent: u32, slot: usize, now: Rank) -> Option<(Config<N>, u32)> {
        let at = self.slots[slot]?;
        let (state, spent) = self.reduced.apply(self.entry_action(at), config.state, spent, now)?;
        let mut next = Config { placed: config.placed, state };
        set(&mut next.placed, slot);
        if state == config.state {
            return Some((next, spent));
        }
        if let Some(left) = self.last_read.get(index(config.state)) {
            let still_needed = left.is_some_and(|last_read| last_read > now);
            let taken_otherwise = self.taken_by[index(config.state)].is_some_and(|by| by != at);
            if still_needed || taken_otherwise {
                return None;
            }
        }
        for &other in &self.occupied {
            let Some(action) = self.slots[other].map(|at| self.entry_action(at)) else { continue };
            let changes_nothing = matches!(action, Action::Read(_) | Action::Refused(_));
            if changes_nothing && action.apply(state).is_some() {
                set(&mut next.placed, other);
            }
        }
        Some((next, spent))
    }

    fn release(&mut self, slot: usize) {
        for (config, _) in &mut self.configs {
            clear(&mut config.placed, slot);
        }
        self.slots[slot] = None;
        self.occupied.retain(|&occupied| occupied != slot);
        self.free.push(slot);
    }

    /// An operation that never returns leaves the window once every configuration has placed it.
    fn release_open(&mut self) {
        if self.open_slots.is_empty() || self.configs.is_empty() {
            return;
        }
        let mut everywhere = [u64::MAX; N];
        for (config, _) in &self.configs {
            for (all, placed) in everywhere.iter_mut().zip(config.placed) {
                *all &= placed;
            }
        }
        let released: Vec<usize> =
            self.open_slots.iter().copied().filter(|&slot| has(&everywhere, slot)).collect();
        self.open_slots.retain(|&slot| !has(&everywhere, slot));
        for slot in released {
            self.release(slot);
        }
    }
}

/// Notes a configuration; says whether it is new or cheaper than before.
fn keep_thriftiest<const N: usize>(configs: &mut Configs<N>, config: Config<N>, spent: u32) -> bool {
    match configs.entry(config) {
        Slot::Vacant(vacant) => {
            vacant.insert(spent);
            true
        }
        Slot::Occupied(mut known) => {
            let cheaper = spent < *known.get();
            if cheaper {
                known.insert(spent);
            }
            cheaper
        }
    }
}

/// A fast multiplicative hash; keys are not chosen by anyone hostile. Fixed, so that runs repeat exactly.
#[derive(Default)]
struct Fx(u64);

impl Fx {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
}

impl Hasher for Fx {
    fn finish(&self) -> u64 {
        self.0.rotate_left(20)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(u64::try_from(value).unwrap_or(u64::MAX));
    }
}
