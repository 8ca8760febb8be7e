//! The application that holds, stopped for longer than its session and let go on later: the classical split
//! brain. It wakes up and believes that it still holds.

use crate::mechanism::application::APPLICATION;

use super::Fault;
use super::application::Harm;
use super::scene::{Draw, Resolved};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "pause-holder",
    about: "SIGSTOP to the application that holds, for longer than its session, then SIGCONT",
    mechanism: &APPLICATION,
    fewest_nodes: (1, ""),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let holder = draw.holder?;
    Some(draw.scene.harm(holder, Harm::Pause, format!("pause {holder}, for longer than its session")))
}
