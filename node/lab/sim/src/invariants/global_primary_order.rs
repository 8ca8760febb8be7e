//! GlobalPrimaryOrder (Zab.tla): a member that delivers entries of two epochs delivers those of the earlier
//! first.

use node_wire::ids::Zxid;

use super::Invariants;
use super::{Finding, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A member delivers `zxid` right behind `before`.
    pub(super) fn check_global_primary_order(&self, host: HostIndex, before: Zxid, zxid: Zxid) -> Finding {
        if zxid.epoch() >= before.epoch() {
            return Ok(());
        }
        Err((
            Rule::GlobalPrimaryOrder,
            format!("server {} applied {zxid} behind {before} of a later epoch", server(host).0),
        ))
    }
}
