//! Breadth-first search over a sliding window: all configurations that can explain the history so far.
//!
//! Calls and returns are taken in the order of time, as they come ([`Frontier::called`],
//! [`Frontier::returned`]) or from a whole history ([`search`]). A configuration is what the object holds and
//! which of the operations in the window are placed. At each return the configurations that have not placed
//! the returning operation are carried on, placing operations one by one, just until they have (Lowe's
//! just-in-time linearization, 2017); those that can't are dropped. When none is left, no order exists.
//! Memory is in proportion to the window and the width of the frontier, not to the history.
//!
//! Every pruning is an argument of the form "if some order goes on from this configuration, one does from
//! that one", so they can be combined. They hold for every deterministic object:
//!
//! 1. *Observations at once.* An operation that leaves every state as it is, and whose answer is right now,
//!    is placed now. From any order that goes on from here it can be taken from its later place and put
//!    first: nobody else's answer changes. (This is wrong for an operation that merely leaves the present
//!    state as it is: a second `write 1` may be needed later, after a `write 2`.)
//! 2. *One of two that are the same.* Of two operations that do the same in every state, both called, the one
//!    that returns first is placed first: in an order that has them the other way, they can change places.
//! 3. *Subsumption.* Of two configurations that hold the same and have placed the same operations, save that
//!    one has placed fewer operations of unknown fate, or more observations, only that one is kept. Whatever
//!    the other goes on to do, it can do: what has no return need not happen, and an observation more is a
//!    duty less.

use super::Found;
use super::sabotage::{Rule, is_broken};
use super::window::{Link, Window};
use crate::budget::{Exhausted, Meter};
use crate::hash::FastMap;
use crate::history::{NEVER, Rank};
use crate::model::{Call, Model};

/// Decides by the frontier.
#[must_use]
pub fn search<M: Model>(model: &M, calls: &[&Call<M::Op>], want_order: bool, meter: &mut Meter) -> Found {
    Search::new(model, calls, want_order).run(meter)
}

/// A search through a whole history, under way.
pub struct Search<'a, M: Model> {
    frontier: Frontier<'a, M>,
    calls: &'a [&'a Call<M::Op>],
    events: Vec<(Rank, usize)>,
    next: usize,
    reached: usize,
}

impl<'a, M: Model> Search<'a, M> {
    /// A search that has not begun.
    #[must_use]
    pub fn new(model: &'a M, calls: &'a [&'a Call<M::Op>], want_order: bool) -> Self {
        let frontier = Frontier::new(model, want_order);
        Self { frontier, calls, events: events(calls), next: 0, reached: 0 }
    }

    /// Goes on until it has decided or the meter stops it. An event whose configurations were not all carried
    /// on when its steps ran out is begun anew.
    pub fn run(&mut self, meter: &mut Meter) -> Found {
        while let Some(&(rank, at)) = self.events.get(self.next) {
            let call = self.calls[at];
            let happened = if call.call == rank {
                self.frontier.called(at, call.op.clone(), call.ret).map(|()| true)
            } else {
                self.frontier.returned(at, meter)
            };
            match happened {
                Ok(true) => self.reached += usize::from(call.call != rank),
                Ok(false) => return Found::NoOrder { stuck_at: at },
                Err(why) => return Found::GaveUp { why, reached: self.reached },
            }
            self.next += 1;
        }
        Found::Order(self.frontier.order())
    }
}

/// Calls and returns in the order of time.
pub(super) fn events<O>(calls: &[&Call<O>]) -> Vec<(Rank, usize)> {
    let called = calls.iter().enumerate().map(|(at, call)| (call.call, at));
    let returned =
        calls.iter().enumerate().filter(|(_, call)| !call.is_open()).map(|(at, call)| (call.ret, at));
    let mut events: Vec<(Rank, usize)> = called.chain(returned).collect();
    events.sort_unstable();
    events
}

/// Which slots of the window are placed.
type Mask<const N: usize> = [u64; N];

fn has<const N: usize>(mask: &Mask<N>, slot: usize) -> bool {
    mask[slot / 64] >> (slot % 64) & 1 == 1
}

fn set<const N: usize>(mask: &mut Mask<N>, slot: usize) {
    mask[slot / 64] |= 1 << (slot % 64);
}

fn zip<const N: usize>(one: &Mask<N>, other: &Mask<N>, with: impl Fn(u64, u64) -> u64) -> Mask<N> {
    std::array::from_fn(|word| with(one[word], other[word]))
}

/// What the object holds, by number, which slots are placed, and how this came about.
#[derive(Clone, Copy)]
struct Config<const N: usize> {
    placed: Mask<N>,
    state: u32,
    link: Link,
}

/// The configurations, with masks as wide as the window needs them.
enum Configs {
    W1(Vec<Config<1>>),
    W4(Vec<Config<4>>),
    W16(Vec<Config<16>>),
}

macro_rules! each_width {
    ($configs:expr, $inner:ident => $body:expr) => {
        match $configs {
            Configs::W1($inner) => $body,
            Configs::W4($inner) => $body,
            Configs::W16($inner) => $body,
        }
    };
}

impl Configs {
    fn slots(&self) -> usize {
        match self {
            Self::W1(_) => 64,
            Self::W4(_) => 256,
            Self::W16(_) => 1024,
        }
    }

