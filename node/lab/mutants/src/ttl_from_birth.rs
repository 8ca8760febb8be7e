//! A time to live counts from the node's making: writing it does not keep it alive.

use node_core::Rules;
use node_wire::snapshot::StatPersisted;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "ttl-from-birth",
    origin: "ctime taken for mtime",
    summary: "a node with a time to live is reaped though it was written",
    rules: &TtlFromBirth,
    recipe: Err("needs nodes with a time to live, and the leader's clock"),
    ..USUAL
};

#[derive(Debug)]
struct TtlFromBirth;

impl Rules for TtlFromBirth {
    fn lives_since(&self, stat: &StatPersisted) -> i64 {
        stat.ctime
    }
}
