//! The application that holds, killed.

use crate::mechanism::application::APPLICATION;

use super::Fault;
use super::application::Harm;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "kill-holder",
    about: "SIGKILL to the application that holds; another one takes its place at once",
    mechanism: &APPLICATION,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let holder = draw.holder?;
    Some(draw.scene.harm(holder, Harm::Kill, format!("kill {holder}")))
}
