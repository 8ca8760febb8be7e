//! The ensemble, cut into a majority and a minority.

use crate::mechanism::partition::PARTITION;

use super::Fault;
use super::scene::{Draw, Resolved};
use super::topology;
use crate::cut::{Cut, Severing};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "partition-halves",
    about: "cuts the ensemble into a majority and a minority, drawn anew each time",
    mechanism: &PARTITION,
    fewest_nodes: (3, "of two members none is a minority: take partition-one"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let scene = draw.scene;
    let mut majority = scene.shuffled(&mut draw.rng);
    let minority = majority.split_off(topology::quorum(scene.voters.len()));
    let groups = scene.with_observers(minority, majority, &mut draw.rng);
    let sentence = format!("partition {} from {}", scene.names(&groups[0]), scene.names(&groups[1]));
    Some(scene.cut(Cut::between(&groups, Severing::Silence), groups, sentence))
}
