//! A leader whose quorum is gone goes on: it answers reads from an ever older tree, takes writes that nobody
//! commits, and when the network is whole again it still leads beside the leader of a later epoch.

use node_core::Rules;

use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "no-abdication",
    origin: "leader without a quorum",
    summary: "a leader that lost its quorum goes on leading",
    rules: &NoAbdication,
    recipe: Ok(Recipe {
        nemesis: "partition-leader,partition-oneway",
        workload: "register",
        flags: "",
        tries: 5,
    }),
    ..USUAL
};

#[derive(Debug)]
struct NoAbdication;

impl Rules for NoAbdication {
    fn abdicates(&self) -> bool {
        false
    }
}
