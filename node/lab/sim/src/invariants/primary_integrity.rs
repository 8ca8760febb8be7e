//! PrimaryIntegrity (Zab.tla): a primary that broadcasts has delivered before whatever anybody delivers of
//! earlier epochs.
//!
//! Looked at from both sides: when a primary first broadcasts, it must have delivered all that is known to be
//! committed of earlier epochs; and once it has, nothing of an earlier epoch may be delivered for the first
//! time.

use node_wire::ids::{Epoch, Zxid};

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A member that broadcasts in this epoch has delivered so much.
    pub(super) fn check_primary_integrity(&self, host: HostIndex, epoch: Epoch, applied: Zxid) -> Finding {
        let earlier = self.committed.partition_point(|committed| committed.mark.zxid.epoch() < epoch);
        match earlier.checked_sub(1).map(|last| self.committed[last].mark.zxid) {
            Some(last) if last > applied => Err((
                Rule::PrimaryIntegrity,
                format!(
                    "server {} broadcasts in epoch {} and has applied only {applied}, not {last}",
                    server(host).0,
                    epoch.0
                ),
            )),
            _ => Ok(()),
        }
    }

    /// A member delivers what nobody has delivered before.
    pub(super) fn check_late_delivery(&self, host: HostIndex, zxid: Zxid) -> Finding {
        match self.broadcasts {
            Some(epoch) if zxid.epoch() < epoch => Err((
                Rule::PrimaryIntegrity,
                format!(
                    "server {} applied {zxid}, which the primary of epoch {} had not when it broadcast",
                    server(host).0,
                    epoch.0
                ),
            )),
            _ => Ok(()),
        }
    }
}
