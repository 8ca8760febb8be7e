//! Everything between the leader and the others, slow.

use super::Fault;
use super::scene::{Draw, Resolved};
use crate::mechanism::latency::{LATENCY, Slow};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "slow-leader",
    about: "makes everything between the leader and the others take longer, either way",
    mechanism: &LATENCY,
    fewest_nodes: (2, "a member alone speaks with nobody"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let (scene, target) = (draw.scene, draw.leader?);
    let slow = Slow::around(target, scene.members, &draw.parameters);
    let sentence = format!("slow {} by {} each way", scene.names(&[target]), slow.words());
    Some(scene.resolved(vec![target], slow, Vec::new(), sentence))
}
