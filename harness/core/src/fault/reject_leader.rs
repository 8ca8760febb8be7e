//! Every connection between the leader and the others, reset.

use crate::mechanism::reject::REJECT;

use super::Fault;
use super::scene::{Draw, Resolved};
use crate::cut::Severing;

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "reject-leader",
    about: "resets every connection between the leader and the others, old and new",
    mechanism: &REJECT,
    fewest_nodes: (2, "a member alone has nobody to be cut off from"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    Some(draw.scene.cut_off(draw.leader?, Severing::Reject))
}
