//! The leader's process, stopped and let go on later.

use runs::mechanism::Mechanism;

use super::Fault;
use super::action::Action;
use super::scene::{Draw, Resolved, without};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "pause-leader",
    about: "SIGSTOP to the leader, SIGCONT when the fault is healed",
    mechanism: Mechanism::Pause,
    fewest_nodes: (3, "with fewer nobody can take over from a paused leader"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let (scene, targets) = (draw.scene, vec![draw.leader?]);
    let sides = vec![targets.clone(), without(scene.members, &targets)];
    let sentence = format!("pause {}", scene.names(&targets));
    Some(scene.resolved(targets.clone(), Action::Pause { members: targets }, sides, sentence))
}
