//! Every member keeps a majority that no other sees.

use crate::mechanism::partition::PARTITION;

use super::scene::{Draw, Resolved, silence};
use super::{Fault, topology};

/// The fault.
pub(super) const FAULT: Fault = Fault {
    name: "partition-ring",
    about: "leaves every member a majority of its own: no two see the same one",
    mechanism: &PARTITION,
    fewest_nodes: (4, "with three a ring of majorities is a bridge: take partition-bridge"),
    loses_unsynced: false,
    aim,
};

fn aim(draw: &mut Draw<'_>) -> Option<Resolved> {
    let scene = draw.scene;
    let order = scene.shuffled(&mut draw.rng);
    let cut = silence(topology::ring(&order));
    let reaches = topology::quorum(order.len()) - 1;
    let sentence = format!("ring {}: each reaches {reaches} others, no two the same", scene.names(&order));
    // No two members see the same, so each is a side of its own.
    let sides = scene.voters.iter().map(|member| vec![*member]).collect();
    Some(Resolved { targets: order, ..scene.cut(cut, sides, sentence) })
}
