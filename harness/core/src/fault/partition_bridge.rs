//! Two halves that one member connects.

use crate::mechanism::partition::PARTITION;

use super::Fault;
use super::scene::{Draw, Resolved};
use crate::cut::{Cut, Severing};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "partition-bridge",
    about: "cuts the ensemble into two halves that only one member connects",
    mechanism: &PARTITION,
    fewest_nodes: (3, "a bridge stands between two others"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let scene = draw.scene;
    // An observer would connect the halves, but not for the votes of either.
    let bridge = match scene.voters.contains(&draw.any) {
        true => draw.any,
        false => draw.there.iter().copied().find(|member| scene.voters.contains(member))?,
    };
    let mut larger = scene.shuffled(&mut draw.rng);
    larger.retain(|member| *member != bridge);
    let smaller = larger.split_off(larger.len().div_ceil(2));
    // The bridge is on both sides.
    let groups = scene.with_observers(smaller, larger, &mut draw.rng);
    let (one, few, many) = (scene.names(&[bridge]), scene.names(&groups[0]), scene.names(&groups[1]));
    let sentence = format!("bridge {one} between {few} and {many}");
    let resolved = scene.cut(Cut::between(&groups, Severing::Silence), groups, sentence);
    Some(Resolved { targets: vec![bridge], ..resolved })
}
