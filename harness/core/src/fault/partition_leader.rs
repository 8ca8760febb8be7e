//! The leader, cut off from every other member.

use crate::mechanism::partition::PARTITION;

use super::Fault;
use super::scene::{Draw, Resolved};
use crate::cut::Severing;

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "partition-leader",
    about: "cuts the leader off from every other member",
    mechanism: &PARTITION,
    fewest_nodes: (2, "a member alone has nobody to be cut off from"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    Some(draw.scene.cut_off(draw.leader?, Severing::Silence))
}
