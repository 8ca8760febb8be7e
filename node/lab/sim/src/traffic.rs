//! What the clients of a world do: drawn per seed, from dice of its own, so that it changes nothing else.
//!
//! A world's clients share one to three of the workloads that keep a session for long, and each of them takes
//! the next operation from one or another; visitors do what ends sessions. Where several workloads meet, a
//! transaction log, a snapshot and a session carry all of them, as in life.

use std::fmt;

use workloads::Kind;

use crate::part::Part;
use harness_world::dice::{Chance, Dice, HALF};

/// The workloads that worlds mix: one for each kind of object, so that no two of them share a node.
pub(crate) const MIXED: [Kind; 5] =
    [Kind::REGISTER, Kind::SET, Kind::APPEND, Kind::SEQUENTIAL, Kind::EPHEMERAL];

/// How often sets and lists are small, so that a world sees several of them.
const SMALL: Chance = HALF;

/// The workloads of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Those of the clients that stay.
    pub clients: Vec<Kind>,
    /// Those of the visitors.
    pub visitors: Vec<Kind>,
    /// Elements of a set or list at most.
    pub elements: u64,
    /// Share of reads of sets and lists, in percent.
    pub read_percent: u8,
}

impl Traffic {
    /// What a seed draws.
    pub fn of_seed(seed: u64) -> Self {
        let mut dice = Dice::part(seed, Part::Traffic);
        let clients = match dice.between(0, 11) {
            0..=4 => vec![Kind::REGISTER],
            5 => vec![Kind::SET],
            6 => vec![Kind::APPEND],
            7 | 8 => vec![Kind::REGISTER, Kind::APPEND],
            9 => vec![Kind::REGISTER, Kind::SET],
            10 => vec![Kind::REGISTER, Kind::SEQUENTIAL],
            _ => vec![Kind::REGISTER, Kind::SET, Kind::APPEND],
        };
        let visitors = match dice.between(0, 3) {
            0 => vec![Kind::SEQUENTIAL],
            1 => vec![Kind::EPHEMERAL],
            _ => vec![Kind::SEQUENTIAL, Kind::EPHEMERAL],
        };
        let elements = if dice.chance(SMALL) { dice.between(4, 16) } else { dice.between(32, 128) };
        let read_percent = if dice.chance(HALF) { 30 } else { 60 };
        Self { clients, visitors, elements, read_percent }
    }

    /// Everything, by everybody.
    pub(crate) fn all() -> Self {
        let (clients, visitors) = (MIXED.to_vec(), MIXED.to_vec());
        Self { clients, visitors, elements: 32, read_percent: 30 }
    }

    /// Every workload of the world, each once.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = self.clients.iter().chain(&self.visitors).copied().collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        write!(
            f,
            "clients do {}; visitors do {}; up to {} elements, {}% reads of sets and lists",
            names(&self.clients),
            names(&self.visitors),
            self.elements,
            self.read_percent
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_that_worlds_mix_is_done_in_many_of_them() {
        for kind in MIXED {
            let worlds = (0..200).filter(|seed| Traffic::of_seed(*seed).kinds().contains(&kind)).count();
            assert!(worlds > 30, "{}: {worlds} of 200", kind.name());
        }
    }
}
