//! Equal places mean equal trees: whoever has applied everything up to a zxid holds the tree that everybody
//! else held there. (Zab.tla has no trees.)

use node_wire::ids::Zxid;

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    pub(super) fn check_same_tree(&mut self, host: HostIndex, applied: Zxid, digest: i64) -> Finding {
        let Ok(place) = self.committed.binary_search_by_key(&applied, |committed| committed.mark.zxid) else {
            return Ok(());
        };
        let known = *self.committed[place].digest.get_or_insert(digest);
        if known == digest {
            return Ok(());
        }
        Err((
            Rule::SameTree,
            format!("server {}'s tree at {applied} differs from that of another member", server(host).0),
        ))
    }
}
