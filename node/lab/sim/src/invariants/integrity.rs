//! Integrity (Zab.tla): what a member delivers, some primary has broadcast.
//!
//! Asked of every entry that is logged, long before it is delivered. A zxid names one entry for ever: an
//! entry of the same zxid and other bytes was broadcast by nobody.

use super::{Finding, Invariants, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    pub(super) fn check_integrity(&mut self, host: HostIndex, mark: Mark) -> Finding {
        let last = self.views[host].logged.last();
        if mark.zxid <= last {
            return Err((
                Rule::Integrity,
                format!("server {} logged {} behind {last}", server(host).0, mark.zxid),
            ));
        }
        self.check_broadcast(host, mark)
    }

    pub(super) fn check_broadcast(&self, host: HostIndex, mark: Mark) -> Finding {
        match self.proposed.get(&mark.zxid) {
            Some(proposed) if proposed.hash == mark.hash => Ok(()),
            Some(_) => Err((
                Rule::Integrity,
                format!(
                    "server {} holds an entry {} that differs from the first one",
                    server(host).0,
                    mark.zxid
                ),
            )),
            None => Err((
                Rule::Integrity,
                format!("server {} holds {}, which no leader proposed", server(host).0, mark.zxid),
            )),
        }
    }
}
