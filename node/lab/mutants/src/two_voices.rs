//! The synchronized connection of a member that comes back stays beside the new one, and what both
//! acknowledge counts twice: three connections of two members pass for three of five.

use node_core::Rules;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "two-voices",
    origin: "a half-open connection that is counted",
    summary: "a member that comes back acknowledges by both of its connections",
    rules: &TwoVoices,
    recipe: Err("needs a member that comes back while its old connection is half open"),
    ..USUAL
};

#[derive(Debug)]
struct TwoVoices;

impl Rules for TwoVoices {
    fn hangs_up_on_older(&self) -> bool {
        false
    }
}
