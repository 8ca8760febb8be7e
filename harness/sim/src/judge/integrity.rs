//! Integrity: an entry is logged only if a leader proposed it, and a zxid names one entry for ever.

use super::{Finding, Judge, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Judge {
    pub(super) fn check_integrity(&mut self, host: HostIndex, mark: Mark, leads: bool) -> Finding {
        let last = self.views[host].logged.last();
        if mark.zxid <= last {
            return Err((
                Rule::Integrity,
                format!("server {} logged {} behind {last}", server(host).0, mark.zxid),
            ));
        }
        self.check_proposal(host, mark, leads)
    }

    pub(super) fn check_proposal(&mut self, host: HostIndex, mark: Mark, leads: bool) -> Finding {
        match self.proposed.get(&mark.zxid) {
            Some(hash) if *hash == mark.hash => Ok(()),
            Some(_) => Err((
                Rule::Integrity,
                format!(
                    "server {} holds an entry {} that differs from the first one",
                    server(host).0,
                    mark.zxid
                ),
            )),
            None if leads => {
                self.proposed.insert(mark.zxid, mark.hash);
                Ok(())
            }
            None => Err((
                Rule::Integrity,
                format!("server {} holds {}, which no leader proposed", server(host).0, mark.zxid),
            )),
        }
    }
}
