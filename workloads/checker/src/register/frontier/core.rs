//! The frontier itself: what happens to the configurations at a call and at a return.

use super::super::problem::{Action, NIL, Val};
use super::opens::Opens;
use super::sets::{ClassId, EMPTY, Sets};
use super::table::{Config, Mask, Table, clear, has, is_empty, set, slots, without};
use super::trail::{ROOT, Trail};
use crate::budget::{Exhausted, Meter};
use crate::history::Rank;
use crate::register::mutant::{self, Mutant};

/// What is known of the operations that are called later than everything that the frontier has seen.
pub(super) trait Ahead {
    /// Of the coming reads of `value` and compare-and-sets from it, which all happen, the one that is called
    /// first: the rank of its return, and the rank of the first call that comes and could write the value.
    fn need_of(&mut self, value: Val) -> Option<Need>;

    /// The rank of the first call that comes and could write `value`, [`crate::history::NEVER`] for none.
    fn next_source(&mut self, value: Val) -> Rank;
}

/// A coming operation that needs some value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) ret: Rank,
}

/// An operation in the window.
#[derive(Clone, Copy)]
struct Member<const N: usize> {
    op: u32,
    action: Action,
    ret: Rank,
    /// Members that do the same and return earlier: they go first.
    elders: Mask<N>,
}

pub(super) struct Core<const N: usize> {
    configs: Vec<Config<N>>,
    table: Table<N>,
    members: Vec<Member<N>>,
    occupied: Mask<N>,
    /// Of these, the ones that change nothing.
    quiet: Mask<N>,
    opens: Opens,
    sets: Sets,
    trail: Trail,
    /// Results of the search for ways to a value, kept for its memory.
    ways: Vec<Config<N>>,
}

/// Sets that are let be before they are swept.
const FEW_SETS: usize = 1 << 10;

impl<const N: usize> Core<N> {
    pub(super) fn new(keeps_order: bool) -> Self {
        Self {
            configs: vec![Config { placed: [0; N], state: NIL, used: EMPTY, node: ROOT }],
            table: Table::new(),
            members: Vec::new(),
            occupied: [0; N],
            quiet: [0; N],
            opens: Opens::default(),
            sets: Sets::new(),
            trail: Trail::new(keeps_order),
            ways: Vec::new(),
        }
    }

    /// Configurations held.
    pub(super) fn width(&self) -> usize {
        self.configs.len().max(self.table.items.len())
    }

    /// An order that explains everything so far, if orders are kept and there is one.
    pub(super) fn order(&self) -> Option<Vec<usize>> {
        self.configs.first().map(|config| self.trail.order(config.node))
    }

    fn bytes_beside_table(&self) -> usize {
        self.configs.capacity() * size_of::<Config<N>>()
            + self.trail.bytes()
            + self.sets.bytes()
            + self.opens.bytes()
    }

    /// A change of unknown fate is called.
    pub(super) fn call_open(&mut self, op: u32, action: Action) {
        self.opens.add(op, action);
    }

    /// An operation is called that will return at `ret`.
    pub(super) fn call(&mut self, op: u32, action: Action, ret: Rank) -> Result<(), Exhausted> {
        let free = (0..N * 64).find(|&slot| !has(&self.occupied, slot)).ok_or(Exhausted::Window)?;
        let mut elders = [0; N];
        if !action.changes_nothing() && !mutant::is(Mutant::NoTwins) {
            for slot in slots(self.occupied) {
                let other = &mut self.members[slot];
                if other.action != action {
                    continue;
                }
                if other.ret < ret && !mutant::is(Mutant::TwinsReversed) {
                    set(&mut elders, slot);
                } else {
                    set(&mut other.elders, free);
                }
            }
        }
        let member = Member { op, action, ret, elders };
        match self.members.get_mut(free) {
            Some(slot) => *slot = member,
            None => self.members.push(member),
        }
        set(&mut self.occupied, free);
        if action.changes_nothing() {
            set(&mut self.quiet, free);
            for config in &mut self.configs {
                if action.apply(config.state).is_some() {
                    set(&mut config.placed, free);
                    config.node = self.trail.push(config.node, op);
                }
            }
        }
        Ok(())
    }

    /// The operation `op` returns: every configuration is carried on until it has placed it. Says whether any
    /// could.
    pub(super) fn ret(
        &mut self,
        op: u32,
        ahead: &mut impl Ahead,
        meter: &mut Meter,
    ) -> Result<bool, Exhausted> {
        let Some(slot) = slots(self.occupied).find(|&slot| self.members[slot].op == op) else {
            return Ok(true);
        };
        if !self.configs.iter().all(|config| has(&config.placed, slot)) {
            self.carry_on(slot, ahead, meter)?;
        }
        self.release(slot);
        self.release_opens();
        if self.sets.len() > FEW_SETS + 2 * self.configs.len() {
            self.sets.keep(self.configs.iter_mut().map(|config| &mut config.used));
        }
        self.trail.sweep(self.configs.iter_mut().map(|config| &mut config.node));
        Ok(!self.configs.is_empty())
    }

