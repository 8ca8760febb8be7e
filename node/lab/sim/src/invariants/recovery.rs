//! Recovery: a crash takes what was in flight and nothing else.

use node_core::io::StoreOp;
use node_wire::ids::{Epoch, Zxid};
use node_wire::txn::Entry;

use super::{Finding, Invariants, Mark, Shadow, View, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// What a log recovered, as far as the invariant needs it.
pub(crate) struct Found<'a> {
    /// The snapshot's zxid.
    pub(crate) base: Zxid,
    /// The entries behind it.
    pub(crate) entries: &'a [Entry],
    /// The epochs.
    pub(crate) accepted: Epoch,
    pub(crate) current: Epoch,
    /// The operation that the crash interrupted.
    pub(crate) interrupted: Option<&'a StoreOp>,
}

impl Invariants {
    /// A member starts from what its disk holds.
    pub(crate) fn recovers(&mut self, host: HostIndex, found: &Found<'_>) -> Finding {
        let recovered = Shadow::recovered(found.base, found.entries);
        self.check_recovered(host, found, &recovered)?;
        self.views[host] = View {
            logged: recovered.clone(),
            durable: recovered,
            accepted: found.accepted,
            current: found.current,
            ..View::default()
        };
        Ok(())
    }

    /// Whether a member that was to start now might find this.
    pub(crate) fn check_recovery(&self, host: HostIndex, found: &Found<'_>) -> Finding {
        self.check_recovered(host, found, &Shadow::recovered(found.base, found.entries))
    }

    fn check_recovered(&self, host: HostIndex, found: &Found<'_>, recovered: &Shadow) -> Finding {
        let durable = &self.views[host].durable;
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
        for entry in found.entries {
            let mark = Mark::of(entry);
            if self.proposed.get(&mark.zxid).is_none_or(|known| known.hash != mark.hash) {
                return Err((
                    Rule::Recovery,
                    format!(
                        "server {} recovered an entry {} that nobody proposed",
                        server(host).0,
                        mark.zxid
                    ),
                ));
            }
        }
        let View { accepted, current, .. } = self.views[host];
        if found.accepted < accepted || found.current < current {
            return Err((
                Rule::Recovery,
                format!(
                    "server {} recovered the epochs {} and {}, and {} and {} were durable",
                    server(host).0,
                    found.accepted.0,
                    found.current.0,
                    accepted.0,
                    current.0
                ),
            ));
        }
        Ok(())
    }
}
