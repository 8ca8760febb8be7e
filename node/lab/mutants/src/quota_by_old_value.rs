//! What is written is measured by what was there before.

use node_core::Rules;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "quota-by-old-value",
    origin: "old and new value confused",
    summary: "a hard limit looks at what a node held, and not at what it will",
    rules: &QuotaByOldValue,
    recipe: Err("needs clients that set limits"),
    ..USUAL
};

#[derive(Debug)]
struct QuotaByOldValue;

impl Rules for QuotaByOldValue {
    fn measured(&self, _: usize, old: usize) -> usize {
        old
    }
}
