//! Every interleaving, up to a bound, breadth first: so the first counterexample is a shortest one.
//!
//! In a state anything may happen next: a message arrives, a client asks, a timer is over, a member crashes
//! or starts. That a message is lost is a state in which it has not arrived yet, so losses need no step. A
//! state is known by a number of 64 bits ([`Configuration::fingerprint`]); that two share one by chance is
//! less likely than one in a million for a million states.

use std::collections::{HashMap, VecDeque};

use workloads::Op;

use crate::configuration::{Configuration, Step};
use crate::protocol::{Broken, Id, Protocol, Request};

/// What may go wrong, and how much is looked at.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// What clients ask, whom, and in which order each member may be asked.
    pub asks: Vec<(Id, Op)>,
    /// Timers that are over, in all.
    pub fires: usize,
    /// Crashes, in all.
    pub crashes: usize,
    /// Messages that arrive and are still under way, in all.
    pub copies: usize,
    /// States.
    pub states: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { asks: Vec::new(), fires: 0, crashes: 0, copies: 0, states: 1_000_000 }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Explored<P: Protocol> {
    /// How many states there were.
    pub states: usize,
    /// Whether no state was left to look at.
    pub whole: bool,
    /// The first property that was broken, and a shortest way to it.
    pub broken: Option<(Broken, Vec<Step<P>>)>,
}

#[derive(Clone)]
struct State<P: Protocol> {
    configuration: Configuration<P>,
    left: Left,
}

/// What may still happen.
#[derive(Clone, Hash)]
struct Left {
    asks: Vec<bool>,
    fires: usize,
    crashes: usize,
    copies: usize,
}

impl<P: Protocol> State<P> {
    fn number(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.configuration.fingerprint().hash(&mut hasher);
        self.left.hash(&mut hasher);
        hasher.finish()
    }

    fn steps(&self, bounds: &Bounds) -> Vec<(Step<P>, Left)> {
        let mut steps = Vec::new();
        let left = || self.left.clone();
        for (at, (id, op)) in bounds.asks.iter().enumerate().filter(|(at, _)| self.left.asks[*at]) {
            let mut left = left();
            left.asks[at] = false;
            let request = Request(u64::try_from(at).unwrap_or_default() + 1);
            steps.push((Step::Ask(*id, request, op.clone()), left));
        }
        for (from, to, message) in self.configuration.flight() {
            steps.push((Step::Deliver(*from, *to, message.clone()), left()));
            if let Some(copies) = self.left.copies.checked_sub(1) {
                steps.push((Step::Copy(*from, *to, message.clone()), Left { copies, ..left() }));
            }
        }
        for id in Id::all(self.configuration.members()) {
            if let Some(fires) = self.left.fires.checked_sub(1) {
                let timers = self.configuration.timers(id);
                steps.extend(timers.map(|timer| (Step::Fire(id, timer), Left { fires, ..left() })));
            }
            let unsynced = self.configuration.unsynced(id);
            if unsynced > 0 {
                steps.push((Step::Sync(id), left()));
            }
            if let Some(crashes) = self.left.crashes.checked_sub(1) {
                let crash = |kept| (Step::Crash(id, kept), Left { crashes, ..left() });
                steps.extend((0..=unsynced).map(crash));
            }
            if self.configuration.running(id).is_none() {
                steps.push((Step::Start(id), left()));
            }
        }
        steps.retain(|(step, _)| self.configuration.can(step));
        steps
    }
}

/// Explores a protocol with so many members.
#[must_use]
pub fn explore<P: Protocol>(protocol: P, members: u8, bounds: &Bounds) -> Explored<P> {
    // Without crashes nobody can tell when a write is synced.
    let mut configuration = Configuration::new(protocol.small(), members, bounds.crashes == 0);
    for id in Id::all(members) {
        configuration.apply(&Step::Start(id), 0, &mut |_| 0);
        while configuration.unsynced(id) > 0 {
            configuration.apply(&Step::Sync(id), 0, &mut |_| 0);
        }
    }
    let left = Left {
        asks: vec![true; bounds.asks.len()],
        fires: bounds.fires,
        crashes: bounds.crashes,
        copies: bounds.copies,
    };
    let first = State { configuration, left };
    let mut before: HashMap<u64, Option<(u64, Step<P>)>> = HashMap::from([(first.number(), None)]);
    let mut explored = Explored { states: 1, whole: false, broken: None };
    let mut open = VecDeque::from([(first.number(), first)]);
    while let Some((number, state)) = open.pop_front() {
        for (step, left) in state.steps(bounds) {
            let mut next = State { configuration: state.configuration.clone(), left };
            next.configuration.apply(&step, 0, &mut |_| 0);
            if let Some(broken) = next.configuration.broken() {
                let mut steps = path(&before, number);
                steps.push(step);
                explored.broken = Some((broken.clone(), steps));
                return explored;
            }
            let reached = next.number();
            if before.contains_key(&reached) {
                continue;
            }
            if explored.states >= bounds.states {
                return explored;
            }
            before.insert(reached, Some((number, step)));
            explored.states += 1;
            open.push_back((reached, next));
        }
    }
    explored.whole = true;
    explored
}

fn path<P: Protocol>(before: &HashMap<u64, Option<(u64, Step<P>)>>, mut number: u64) -> Vec<Step<P>> {
    let mut steps = Vec::new();
    while let Some(Some((earlier, step))) = before.get(&number) {
        steps.push(step.clone());
        number = *earlier;
    }
    steps.reverse();
    steps
}
