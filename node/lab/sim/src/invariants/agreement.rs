//! Agreement (Zab.tla): if one member delivers a and another delivers b, one of them delivers both.
//!
//! Two members that apply entry by entry can only disagree by differing at a place, which prefix consistency
//! sees first. A tree that is taken over is the other way to deliver: it ends with an entry, and unless that
//! entry is in the one sequence, or right at its end, its holder has delivered what the others have not, and
//! they what it has not.

use node_wire::ids::Zxid;

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A member delivers a whole tree that ends at this zxid.
    pub(super) fn check_agreement(&self, host: HostIndex, zxid: Zxid) -> Finding {
        if zxid > self.last_committed()
            || self.committed.binary_search_by_key(&zxid, |committed| committed.mark.zxid).is_ok()
        {
            return Ok(());
        }
        Err((
            Rule::Agreement,
            format!("server {} holds a tree of {zxid}, which was never committed", server(host).0),
        ))
    }
}
