//! The leader's process, stopped and let go on later.

use crate::mechanism::pause::PAUSE;

use super::Fault;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "pause-leader",
    about: "SIGSTOP to the leader, SIGCONT when the fault is healed",
    mechanism: &PAUSE,
    fewest_nodes: (3, "with fewer nobody can take over from a paused leader"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    Some(draw.scene.pause(draw.leader?))
}
