//! A multi that is refused keeps what was judged before the part that was refused.

use node_core::Rules;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "multi-in-part",
    origin: "ZOOKEEPER-1624",
    summary: "a multi is applied up to the part that is refused",
    rules: &MultiInPart,
    recipe: Err("needs clients that change several nodes at once"),
    ..USUAL
};

#[derive(Debug)]
struct MultiInPart;

impl Rules for MultiInPart {
    fn multi_is_atomic(&self) -> bool {
        false
    }
}
