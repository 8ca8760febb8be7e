//! What goes wrong: which fault comes next, whom it hits, and how it ends.
//!
//! It has dice of its own, anew for each turn, so that a fault that is left out of a world changes no other.
//! It decides; what a fault does to members and wires is done to them by the world.

pub(super) mod appointments;
mod cuts;
pub(super) mod disks;
pub(super) mod hypothetical;
pub(super) mod nemesis;
mod non_fail_stop;
mod starts;
pub(super) mod traps;

use std::collections::{BTreeMap, BTreeSet};

use self::appointments::DiskAppointment;
use self::nemesis::Undo;
use self::traps::Armed;

use crate::drawn::Drawn;
use crate::network::HostIndex;
use crate::part::Part;
use harness_world::dice::Dice;

/// Faults: what is in force, what waits for its moment, and what is drawn for the next one.
pub(super) struct Chaos {
    /// The dice of the present turn.
    pub(super) fate: Dice,
    /// Turns that there were.
    pub(super) turn: u64,
    /// What is in force, by number.
    pub(super) faults: BTreeMap<u64, Undo>,
    pub(super) next_fault: u64,
    /// What waits for a member on its way to an epoch.
    pub(super) traps: Vec<Armed>,
    /// The dice of ends that do not happen.
    pub(super) hypothetical: Dice,
    /// Members that stay dead until the others have shown that they are a quorum.
    pub(super) left_dead: BTreeSet<HostIndex>,
    /// What was appointed for a disk, in a world that follows a script.
    pub(super) appointment: Option<DiskAppointment>,
}

impl Chaos {
    /// Nothing is broken yet.
    pub(super) fn new(drawn: &Drawn, dice: &Dice) -> Self {
        Self {
            fate: dice.clone(),
            turn: 0,
            faults: BTreeMap::new(),
            next_fault: 0,
            traps: Vec::new(),
            hypothetical: Dice::part(drawn.seed, Part::Hypothetical),
            left_dead: BTreeSet::new(),
            appointment: None,
        }
    }
}
