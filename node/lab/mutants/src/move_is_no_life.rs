//! That a client comes to another member is no sign of life: what was left of its time-out goes on.

use node_core::Rules;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "move-is-no-life",
    origin: "a time-out that goes on across a move",
    summary: "a session that moves is not heard by the leader",
    rules: &MoveIsNoLife,
    recipe: Err("needs a session that goes from member to member just before it would expire"),
    ..USUAL
};

#[derive(Debug)]
struct MoveIsNoLife;

impl Rules for MoveIsNoLife {
    fn moving_is_life(&self) -> bool {
        false
    }
}
