//! The hunt for a planted bug: in drawn worlds, seed after seed, and where none of them shows it in every
//! interleaving of a few requests. A bug that is not found there is a fault of whoever looks.

use crate::entry::Entry;
use crate::explore::Bounds;
use crate::protocol::Broken;
use crate::world::Options;

/// How far a hunt goes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Worlds.
    pub worlds: u64,
    /// States of each exploration.
    pub states: usize,
}

/// What shows a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The world of a seed.
    World(u64),
    /// So many states of one of the [`explorations`], by its place.
    Interleaving(usize, usize),
}

/// A bug that was found, and what it breaks.
pub type Found = (Shown, Broken);

/// Hunts a bug; `stop` says when to give up.
///
/// # Panics
/// When the protocol has no bug of that name.
pub fn hunt(entry: &Entry, bug: &str, limits: Limits, stop: &dyn Fn() -> bool) -> Option<Found> {
    let protocol = (entry.make)(Some(bug)).expect("a bug of that name");
    let in_world = |seed| Some((Shown::World(seed), protocol.simulate(seed, Options::default()).broken?));
    if let Some(found) = (0..limits.worlds).take_while(|_| !stop()).find_map(in_world) {
        return Some(found);
    }
    (0..).zip(explorations(limits.states)).take_while(|_| !stop()).find_map(|(at, (_, bounds))| {
        let found = protocol.explore(MEMBERS, &bounds, Some(bug));
        Some((Shown::Interleaving(at, found.states), found.broken?.0))
    })
}

/// What the clean protocol breaks in what shows a bug: in the same world, or the same exploration.
///
/// # Panics
/// When the protocol can't be made.
#[must_use]
pub fn accused(entry: &Entry, shown: Shown, limits: Limits) -> Option<Broken> {
    let protocol = (entry.make)(None).expect("a protocol without a bug");
    match shown {
        Shown::World(seed) => protocol.simulate(seed, Options::default()).broken,
        Shown::Interleaving(at, _) => {
            let (_, bounds) = explorations(limits.states).into_iter().nth(at)?;
            protocol.explore(MEMBERS, &bounds, None).broken.map(|(broken, _)| broken)
        }
    }
}

/// Members that are explored.
const MEMBERS: u8 = 3;

/// What is explored, with its name: each shows what the others leave out.
#[must_use]
pub fn explorations(states: usize) -> [(&'static str, Bounds); 3] {
    [
        ("two members are asked", Bounds { states, ..Bounds::duel() }),
        ("two are asked, and a message comes twice", Bounds { copies: 1, states, ..Bounds::duel() }),
        ("one is asked twice, and crashes", Bounds { states, ..Bounds::restart() }),
    ]
}
