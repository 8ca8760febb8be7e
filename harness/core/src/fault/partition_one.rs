//! One member, cut off whatever its role.

use crate::mechanism::partition::PARTITION;

use super::Fault;
use super::scene::{Draw, Resolved};
use crate::cut::Severing;

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "partition-one",
    about: "cuts one member off, whatever its role",
    mechanism: &PARTITION,
    fewest_nodes: (2, "a member alone has nobody to be cut off from"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    Some(draw.scene.cut_off(draw.any, Severing::Silence))
}