    fn widen(self) -> Option<Self> {
        fn wider<const N: usize, const W: usize>(configs: Vec<Config<N>>) -> Vec<Config<W>> {
            let widen = |config: Config<N>| {
                let mut placed = [0; W];
                placed[..N].copy_from_slice(&config.placed);
                Config { placed, state: config.state, link: config.link }
            };
            configs.into_iter().map(widen).collect()
        }
        Some(match self {
            Self::W1(configs) => Self::W4(wider(configs)),
            Self::W4(configs) => Self::W16(wider(configs)),
            Self::W16(_) => return None,
        })
    }
}

/// What the object can hold at a moment, and which of the operations that are open then have taken effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possible<S> {
    /// What it holds.
    pub state: S,
    /// Operations in the window that are placed, ascending.
    pub placed: Vec<usize>,
}

/// The search, fed as time goes by.
pub struct Frontier<'m, M: Model> {
    window: Window<'m, M>,
    configs: Configs,
}

impl<'m, M: Model> Frontier<'m, M> {
    /// Nothing has happened yet. With `want_order` it remembers how each configuration came about, which
    /// takes memory in proportion to the history.
    #[must_use]
    pub fn new(model: &'m M, want_order: bool) -> Self {
        let window = Window::new(model, want_order);
        Self { window, configs: Configs::W1(vec![Config { placed: [0; 1], state: 0, link: Link::START }]) }
    }

    /// The next event is a call. `at` is any number that no operation in the window has; `ret` the rank of
    /// the return, or [`NEVER`]. The answer is part of the operation, so whoever feeds this while a run goes
    /// holds a call back until its operation has ended.
    ///
    /// # Errors
    /// [`Exhausted::Window`] when too many operations are open at once.
    pub fn called(&mut self, at: usize, op: M::Op, ret: Rank) -> Result<(), Exhausted> {
        if self.window.free_slot() >= self.configs.slots() {
            let narrow = std::mem::replace(&mut self.configs, Configs::W1(Vec::new()));
            self.configs = narrow.widen().ok_or(Exhausted::Window)?;
        }
        let slot = self.window.enter(at, op, ret);
        if self.window.observes(slot) {
            let window = &mut self.window;
            each_width!(&mut self.configs, configs => for config in configs {
                place_observation(window, config, slot);
            });
        }
        Ok(())
    }