    fn carry_on(&mut self, slot: usize, ahead: &mut impl Ahead, meter: &mut Meter) -> Result<(), Exhausted> {
        self.table.empty();
        let configs = std::mem::take(&mut self.configs);
        for &config in &configs {
            meter.step()?;
            self.insert(config, meter)?;
        }
        self.configs = configs;
        let required = self.members[slot].action.required();
        let mut at = 0;
        while let Some(item) = self.table.items.get(at) {
            at += 1;
            let config = item.config;
            if item.is_beaten || has(&config.placed, slot) {
                continue;
            }
            meter.step()?;
            let hopeless =
                required.is_some_and(|value| config.state != value && !self.can_write(&config, value));
            if !hopeless {
                self.expand(config, ahead, meter)?;
            }
        }
        self.configs.clear();
        let kept = self.table.items.iter().filter(|item| !item.is_beaten && has(&item.config.placed, slot));
        meter.hold(self.bytes_beside_table() + self.table.bytes(), 1)?;
        self.configs.extend(kept.map(|item| item.config));
        Ok(())
    }

    fn insert(&mut self, config: Config<N>, meter: &mut Meter) -> Result<(), Exhausted> {
        let elsewhere = self.bytes_beside_table();
        self.table.insert(config, &self.sets, elsewhere, meter)
    }

    /// Every way to place one more operation that happened, with the changes of unknown fate that it needs.
    fn expand(
        &mut self,
        config: Config<N>,
        ahead: &mut impl Ahead,
        meter: &mut Meter,
    ) -> Result<(), Exhausted> {
        let candidates = without(&self.occupied, &config.placed);
        for slot in slots(candidates) {
            let Member { action, elders, .. } = self.members[slot];
            if !is_empty(&without(&elders, &config.placed)) {
                continue;
            }
            meter.step()?;
            match action {
                Action::Write(_) => self.place(config, config, slot, ahead, meter)?,
                Action::Cas { from, .. } if from == config.state => {
                    self.place(config, config, slot, ahead, meter)?
                }
                Action::Read(value) | Action::Cas { from: value, .. } => {
                    if self.opens.live() > 0 {
                        self.place_with_opens(config, value, slot, ahead, meter)?;
                    }
                }
                Action::Refused(_) => self.excuse(config, ahead, meter)?,
            }
        }
        Ok(())
    }

    /// Places the change of `slot` in `config`, which came from `origin`.
    fn place(
        &mut self,
        origin: Config<N>,
        config: Config<N>,
        slot: usize,
        ahead: &mut impl Ahead,
        meter: &mut Meter,
    ) -> Result<(), Exhausted> {
        let Member { op, action, .. } = self.members[slot];
        let Some(state) = action.apply(config.state) else { return Ok(()) };
        if origin.state == config.state && state != config.state && self.is_fatal(&config, Some(slot), ahead)
        {
            return Ok(());
        }
        let mut next = Config { state, ..config };
        set(&mut next.placed, slot);
        next.node = self.trail.push(config.node, op);
        self.settle(&mut next);
        self.insert(next, meter)
    }

    /// Places what changes nothing and now has the right answer.
    fn settle(&mut self, config: &mut Config<N>) {
        if mutant::is(Mutant::EagerWithoutLooking) {
            for slot in slots(without(&self.quiet, &config.placed)) {
                set(&mut config.placed, slot);
            }
        }
        for slot in slots(without(&self.quiet, &config.placed)) {
            let Member { op, action, .. } = self.members[slot];
            if action.apply(config.state).is_some() {
                set(&mut config.placed, slot);
                config.node = self.trail.push(config.node, op);
            }
        }
    }

    /// The next member of a class, unless one that returns and does the same has been called: that one goes
    /// first.
    fn usable(&self, config: &Config<N>, class: ClassId, action: Action) -> Option<u32> {
        let op = self.opens.next_member(class, config.used, &self.sets)?;
        let mut unplaced = slots(without(&self.occupied, &config.placed));
        (!unplaced.any(|slot| self.members[slot].action == action)).then_some(op)
    }

    fn use_open(&mut self, config: &Config<N>, class: ClassId, op: u32, state: Val) -> Config<N> {
        let used = self.sets.with(config.used, class);
        let mut next = Config { state, used, node: self.trail.push(config.node, op), ..*config };
        self.settle(&mut next);
        next
    }

    /// Places the operation of `slot`, which needs `value`, after changes of unknown fate that lead there.
    fn place_with_opens(
        &mut self,
        config: Config<N>,
        value: Val,
        slot: usize,
        ahead: &mut impl Ahead,
        meter: &mut Meter,
    ) -> Result<(), Exhausted> {
        let mut ways = std::mem::take(&mut self.ways);
        ways.clear();
        let found = self.ways_to(value, &config, &mut vec![config.state], &mut ways, meter);
        // What takes the value away is used here at once, so only a coming need can be left in the lurch.
        if found.is_ok() && !ways.is_empty() && !self.is_fatal(&config, None, ahead) {
            for &way in &ways {
                if has(&way.placed, slot) {
                    self.insert(way, meter)?;
                } else {
                    self.place(config, way, slot, ahead, meter)?;
                }
            }
        }
        self.ways = ways;
        found
    }

