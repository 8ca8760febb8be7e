//! Every interleaving, up to a bound, breadth first ([`harness_world::explore`]).
//!
//! In a state anything may happen next: a message arrives, a client asks, a timer is over, a member crashes
//! or starts. That a message is lost is a state in which it has not arrived yet, so losses need no step.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use harness_world::explore;
use workloads::Op;
use workloads::op::{Body, Object};

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

impl Bounds {
    /// Two members are asked, each to write a value of its own.
    #[must_use]
    pub fn duel() -> Self {
        Self { asks: vec![(Id(1), write(1)), (Id(2), write(2))], ..Self::default() }
    }

    /// One member is asked twice, and crashes once.
    #[must_use]
    pub fn restart() -> Self {
        Self { asks: vec![(Id(1), write(1)), (Id(1), write(2))], crashes: 1, ..Self::default() }
    }
}

fn write(value: i64) -> Op {
    Op::new(Object::REGISTER, 0, Body::Write { value })
}

/// What was found: which steps lead to what is broken.
pub type Explored<P> = explore::Explored<Step<P>, Broken>;

#[derive(Clone)]
struct State<P: Protocol> {
    configuration: Configuration<P>,
    left: Left,
    asks: Arc<[(Id, Op)]>,
}

/// What may still happen.
#[derive(Clone, Debug, Hash)]
struct Left {
    asks: Vec<bool>,
    fires: usize,
    crashes: usize,
    copies: usize,
}

impl<P: Protocol> State<P> {
    fn steps(&self) -> Vec<(Step<P>, Left)> {
        let mut steps = Vec::new();
        let left = || self.left.clone();
        for (at, (id, op)) in self.asks.iter().enumerate().filter(|(at, _)| self.left.asks[*at]) {
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

impl<P: Protocol> explore::State for State<P> {
    type Event = (Step<P>, Left);
    type Broken = Broken;

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.configuration.fingerprint().hash(&mut hasher);
        self.left.hash(&mut hasher);
        hasher.finish()
    }

    fn events(&self) -> Vec<Self::Event> {
        self.steps()
    }

    fn apply(&mut self, (step, left): &Self::Event) {
        self.configuration.apply(step, 0, &mut |_| 0);
        self.left = left.clone();
    }

    fn broken(&self) -> Option<Broken> {
        self.configuration.broken().cloned()
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
    let first = State { configuration, left, asks: bounds.asks.clone().into() };
    let explore::Explored { states, settled, whole, broken } = explore::explore(first, bounds.states);
    let broken = broken.map(|(broken, events)| (broken, events.into_iter().map(|(step, _)| step).collect()));
    Explored { states, settled, whole, broken }
}
