//! Everything that can happen to a few applications, within a budget of what goes wrong.
//!
//! States are looked through breadth first, so the first counterexample is a shortest one. Each state is
//! known by a number of 64 bits; that two share one by chance is less likely than one in a million for a
//! hundred thousand states. From every eighth state in which the budget is spent the world is let end well
//! too, which shows what never happens.

use std::collections::{HashMap, VecDeque};

use crate::world::{Broken, Event, Subject, World};

/// What was found.
#[derive(Clone, Debug)]
pub struct Explored {
    /// How many states there were.
    pub states: usize,
    /// How many of them were let end well.
    pub settled: usize,
    /// True when no state was left to look at.
    pub whole: bool,
    /// The first rule that was broken, and how it came to it.
    pub broken: Option<(Broken, Vec<Event>)>,
}

/// Looks at up to so many states.
#[must_use]
pub fn explore<S: Subject>(world: World<S>, most: usize) -> Explored {
    let first = world.fingerprint();
    let mut before: HashMap<u64, Option<(u64, Event)>> = HashMap::from([(first, None)]);
    let mut open = VecDeque::from([(first, world)]);
    let mut explored = Explored { states: 1, settled: 0, whole: false, broken: None };
    while let Some((number, world)) = open.pop_front() {
        if world.budget.is_spent() && number.is_multiple_of(8) {
            explored.settled += 1;
            let mut ending = world.clone();
            ending.settle();
            if let Some(broken) = ending.broken() {
                explored.broken = Some((broken.clone(), path(&before, number)));
                return explored;
            }
        }
        for event in world.events() {
            let mut next = world.clone();
            next.apply(event);
            let reached = next.fingerprint();
            if let Some(broken) = next.broken() {
                let mut events = path(&before, number);
                events.push(event);
                explored.broken = Some((broken.clone(), events));
                return explored;
            }
            if before.contains_key(&reached) {
                continue;
            }
            if explored.states >= most {
                return explored;
            }
            before.insert(reached, Some((number, event)));
            explored.states += 1;
            open.push_back((reached, next));
        }
    }
    explored.whole = true;
    explored
}

fn path(before: &HashMap<u64, Option<(u64, Event)>>, mut number: u64) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(Some((earlier, event))) = before.get(&number) {
        events.push(*event);
        number = *earlier;
    }
    events.reverse();
    events
}