    /// The next event is the return of the operation that was called as `at`. False if no order explains it:
    /// then it is over.
    ///
    /// # Errors
    /// Why it had to stop, when it had to.
    pub fn returned(&mut self, at: usize, meter: &mut Meter) -> Result<bool, Exhausted> {
        let Some(slot) = self.window.slot_of(at) else { return Ok(true) };
        let window = &mut self.window;
        each_width!(&mut self.configs, configs => {
            carry_on(window, configs, slot, meter)?;
            if configs.is_empty() {
                return Ok(false);
            }
            release(window, configs, slot);
            compact(window, configs);
        });
        meter.hold(self.window.bytes(), 1)?;
        Ok(true)
    }

    /// How many configurations there are.
    #[must_use]
    pub fn width(&self) -> usize {
        each_width!(&self.configs, configs => configs.len())
    }

    /// Whether the operation is still looked at: it has not returned, and not every configuration has placed
    /// it.
    #[must_use]
    pub fn is_in_window(&self, at: usize) -> bool {
        self.window.slot_of(at).is_some()
    }

    /// All configurations. Operations are placed only when they must be, so each stands for those that come
    /// about from it by placing more.
    #[must_use]
    pub fn possible(&self) -> Vec<Possible<M::State>> {
        each_width!(&self.configs, configs => configs.iter().map(|config| {
            let mut placed: Vec<usize> = self.window.occupied().filter(|&slot| has(&config.placed, slot))
                .map(|slot| self.window.id(slot)).collect();
            placed.sort_unstable();
            Possible { state: self.window.state(config.state).clone(), placed }
        }).collect())
    }

    /// What the object may hold now, however many of the operations that are open have taken effect; at most
    /// `most`.
    ///
    /// # Errors
    /// Why it had to stop, when it had to.
    pub fn may_hold(&mut self, most: usize, meter: &mut Meter) -> Result<Vec<M::State>, Exhausted> {
        let window = &mut self.window;
        let mut states = each_width!(&self.configs, configs => closure(window, configs, meter))?;
        states.sort_unstable();
        states.dedup();
        Ok(states.into_iter().take(most).map(|state| self.window.state(state).clone()).collect())
    }

    /// An order that explains all so far, if it was asked for and there is one.
    #[must_use]
    pub fn order(&self) -> Option<Vec<usize>> {
        each_width!(&self.configs, configs => {
            configs.first().and_then(|config| self.window.order(config.link))
        })
    }
}

/// Places an observation that has just become possible, if its answer is right.
fn place_observation<M: Model, const N: usize>(
    window: &mut Window<'_, M>,
    config: &mut Config<N>,
    slot: usize,
) {
    if window.apply(config.state, slot).is_some() {
        set(&mut config.placed, slot);
        config.link = window.linked(config.link, slot);
    }
}

/// The configuration after placing the operation of `slot`, and after it every observation that is right
/// then.
fn place<M: Model, const N: usize>(
    window: &mut Window<'_, M>,
    config: &Config<N>,
    slot: usize,
) -> Option<Config<N>> {
    let state = window.apply(config.state, slot)?;
    let mut next = Config { placed: config.placed, state, link: window.linked(config.link, slot) };
    set(&mut next.placed, slot);
    if state != config.state {
        for at in 0..window.observing().len() {
            let other = window.observing()[at];
            if !has(&next.placed, other) {
                place_observation(window, &mut next, other);
            }
        }
    }
    if is_broken(Rule::EagerForAll) {
        for other in window.occupied().collect::<Vec<_>>() {
            if !has(&next.placed, other) && window.apply(state, other) == Some(state) {
                place_observation(window, &mut next, other);
            }
        }
    }
    Some(next)
}

/// Carries every configuration on until it has placed the operation of `slot`. Where it has to stop, they are
/// what they were.
fn carry_on<M: Model, const N: usize>(
    window: &mut Window<'_, M>,
    configs: &mut Vec<Config<N>>,
    slot: usize,
    meter: &mut Meter,
) -> Result<(), Exhausted> {
    if configs.iter().all(|config| has(&config.placed, slot)) {
        return meter.step();
    }
    let before = configs.clone();
    let carried = carry_all(window, configs, slot, meter);
    if carried.is_err() {
        *configs = before;
    }
    carried
}

