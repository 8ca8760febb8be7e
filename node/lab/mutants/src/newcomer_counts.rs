//! A membership counts from when it is logged: those who join help to commit what makes them members, and
//! those who go are asked no more.

use std::collections::BTreeSet;

use node_core::Rules;
use node_core::quorum::Quorum;
use node_wire::ids::ServerId;

use crate::{OPERATORS, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "newcomer-counts",
    origin: "membership in force when it is logged",
    summary: "a membership is committed by a quorum of the new one alone",
    rules: &NewcomerCounts,
    recipe: Err(OPERATORS),
    ..USUAL
};

#[derive(Debug)]
struct NewcomerCounts;

impl Rules for NewcomerCounts {
    fn quorum(&self, active: BTreeSet<ServerId>, proposed: Option<BTreeSet<ServerId>>) -> Quorum {
        Quorum::majority(proposed.unwrap_or(active))
    }
}
