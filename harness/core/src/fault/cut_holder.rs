//! The application that holds, cut off from every member.

use crate::mechanism::application::APPLICATION;

use super::Fault;
use super::application::Harm;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "cut-holder",
    about: "silence between the application that holds and all members, for longer than its session",
    mechanism: &APPLICATION,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let holder = draw.holder?;
    Some(draw.scene.harm(
        holder,
        Harm::Cut,
        format!("cut {holder}, off from all members for longer than its session"),
    ))
}
