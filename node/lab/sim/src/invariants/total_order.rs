//! TotalOrder (Zab.tla): if some member delivers a before b, every member that delivers b delivers a, and
//! before it.

use super::{Finding, Invariants, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A member delivers an entry at a place where others delivered `expected`: it may be an entry that they
    /// delivered elsewhere.
    pub(super) fn check_total_order(
        &self,
        host: HostIndex,
        mark: Mark,
        expected: node_wire::ids::Zxid,
    ) -> Finding {
        match self.committed.binary_search_by_key(&mark.zxid, |committed| committed.mark.zxid) {
            Ok(place) if self.committed[place].mark == mark => Err((
                Rule::TotalOrder,
                format!("server {} applied {} without {expected} before it", server(host).0, mark.zxid),
            )),
            _ => Ok(()),
        }
    }
}
