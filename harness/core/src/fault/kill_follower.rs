//! The process of a member that does not lead, killed.

use crate::mechanism::kill::KILL;
use rand::seq::IndexedRandom;
use runs::member::MemberId;

use super::Fault;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "kill-follower",
    about: "SIGKILL to a member that does not lead, started again when the fault is healed",
    mechanism: &KILL,
    fewest_nodes: (2, "a member alone leads itself: take kill-one"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    // Where nobody is known to lead, whoever is hit might.
    let leader = draw.scene.leader?;
    let followers: Vec<MemberId> = draw
        .there
        .iter()
        .copied()
        .filter(|member| *member != leader && draw.scene.voters.contains(member))
        .collect();
    Some(draw.scene.kill(&[followers.choose(&mut draw.rng).copied()?]))
}