fn carry_all<M: Model, const N: usize>(
    window: &mut Window<'_, M>,
    configs: &mut Vec<Config<N>>,
    slot: usize,
    meter: &mut Meter,
) -> Result<(), Exhausted> {
    let kinds = Kinds::of(window);
    let mut done = Antichain::new(kinds);
    let mut work = Antichain::new(kinds);
    for config in configs.drain(..) {
        meter.step()?;
        if has(&config.placed, slot) {
            done.keep(config)
        } else {
            work.keep(config)
        };
    }
    let mut changing: Vec<usize> = window.occupied().filter(|&slot| !window.observes(slot)).collect();
    changing.sort_unstable_by_key(|&slot| window.ret(slot));
    let mut at = 0;
    while let Some(config) = work.live(at) {
        at += 1;
        let Some(config) = config else { continue };
        for &other in &changing {
            if has(&config.placed, other)
                || window.ahead(other).iter().any(|&first| !has(&config.placed, first))
            {
                continue;
            }
            meter.step()?;
            let Some(next) = place(window, &config, other) else { continue };
            if has(&next.placed, slot) {
                done.keep(next)
            } else {
                work.keep(next)
            };
        }
        meter.hold(work.entries.len() + done.entries.len(), 3 * size_of::<Config<N>>() + 16)?;
        meter.hold(window.bytes(), 1)?;
    }
    done.into(configs);
    Ok(())
}

/// The states of these configurations and of all that come about from them.
fn closure<M: Model, const N: usize>(
    window: &mut Window<'_, M>,
    configs: &[Config<N>],
    meter: &mut Meter,
) -> Result<Vec<u32>, Exhausted> {
    let mut work = Antichain::new(Kinds::of(window));
    configs.iter().for_each(|config| work.keep(*config));
    let changing: Vec<usize> = window.occupied().filter(|&slot| !window.observes(slot)).collect();
    let mut states = Vec::new();
    let mut at = 0;
    while let Some(config) = work.live(at) {
        at += 1;
        let Some(config) = config else { continue };
        states.push(config.state);
        for &other in &changing {
            if !has(&config.placed, other) {
                meter.step()?;
                if let Some(next) = place(window, &config, other) {
                    work.keep(next);
                }
            }
        }
        meter.hold(work.entries.len(), 3 * size_of::<Config<N>>() + 16)?;
    }
    Ok(states)
}

/// Forgets an operation that every configuration has placed, and those of unknown fate that every one has.
fn release<M: Model, const N: usize>(window: &mut Window<'_, M>, configs: &mut [Config<N>], slot: usize) {
    let mut released = vec![slot];
    if window.has_open() {
        let everywhere =
            configs.iter().fold([u64::MAX; N], |all, config| zip(&all, &config.placed, |a, b| a & b));
        released
            .extend(window.occupied().filter(|&open| window.ret(open) == NEVER && has(&everywhere, open)));
    }
    let mut keep = [u64::MAX; N];
    for &slot in &released {
        keep[slot / 64] &= !(1 << (slot % 64));
        window.leave(slot);
    }
    configs.iter_mut().for_each(|config| config.placed = zip(&config.placed, &keep, |a, b| a & b));
}

/// Forgets states and links that no configuration stands on, when there are many.
fn compact<M: Model, const N: usize>(window: &mut Window<'_, M>, configs: &mut [Config<N>]) {
    if window.states_are_many() {
        let live: Vec<u32> = configs.iter().map(|config| config.state).collect();
        let new = window.compact_states(&live);
        configs.iter_mut().zip(new).for_each(|(config, state)| config.state = state);
    }
    if window.links_are_many() {
        let live: Vec<Link> = configs.iter().map(|config| config.link).collect();
        let new = window.compact_links(&live);
        configs.iter_mut().zip(new).for_each(|(config, link)| config.link = link);
    }
}

