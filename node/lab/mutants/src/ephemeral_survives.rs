//! An ephemeral outlives its session: from a snapshot it is restored without its owner, and nobody removes
//! it.

use node_core::Rules;
use node_core::tree::Tree;
use node_wire::snapshot::Image;

use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "ephemeral-survives",
    origin: "ZOOKEEPER-2355, 1367",
    summary: "an ephemeral survives its session",
    rules: &EphemeralSurvives,
    recipe: Ok(Recipe {
        nemesis: "kill-one",
        workload: "ephemeral",
        flags: "--session-timeout 4s",
        tries: 3,
    }),
    ..USUAL
};

#[derive(Debug)]
struct EphemeralSurvives;

impl Rules for EphemeralSurvives {
    fn restore(&self, image: &Image) -> Tree {
        let mut tree = Tree::of_nodes(image);
        tree.find_quotas();
        tree
    }
}
