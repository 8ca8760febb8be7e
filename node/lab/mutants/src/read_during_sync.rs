//! Reads are answered while the member looks for a leader and is being synchronized: its clients stay, and
//! what needs no leader is answered. A plain read may be old anyway; the harm is the sync before it, which
//! has no leader to go to and counts as done.

use node_core::Rules;

use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "read-during-sync",
    origin: "reads of a member that is not up to date",
    summary: "a read is answered during synchronization",
    rules: &ReadDuringSync,
    recipe: Ok(Recipe {
        nemesis: "kill-one,partition-one",
        workload: "register",
        flags: "--interval 2s --rate 2000",
        tries: 5,
    }),
    ..USUAL
};

#[derive(Debug)]
struct ReadDuringSync;

impl Rules for ReadDuringSync {
    fn serves(&self, _: bool) -> bool {
        true
    }
}