/// Which slots hold observations, and which hold operations of unknown fate.
#[derive(Clone, Copy)]
struct Kinds<const N: usize> {
    observing: Mask<N>,
    open: Mask<N>,
}

impl<const N: usize> Kinds<N> {
    fn of<M: Model>(window: &Window<'_, M>) -> Self {
        let mut kinds = Self { observing: [0; N], open: [0; N] };
        for slot in window.occupied() {
            if window.observes(slot) {
                set(&mut kinds.observing, slot);
            } else if window.ret(slot) == NEVER {
                set(&mut kinds.open, slot);
            }
        }
        kinds
    }
}

/// Configurations of which none can do whatever another can.
struct Antichain<const N: usize> {
    kinds: Kinds<N>,
    /// The first entry for a state and what is placed of the operations that are neither open nor
    /// observations.
    heads: FastMap<(Mask<N>, u32), u32>,
    entries: Vec<Entry<N>>,
}

struct Entry<const N: usize> {
    config: Config<N>,
    /// Observations that are placed and open operations that are not: the more the better.
    freedom: Mask<N>,
    next: u32,
    dead: bool,
}

const NO_ENTRY: u32 = u32::MAX;

impl<const N: usize> Antichain<N> {
    fn new(kinds: Kinds<N>) -> Self {
        Self { kinds, heads: FastMap::default(), entries: Vec::new() }
    }

    /// Notes a configuration, unless a known one can do whatever it can.
    fn keep(&mut self, config: Config<N>) {
        let Kinds { observing, open } = self.kinds;
        let flexible = zip(&observing, &open, |a, b| a | b);
        let firm = zip(&config.placed, &flexible, |placed, flexible| placed & !flexible);
        let observed = zip(&config.placed, &observing, |a, b| a & b);
        let unspent = zip(&open, &config.placed, |open, placed| open & !placed);
        let (observed, unspent) = self.misjudged(observed, unspent, &config);
        let freedom = zip(&observed, &unspent, |a, b| a | b);
        let covers =
            |one: &Mask<N>, other: &Mask<N>| one.iter().zip(other).all(|(one, other)| other & !one == 0);
        let new = u32::try_from(self.entries.len()).unwrap_or(NO_ENTRY);
        let head = self.heads.entry((firm, config.state)).or_insert(NO_ENTRY);
        let mut at = *head;
        while let Some(entry) = usize::try_from(at).ok().and_then(|at| self.entries.get_mut(at)) {
            at = entry.next;
            if entry.dead {
                continue;
            }
            if covers(&entry.freedom, &freedom) {
                return;
            }
            entry.dead = covers(&freedom, &entry.freedom);
        }
        self.entries.push(Entry { config, freedom, next: *head, dead: false });
        *head = new;
    }

    fn misjudged(&self, observed: Mask<N>, unspent: Mask<N>, config: &Config<N>) -> (Mask<N>, Mask<N>) {
        if is_broken(Rule::SpendthriftWins) {
            return (observed, zip(&self.kinds.open, &config.placed, |open, placed| open & placed));
        }
        if is_broken(Rule::FewerObservationsWin) {
            return (zip(&self.kinds.observing, &config.placed, |kind, placed| kind & !placed), unspent);
        }
        (observed, unspent)
    }

    /// The entry at this place, none if it was outdone; outer none at the end.
    #[allow(clippy::option_option)]
    fn live(&self, at: usize) -> Option<Option<Config<N>>> {
        self.entries.get(at).map(|entry| (!entry.dead).then_some(entry.config))
    }

    fn into(self, configs: &mut Vec<Config<N>>) {
        configs.extend(self.entries.into_iter().filter(|entry| !entry.dead).map(|entry| entry.config));
    }
}
