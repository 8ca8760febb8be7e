//! Votes are compared by (zxid, server id) alone, and so is what a follower tells of its history in
//! discovery: there is no currentEpoch, as before ZooKeeper 3.4. The harm takes three leaders: one logs a
//! proposal alone and dies, the next makes the history of an older log its epoch's, and the first comes back
//! with the larger zxid (figure 8 of the Raft paper is the same schedule).

use node_core::Rules;
use node_wire::ids::{Epoch, Zxid};

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "ignore-peer-epoch",
    origin: "ZOOKEEPER-335, 1081",
    summary: "votes are compared by zxid and id alone, an old epoch's proposals win",
    rules: &IgnorePeerEpoch,
    recipe: Err("needs votes that are late by a chosen time"),
    ..USUAL
};

#[derive(Debug)]
struct IgnorePeerEpoch;

impl Rules for IgnorePeerEpoch {
    fn newness(&self, _: Epoch, last: Zxid) -> (Epoch, Zxid) {
        (Epoch::ZERO, last)
    }
}
