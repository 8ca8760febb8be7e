//! Breadth-first search over a sliding window: all configurations that can explain the history so far.
//!
//! The events are taken in the order of time. A configuration is the register's value, which of the
//! operations in the window are placed, and which changes of unknown fate were used (`table`). At each return
//! the configurations that have not placed the returning operation are carried on, placing operations one by
//! one, just until they have (Lowe's just-in-time linearization, 2017); those that can't are dropped. When
//! none is left, no order exists. Memory is in proportion to the window and the width of the frontier, not to
//! the history.
//!
//! These prunings keep the frontier narrow; each is sound with refused compare-and-sets:
//!
//! 1. *Eager.* An operation that changes nothing and whose answer is right is placed at once. From any order
//!    that goes on from here, taking it from its later place to this one changes no other answer.
//! 2. *Needed values.* A configuration that leaves a value which an operation still to be placed needs, and
//!    which nothing can write again before that one's return, can't be completed. What needs it is a read
//!    that comes, or a compare-and-set that comes or waits; the compare-and-set itself may leave it. (A read
//!    that was called is placed by rule 1.)
//! 3. *Lazy.* A change of unknown fate is placed only right before an operation that needs its value, or
//!    right before a refusal that must not find the value before it. In any order take one, A from value u to
//!    value x, that stands otherwise. Before a write it may as well be absent. Before a refusal from neither
//!    u nor x the two can be exchanged: A has no return. At the end it may be absent. Nothing else can follow
//!    A.
//! 4. *Thrift.* Of two configurations that differ only in the changes of unknown fate that they used, the one
//!    that used less can do whatever the other can.
//! 5. *Unobserved.* Changes of unknown fate whose value nobody mentions are counted as one kind, as they
//!    write what nobody will ask for; and if a compare-and-set among them serves, it serves before a write.
//! 6. *Twins.* Of two changes that do the same, the one that returns earlier goes first; in an order that has
//!    them the other way round they can be exchanged.
//! 7. *Hopeless.* A configuration is dropped when the returning operation needs a value that nothing can
//!    write now.
//!
//! "An unread write may be placed together with the next one" would be sound without refused compare-and-sets
//! and is not with them (the unread write may be the only reason for a refusal), so it is not used.

mod ahead;
mod core;
mod opens;
mod sets;
mod table;
mod trail;

use self::ahead::Whole;
use self::core::Core;
use super::mutant::{self, Mutant};
use super::problem::{Action, Problem, Val};
use super::{Found, Reached, Searched, reduce};
use crate::budget::{Exhausted, Meter};
use crate::history::Rank;

/// Decides by the frontier, with a window as wide as this history needs.
#[must_use]
pub fn search(problem: &Problem, meter: &mut Meter) -> Found {
    search_for(problem, false, meter).found
}

/// The same, which also says how far it got and, if `keeps_order`, the order: that takes eight more bytes for
/// each operation and some for each configuration.
#[must_use]
pub fn search_for(problem: &Problem, keeps_order: bool, meter: &mut Meter) -> Searched {
    let events = events(problem);
    match window(problem, &events).div_ceil(64) {
        0..=1 => run::<1>(problem, &events, keeps_order, meter),
        2 => run::<2>(problem, &events, keeps_order, meter),
        3..=4 => run::<4>(problem, &events, keeps_order, meter),
        5..=8 => run::<8>(problem, &events, keeps_order, meter),
        9..=16 => run::<16>(problem, &events, keeps_order, meter),
        _ => {
            let reached = Reached { explained: 0, of: problem.entries.len(), configurations: 0 };
            Searched { found: Found::GaveUp(Exhausted::Window), order: None, reached }
        }
    }
}

/// A call or a return.
#[derive(Clone, Copy)]
struct Event {
    rank: Rank,
    /// The entry, twice, and one more for a return.
    what: u32,
}

impl Event {
    fn new(rank: Rank, at: usize, is_return: bool) -> Self {
        // Entries are at most half as many as ranks, of which there are 2^32.
        Self { rank, what: u32::try_from(at).unwrap_or(u32::MAX >> 1) << 1 | u32::from(is_return) }
    }

    fn entry(self) -> u32 {
        self.what >> 1
    }

    fn is_return(self) -> bool {
        self.what & 1 == 1
    }
}

/// Calls and returns in the order of time.
fn events(problem: &Problem) -> Vec<Event> {
    let entries = problem.entries.iter().enumerate();
    let calls = entries.clone().map(|(at, entry)| Event::new(entry.call, at, false));
    let returned = entries.filter(|(_, entry)| !entry.is_open());
    let mut events: Vec<Event> =
        calls.chain(returned.map(|(at, entry)| Event::new(entry.ret, at, true))).collect();
    events.sort_unstable_by_key(|event| (event.rank, event.what));
    events
}

/// The most operations that happened and overlap.
fn window(problem: &Problem, events: &[Event]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for event in events {
        if event.is_return() {
            open -= 1;
        } else if !problem.entries[super::problem::index(event.entry())].is_open() {
            open += 1;
        }
        most = most.max(open);
    }
    most
}

fn run<const N: usize>(
    problem: &Problem,
    events: &[Event],
    keeps_order: bool,
    meter: &mut Meter,
) -> Searched {
    let observed = reduce::observed(problem);
    let mut core = Core::<N>::new(keeps_order);
    let mut ahead = Whole::of(problem);
    let mut explained = 0;
    let reached = |explained, core: &Core<N>| Reached {
        explained,
        of: problem.entries.len(),
        configurations: core.width(),
    };
    for event in events {
        let name = event.entry();
        let at = super::problem::index(name);
        let entry = &problem.entries[at];
        ahead.now = event.rank;
        let alive = if event.is_return() {
            core.ret(name, &mut ahead, meter)
        } else if entry.is_open() {
            explained += 1;
            if let Some(action) = counted_as(entry.action, &observed) {
                core.call_open(name, action);
            }
            Ok(true)
        } else {
            core.call(name, entry.action, entry.ret).map(|()| true)
        };
        explained += usize::from(event.is_return());
        let found = match alive {
            Ok(true) => continue,
            Ok(false) => Found::NoOrder { stuck_at: at },
            Err(exhausted) => Found::GaveUp(exhausted),
        };
        return Searched { found, order: None, reached: reached(explained, &core) };
    }
    let order = if keeps_order { core.order() } else { None };
    Searched { found: Found::Order, order, reached: reached(explained, &core) }
}

/// What a change of unknown fate counts as: those of values that nobody mentions are all the same.
fn counted_as(action: Action, observed: &[bool]) -> Option<Action> {
    let other = Val::try_from(observed.len()).unwrap_or(Val::MAX);
    match action {
        _ if action.written().is_some_and(|to| observed[super::problem::index(to)]) => Some(action),
        _ if mutant::is(Mutant::UnobservedDropped) => None,
        Action::Write(_) => Some(Action::Write(other)),
        Action::Cas { from, .. } => Some(Action::Cas { from, to: other }),
        Action::Read(_) | Action::Refused(_) => None,
    }
}
