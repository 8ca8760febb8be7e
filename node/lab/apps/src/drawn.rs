//! Worlds whose events are drawn from a seed.

use harness_world::dice::{Chance, Dice};

use crate::world::{Broken, Cause, Event, Subject, World};

/// What came of a world.
#[derive(Clone, Debug)]
pub struct Lived {
    /// What happened.
    pub events: Vec<Event>,
    /// The rule that was broken.
    pub broken: Option<Broken>,
}

/// Lets so many events happen, and then lets the world end well. How often things go wrong, and how fast time
/// passes, is drawn for each world (swarm testing: Groce and others, ISSTA 2012).
#[must_use]
pub fn live<S: Subject>(mut world: World<S>, seed: u64, most: usize) -> Lived {
    let mut dice = Dice::new(seed);
    let wrong = [Chance(100), Chance(500), Chance(1_500), Chance(4_000)][dice.index(4)];
    let passes = [Chance(200), Chance(1_000), Chance(3_000)][dice.index(3)];
    let mut events = Vec::new();
    while events.len() < most && world.broken().is_none() {
        let possible = world.events();
        let of = |cause: Cause| possible.iter().filter(|event| event.cause() == cause).copied().collect();
        let [course, time, faults]: [Vec<Event>; 3] = [Cause::Course, Cause::Time, Cause::Fault].map(of);
        let kinds = match (dice.chance(wrong), dice.chance(passes)) {
            (true, _) => [faults, course, time],
            (false, true) => [time, course, faults],
            (false, false) => [course, time, faults],
        };
        let Some(possible) = kinds.iter().find(|kind| !kind.is_empty()) else { break };
        let event = possible[dice.index(possible.len())];
        world.apply(event);
        events.push(event);
    }
    if world.broken().is_none() {
        world.settle();
    }
    Lived { broken: world.broken().cloned(), events }
}
