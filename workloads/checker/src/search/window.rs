//! What the frontier search holds beside its configurations: the operations that are open, the states by
//! number, what each operation makes of each state, and how configurations came about.

use super::sabotage::{Rule, is_broken};
use crate::hash::FastMap;
use crate::history::{NEVER, Rank};
use crate::model::Model;

/// An operation in the window.
struct Slot<O> {
    at: usize,
    op: O,
    ret: Rank,
    observes: bool,
    /// Slots of operations that are the same and return earlier.
    ahead: Vec<usize>,
}

/// How a configuration came about: the last placement, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(u32);

impl Link {
    pub(super) const START: Self = Self(u32::MAX);

    fn index(self) -> Option<usize> {
        if self == Self::START { None } else { usize::try_from(self.0).ok() }
    }
}

/// A table of transitions holds this many states before those that nobody stands on are forgotten.
const FIRST_STATES: usize = 256;
const FIRST_LINKS: usize = 1 << 12;

/// Not looked at yet, and impossible; other numbers are states.
const UNKNOWN: u32 = u32::MAX;
const IMPOSSIBLE: u32 = u32::MAX - 1;

pub(super) struct Window<'m, M: Model> {
    model: &'m M,
    slots: Vec<Option<Slot<M::Op>>>,
    free: Vec<usize>,
    occupied: Vec<usize>,
    observing: Vec<usize>,
    open: usize,
    slot_of: FastMap<usize, usize>,
    states: Vec<M::State>,
    numbers: FastMap<M::State, u32>,
    /// What the states hold beside their size.
    held_bytes: usize,
    /// For each state what the operation of each slot makes of it.
    transitions: Vec<Vec<u32>>,
    most_states: usize,
    /// The placement before, and what was placed. None when nobody asks for an order.
    links: Option<Vec<(Link, usize)>>,
    most_links: usize,
}

