//! One member's process, stopped whatever its role, and let go on later.

use crate::mechanism::pause::PAUSE;

use super::Fault;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "pause-one",
    about: "SIGSTOP to one member, SIGCONT when the fault is healed",
    mechanism: &PAUSE,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    Some(draw.scene.pause(draw.any))
}
