//! LocalPrimaryOrder (Zab.tla): if a primary broadcasts a before b, whoever delivers b delivers a before it.
//!
//! A primary's broadcasts ascend within its epoch, so the one right before an entry is the one that must have
//! been delivered right before it.

use node_wire::ids::Zxid;

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A member delivers `zxid` right behind `before`.
    pub(super) fn check_local_primary_order(&self, host: HostIndex, before: Zxid, zxid: Zxid) -> Finding {
        match self.proposed.range(..zxid).next_back() {
            Some((earlier, _)) if earlier.epoch() == zxid.epoch() && *earlier > before => Err((
                Rule::LocalPrimaryOrder,
                format!(
                    "server {} applied {zxid} behind {before}, without {earlier} of the same primary",
                    server(host).0
                ),
            )),
            _ => Ok(()),
        }
    }
}