    /// All ways from `config` to `value` by changes of unknown fate alone. Values that are `passed` are not
    /// come back to: the way without the detour uses less.
    fn ways_to(
        &mut self,
        value: Val,
        config: &Config<N>,
        passed: &mut Vec<Val>,
        ways: &mut Vec<Config<N>>,
        meter: &mut Meter,
    ) -> Result<(), Exhausted> {
        for nth in 0..self.opens.live() {
            let (class, action) = self.opens.nth_live(nth);
            if action.written() != Some(value) {
                continue;
            }
            meter.step()?;
            match action {
                Action::Cas { from, .. } if from != config.state => {
                    if passed.contains(&from) || from == value || mutant::is(Mutant::NoChains) {
                        continue;
                    }
                    passed.push(value);
                    let mut to_from = Vec::new();
                    let found = self.ways_to(from, config, passed, &mut to_from, meter);
                    passed.pop();
                    found?;
                    for way in to_from {
                        if let Some(op) = self.usable(&way, class, action) {
                            ways.push(self.use_open(&way, class, op, value));
                        }
                    }
                }
                _ => {
                    if let Some(op) = self.usable(config, class, action) {
                        ways.push(self.use_open(config, class, op, value));
                    }
                }
            }
        }
        Ok(())
    }

    /// Changes what a refusal must not find, by any one change of unknown fate.
    fn excuse(
        &mut self,
        config: Config<N>,
        ahead: &mut impl Ahead,
        meter: &mut Meter,
    ) -> Result<(), Exhausted> {
        if self.opens.live() == 0 || self.is_fatal(&config, None, ahead) || mutant::is(Mutant::NoExcuse) {
            return Ok(());
        }
        for nth in 0..self.opens.live() {
            let (class, action) = self.opens.nth_live(nth);
            meter.step()?;
            let Some(state) = action.apply(config.state).filter(|&state| state != config.state) else {
                continue;
            };
            if self.has_thriftier(&config, action) {
                continue;
            }
            if let Some(op) = self.usable(&config, class, action) {
                let next = self.use_open(&config, class, op, state);
                self.insert(next, meter)?;
            }
        }
        Ok(())
    }

    /// Whether an unused compare-and-set leads where this write would.
    fn has_thriftier(&self, config: &Config<N>, action: Action) -> bool {
        let Action::Write(to) = action else { return false };
        let cas = Action::Cas { from: config.state, to };
        self.opens.class_of(cas).is_some_and(|class| self.usable(config, class, cas).is_some())
    }

    /// Whether to leave the value that `config` holds, by the change of slot `by` or one of unknown fate, is
    /// a mistake: somebody still needs it and it can't come back in time.
    fn is_fatal(&self, config: &Config<N>, by: Option<usize>, ahead: &mut impl Ahead) -> bool {
        let value = config.state;
        let coming = ahead.need_of(value).map(|need| need.ret);
        let takers = without(&without(&self.occupied, &self.quiet), &config.placed);
        let mut returns = slots(takers)
            .filter(|&slot| Some(slot) != by && self.members[slot].action.required() == Some(value))
            .map(|slot| self.members[slot].ret)
            .chain(coming)
            .peekable();
        if returns.peek().is_none() || mutant::is(Mutant::NeverFatal) {
            return false;
        }
        if mutant::is(Mutant::AlwaysFatalWhenNeeded) {
            return true;
        }
        let next_source = ahead.next_source(value);
        returns.any(|ret| next_source > ret) && !self.can_write(config, value)
    }

    /// Whether anything in the window that is not placed writes `value`.
    fn can_write(&self, config: &Config<N>, value: Val) -> bool {
        let changes = without(&without(&self.occupied, &self.quiet), &config.placed);
        slots(changes).any(|slot| self.members[slot].action.written() == Some(value))
            || !mutant::is(Mutant::HopelessWithoutOpens)
                && self.opens.can_write(value, config.used, &self.sets)
    }

    fn release(&mut self, slot: usize) {
        for config in &mut self.configs {
            clear(&mut config.placed, slot);
        }
        for other in slots(self.occupied) {
            clear(&mut self.members[other].elders, slot);
        }
        clear(&mut self.occupied, slot);
        clear(&mut self.quiet, slot);
    }

    /// Changes of unknown fate that every configuration has used have happened, and are over.
    fn release_opens(&mut self) {
        let Some(first) = self.configs.first() else { return };
        let mut common: Vec<ClassId> = self.sets.members(first.used).to_vec();
        for config in &self.configs {
            if common.is_empty() {
                return;
            }
            let mut members = self.sets.members(config.used).iter().peekable();
            common.retain(|class| {
                while members.next_if(|&member| member < class).is_some() {}
                members.next_if_eq(&class).is_some()
            });
        }
        if common.is_empty() {
            return;
        }
        for config in &mut self.configs {
            config.used = self.sets.remove(config.used, &common);
        }
        self.opens.release(&common);
    }
}
