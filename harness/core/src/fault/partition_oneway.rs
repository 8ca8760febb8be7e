//! One direction between the leader and all others.

use crate::mechanism::partition::PARTITION;

use super::scene::{Draw, Resolved, silence, without};
use super::{Fault, topology};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "partition-oneway",
    about: "makes the leader deaf (it hears nobody) or mute (nobody hears it), in turn",
    mechanism: &PARTITION,
    fewest_nodes: (2, "a member alone has nobody to be cut off from"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let (scene, target) = (draw.scene, draw.leader?);
    let rest = without(scene.members, &[target]);
    let (one, others) = (scene.names(&[target]), scene.names(&rest));
    let (pairs, sentence) = if draw.turn.is_multiple_of(2) {
        (topology::deaf(target, scene.members), format!("{one} deaf: hears none of {others}"))
    } else {
        (topology::mute(target, scene.members), format!("{one} mute: none of {others} hears it"))
    };
    Some(scene.cut(silence(pairs), vec![vec![target], rest], sentence))
}
