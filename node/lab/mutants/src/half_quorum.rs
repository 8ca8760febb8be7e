//! Half of the voters pass for a quorum. In ensembles of even size two such halves need not meet; in those of
//! odd size this is no bug at all.

use std::collections::BTreeSet;

use node_core::Rules;
use node_core::quorum::Quorum;
use node_wire::ids::ServerId;

use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "half-quorum",
    origin: "\"at least half\" in common texts",
    summary: "half of the voters pass for a quorum",
    rules: &HalfQuorum,
    // Of two members one is half, and passes for a quorum on either side of the cut.
    recipe: Ok(Recipe {
        nemesis: "partition-leader",
        workload: "register",
        flags: "--nodes 2 --lose-unsynced never",
        tries: 2,
    }),
    ..USUAL
};

#[derive(Debug)]
struct HalfQuorum;

impl Rules for HalfQuorum {
    fn quorum(&self, active: BTreeSet<ServerId>, proposed: Option<BTreeSet<ServerId>>) -> Quorum {
        let half = |voters: BTreeSet<ServerId>| Quorum::of(voters.len().div_ceil(2), voters);
        match proposed {
            None => half(active),
            Some(proposed) => half(active).and_next(half(proposed)),
        }
    }
}
