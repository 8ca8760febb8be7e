//! The leader commits a proposal on its own word.

use node_core::{Acknowledged, Rules};
use node_wire::ids::Zxid;

use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "commit-alone",
    origin: "asynchronous replication",
    summary: "the leader commits on its own word",
    rules: &CommitAlone,
    recipe: Ok(Recipe { nemesis: "partition-leader", workload: "register", flags: "", tries: 3 }),
    ..USUAL
};

#[derive(Debug)]
struct CommitAlone;

impl Rules for CommitAlone {
    fn commits(&self, acknowledged: Acknowledged) -> Zxid {
        acknowledged.proposed
    }
}
