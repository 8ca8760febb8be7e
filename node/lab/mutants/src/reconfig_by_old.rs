//! A membership is committed as anything else is, by a quorum of the one that rules. Those that it is made of
//! need not know of it.

use std::collections::BTreeSet;

use node_core::Rules;
use node_core::quorum::Quorum;
use node_wire::ids::ServerId;

use crate::{OPERATORS, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "reconfig-by-old",
    origin: "one quorum for two memberships",
    summary: "a membership is committed by a quorum of the old one alone",
    rules: &ReconfigByOld,
    recipe: Err(OPERATORS),
    ..USUAL
};

#[derive(Debug)]
struct ReconfigByOld;

impl Rules for ReconfigByOld {
    fn quorum(&self, active: BTreeSet<ServerId>, _: Option<BTreeSet<ServerId>>) -> Quorum {
        Quorum::majority(active)
    }
}
