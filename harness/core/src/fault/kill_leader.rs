//! The leader's process, killed.

use crate::mechanism::kill::KILL;

use super::Fault;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "kill-leader",
    about: "SIGKILL to the leader, started again when the fault is healed",
    mechanism: &KILL,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    Some(draw.scene.kill(&[draw.leader?]))
}
