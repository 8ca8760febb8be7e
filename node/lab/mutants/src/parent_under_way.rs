//! A node may be made below one whose deletion is proposed and not yet committed.

use node_core::Rules;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "parent-under-way",
    origin: "judged by what is committed",
    summary: "a node is made below a parent whose deletion is under way",
    rules: &ParentUnderWay,
    recipe: Err("needs clients that make nodes below what others delete"),
    ..USUAL
};

#[derive(Debug)]
struct ParentUnderWay;

impl Rules for ParentUnderWay {
    fn judged_by_proposals(&self) -> bool {
        false
    }
}
