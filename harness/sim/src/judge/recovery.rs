//! Recovery: a crash takes what was in flight and nothing else.

use node_core::io::StoreOp;
use node_wire::ids::{Epoch, Zxid};
use node_wire::txn::Entry;

use super::{Finding, Judge, Shadow, View, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// What a log recovered, as far as the judge cares.
pub(crate) struct Found<'a> {
    /// The snapshot's zxid.
    pub(crate) base: Zxid,
    /// The entries behind it.
    pub(crate) entries: &'a [Entry],
    /// The operation that the crash interrupted.
    pub(crate) interrupted: Option<&'a StoreOp>,
}

impl Judge {
    /// A member starts from what its disk holds.
    pub(crate) fn recovers(&mut self, host: HostIndex, found: &Found<'_>) -> Finding {
        let durable = &self.views[host].durable;
        let recovered = Shadow::recovered(found.base, found.entries);
        let keep = match found.interrupted {
            Some(StoreOp::Truncate(zxid)) => *zxid,
            // Half-way or done: the tree that was installed stands for everything before it.
            Some(StoreOp::Install(image)) if image.zxid == found.base => Zxid::ZERO,
            _ => durable.last(),
        };
        if let Some(mark) = durable.range(durable.base(), keep).iter().find(|mark| !recovered.holds(**mark)) {
            return Err((
                Rule::Recovery,
                format!("server {} lost {}, which was durable", server(host).0, mark.zxid),
            ));
        }
        if recovered.last() < durable.base().min(keep) {
            return Err((
                Rule::Recovery,
                format!("server {} lost its tree at {}", server(host).0, durable.base()),
            ));
        }
        let strange = found.entries.iter().find(|entry| !self.proposed.contains_key(&entry.zxid()));
        if let Some(entry) = strange {
            return Err((
                Rule::Recovery,
                format!("server {} recovered {}, which nobody proposed", server(host).0, entry.zxid()),
            ));
        }
        self.views[host] =
            View { logged: recovered.clone(), durable: recovered, applied: Zxid::ZERO, epoch: Epoch::ZERO };
        Ok(())
    }
}