fn index(number: u32) -> usize {
    // States are numbered densely from 0 and fit an address space that holds them.
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'m, M: Model> Window<'m, M> {
    pub(super) fn new(model: &'m M, want_order: bool) -> Self {
        let mut window = Self {
            model,
            slots: Vec::new(),
            free: Vec::new(),
            occupied: Vec::new(),
            observing: Vec::new(),
            open: 0,
            slot_of: FastMap::default(),
            states: Vec::new(),
            numbers: FastMap::default(),
            held_bytes: 0,
            transitions: Vec::new(),
            most_states: FIRST_STATES,
            links: want_order.then(Vec::new),
            most_links: FIRST_LINKS,
        };
        window.number(model.initial());
        window
    }

    /// The slot that the next operation will get.
    pub(super) fn free_slot(&self) -> usize {
        self.free.last().copied().unwrap_or(self.slots.len())
    }

    /// An operation is called.
    pub(super) fn enter(&mut self, at: usize, op: M::Op, ret: Rank) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let observes = self.model.observes(&op);
        let mut ahead = Vec::new();
        for &other in self.occupied.iter().filter(|_| !observes) {
            let Some(twin) = self.slots[other].as_mut() else { continue };
            if twin.observes || !is_same(self.model, &op, &twin.op) {
                continue;
            }
            if is_first((twin.ret, twin.at), (ret, at)) { ahead.push(other) } else { twin.ahead.push(slot) }
        }
        self.transitions.iter_mut().filter_map(|row| row.get_mut(slot)).for_each(|to| *to = UNKNOWN);
        self.slots[slot] = Some(Slot { at, op, ret, observes, ahead });
        self.slot_of.insert(at, slot);
        self.occupied.push(slot);
        self.open += usize::from(ret == NEVER);
        if observes {
            self.observing.push(slot);
        }
        slot
    }

    /// An operation is placed everywhere.
    pub(super) fn leave(&mut self, slot: usize) {
        let Some(gone) = self.slots[slot].take() else { return };
        self.slot_of.remove(&gone.at);
        self.open -= usize::from(gone.ret == NEVER);
        self.occupied.retain(|&occupied| occupied != slot);
        self.observing.retain(|&observing| observing != slot);
        for &other in &self.occupied {
            if let Some(other) = self.slots[other].as_mut() {
                other.ahead.retain(|&ahead| ahead != slot);
            }
        }
        self.free.push(slot);
    }

    fn slot(&self, slot: usize) -> &Slot<M::Op> {
        self.slots[slot].as_ref().expect("only occupied slots are asked for")
    }

    pub(super) fn slot_of(&self, at: usize) -> Option<usize> {
        self.slot_of.get(&at).copied()
    }

    pub(super) fn id(&self, slot: usize) -> usize {
        self.slot(slot).at
    }

    pub(super) fn ret(&self, slot: usize) -> Rank {
        self.slot(slot).ret
    }

    pub(super) fn observes(&self, slot: usize) -> bool {
        self.slot(slot).observes
    }

    pub(super) fn ahead(&self, slot: usize) -> &[usize] {
        &self.slot(slot).ahead
    }

    pub(super) fn occupied(&self) -> impl Iterator<Item = usize> {
        self.occupied.iter().copied()
    }

    pub(super) fn observing(&self) -> &[usize] {
        &self.observing
    }

    /// Whether there is an operation that never returns.
    pub(super) fn has_open(&self) -> bool {
        self.open > 0
    }

    pub(super) fn state(&self, number: u32) -> &M::State {
        &self.states[index(number)]
    }

    fn number(&mut self, state: M::State) -> u32 {
        if let Some(&number) = self.numbers.get(&state) {
            return number;
        }
        let number = u32::try_from(self.states.len()).unwrap_or(IMPOSSIBLE - 1);
        self.held_bytes += self.model.held_bytes(&state);
        self.numbers.insert(state.clone(), number);
        self.states.push(state);
        self.transitions.push(vec![UNKNOWN; self.slots.len()]);
        number
    }

    /// What the operation of `slot` makes of a state.
    pub(super) fn apply(&mut self, state: u32, slot: usize) -> Option<u32> {
        let known = self.transitions[index(state)].get(slot).copied().unwrap_or(UNKNOWN);
        let to = if known == UNKNOWN {
            let to = self.model.apply(&self.states[index(state)], &self.slot(slot).op);
            let to = to.map_or(IMPOSSIBLE, |to| self.number(to));
            let row = &mut self.transitions[index(state)];
            if row.len() <= slot {
                row.resize(slot + 1, UNKNOWN);
            }
            row[slot] = to;
            to
        } else {
            known
        };
        (to != IMPOSSIBLE).then_some(to)
    }

    pub(super) fn states_are_many(&self) -> bool {
        self.states.len() > self.most_states
    }

    /// Keeps the states that are `live` only; says the new number of each.
    pub(super) fn compact_states(&mut self, live: &[u32]) -> Vec<u32> {
        let mut new = vec![UNKNOWN; self.states.len()];
        let old = std::mem::take(&mut self.states);
        self.numbers.clear();
        self.transitions.clear();
        self.held_bytes = 0;
        for &number in live {
            if new[index(number)] == UNKNOWN {
                new[index(number)] = self.number(old[index(number)].clone());
            }
        }
        self.most_states = FIRST_STATES + 2 * self.states.len();
        live.iter().map(|&number| new[index(number)]).collect()
    }

    /// A placement after another.
    pub(super) fn linked(&mut self, before: Link, slot: usize) -> Link {
        let at = self.slot(slot).at;
        let Some(links) = &mut self.links else { return before };
        links.push((before, at));
        Link(u32::try_from(links.len() - 1).unwrap_or(Link::START.0 - 1))
    }

    /// The placements that end with `last`.
    pub(super) fn order(&self, mut last: Link) -> Option<Vec<usize>> {
        let links = self.links.as_ref()?;
        let mut order = Vec::new();
        while let Some(&(before, at)) = last.index().and_then(|last| links.get(last)) {
            order.push(at);
            last = before;
        }
        order.reverse();
        Some(order)
    }

    pub(super) fn links_are_many(&self) -> bool {
        self.links.as_ref().is_some_and(|links| links.len() > self.most_links)
    }

    /// Keeps the placements only that lead to `live` ones; says the new number of each.
    pub(super) fn compact_links(&mut self, live: &[Link]) -> Vec<Link> {
        let links = self.links.take().unwrap_or_default();
        let mut kept = vec![false; links.len()];
        for mut link in live.iter().copied() {
            while let Some(at) = link.index().filter(|&at| !kept[at]) {
                kept[at] = true;
                link = links[at].0;
            }
        }
        let mut new = vec![Link::START; links.len()];
        let mut compacted: Vec<(Link, usize)> = Vec::new();
        for (at, &(before, placed)) in links.iter().enumerate().filter(|&(at, _)| kept[at]) {
            // What came before has a lower number, so it is renumbered already.
            let before = before.index().map_or(Link::START, |before| new[before]);
            new[at] = Link(u32::try_from(compacted.len()).unwrap_or(Link::START.0 - 1));
            compacted.push((before, placed));
        }
        self.most_links = FIRST_LINKS + 2 * compacted.len();
        self.links = Some(compacted);
        live.iter().map(|link| link.index().map_or(Link::START, |at| new[at])).collect()
    }

    /// Roughly what states and placements take.
    pub(super) fn bytes(&self) -> usize {
        let state = 2 * size_of::<M::State>() + 64 + 4 * self.slots.len();
        let links = self.links.as_ref().map_or(0, Vec::len);
        let states = self.states.len().saturating_mul(state).saturating_add(self.held_bytes);
        states.saturating_add(links * size_of::<(Link, usize)>())
    }
}

/// Whether they do the same.
fn is_same<M: Model>(model: &M, one: &M::Op, other: &M::Op) -> bool {
    if is_broken(Rule::AllAreSame) {
        return true;
    }
    model.same(one, other)
}

/// Whether of two that are the same the first goes first: by return, then by place.
fn is_first(one: (Rank, usize), other: (Rank, usize)) -> bool {
    if is_broken(Rule::LaterOfSame) {
        return one > other;
    }
    one < other
}
