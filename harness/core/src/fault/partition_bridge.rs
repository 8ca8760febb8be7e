//! Two halves that one member connects.

use runs::mechanism::Mechanism;

use super::Fault;
use super::scene::{Draw, Resolved};
use crate::cut::{Cut, Severing};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "partition-bridge",
    about: "cuts the ensemble into two halves that only one member connects",
    mechanism: Mechanism::Partition,
    fewest_nodes: (3, "a bridge stands between two others"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let (scene, bridge) = (draw.scene, draw.any);
    let mut larger = scene.shuffled(&mut draw.rng);
    larger.retain(|member| *member != bridge);
    let mut smaller = larger.split_off(larger.len().div_ceil(2));
    smaller.sort_unstable();
    larger.sort_unstable();
    let (one, few, many) = (scene.names(&[bridge]), scene.names(&smaller), scene.names(&larger));
    let sentence = format!("bridge {one} between {few} and {many}");
    // The bridge is on both sides.
    let groups = vec![smaller, larger];
    let resolved = scene.cut(Cut::between(&groups, Severing::Silence), groups, sentence);
    Some(Resolved { targets: vec![bridge], ..resolved })
}
