//! The hunt for planted bugs of recipes: each must break a rule in some world, and sound recipes in none.

use node_recipes::rules::Sound;

use crate::drawn::live;
use crate::mutants::{Mutant, OF_ELECTIONS, OF_STANDBYS};
use crate::world::{Broken, Budget};
use crate::{elections, standbys};

/// What may go wrong in a world of candidates.
pub const OF_CANDIDATES: Budget =
    Budget { breaks: 6, stops: 3, leaves: 2, deletions: 1, removals: 1, ticks: 12 };

/// What may go wrong where one is active and others stand by. Their base znode stays.
pub const OF_PROCESSES: Budget = Budget { removals: 0, ..OF_CANDIDATES };

/// Worlds that find every planted bug, the rarest one too.
pub const WORLDS: u64 = 20_000;

/// Events of a world at most.
const EVENTS: usize = 150;

/// Applications of a world in which a bug is hunted.
const APPLICATIONS: usize = 3;

/// A planted bug, and what came of it.
#[derive(Clone, Debug)]
pub struct Hunted {
    /// Which recipe has it.
    pub recipe: &'static str,
    /// The bug.
    pub mutant: Mutant,
    /// The first world that breaks a rule, counted from 0, and which.
    pub found: Option<(u64, Broken)>,
}

/// Hunts every planted bug in so many worlds at most.
pub fn hunt(most: u64) -> impl Iterator<Item = Hunted> {
    let candidates = OF_ELECTIONS.into_iter().map(move |mutant| {
        let world =
            |seed| live(elections::world(APPLICATIONS, 1, &mutant, OF_CANDIDATES), seed, EVENTS).broken;
        Hunted { recipe: "election", mutant, found: first(most, world) }
    });
    let processes = OF_STANDBYS.into_iter().map(move |mutant| {
        let world = |seed| live(standbys::world(APPLICATIONS, &mutant, OF_PROCESSES), seed, EVENTS).broken;
        let found = standbys::scripted(&mutant).map(|broken| (0, broken));
        Hunted { recipe: "standby", mutant, found: found.or_else(|| first(most, world)) }
    });
    candidates.chain(processes)
}

fn first(most: u64, world: impl Fn(u64) -> Option<Broken>) -> Option<(u64, Broken)> {
    (0..most).find_map(|seed| world(seed).map(|broken| (seed, broken)))
}

/// Rules that sound recipes broke in the world of this seed: elections, semaphores and active/standby.
#[must_use]
pub fn accused(seed: u64) -> Vec<(&'static str, Broken)> {
    let applications = 2 + usize::try_from(seed % 4).unwrap_or(0);
    let lived = [
        ("election", live(elections::world(applications, 1, &Sound, OF_CANDIDATES), seed, EVENTS).broken),
        (
            "semaphore",
            live(elections::world(applications + 1, 2, &Sound, OF_CANDIDATES), seed, EVENTS).broken,
        ),
        ("standby", live(standbys::world(applications, &Sound, OF_PROCESSES), seed, EVENTS).broken),
    ];
    lived.into_iter().filter_map(|(recipe, broken)| Some((recipe, broken?))).collect()
}
