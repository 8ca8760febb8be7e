//! Every process, killed at once.

use crate::mechanism::kill::KILL;

use super::Fault;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "kill-all",
    about: "SIGKILL to all at once; their logs are cut back to what was synced",
    mechanism: &KILL,
    fewest_nodes: (1, ""),
    loses_unsynced: true,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    Some(draw.scene.kill(&draw.there))
}
