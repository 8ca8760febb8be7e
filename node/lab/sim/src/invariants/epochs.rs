//! Epochs: a leader numbers what it proposes within the epoch that it leads, from one upwards without gaps.
//!
//! Everything that compares zxids rests on it. Where the counter runs on from the epoch before, or over into
//! the one behind, two leaders give one zxid to two transactions (ZOOKEEPER-1277 and its like).

use node_wire::ids::Zxid;

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A leader logs a proposal of its own.
    pub(super) fn check_numbering(&self, host: HostIndex, zxid: Zxid) -> Finding {
        let view = &self.views[host];
        let last = view.logged.last();
        let expected = if last.epoch() == view.epoch { last.counter().checked_add(1) } else { Some(1) };
        if zxid.epoch() == view.epoch && Some(zxid.counter()) == expected {
            return Ok(());
        }
        Err((
            Rule::Numbering,
            format!(
                "server {} leads epoch {} and proposes {zxid} behind {last}",
                server(host).0,
                view.epoch.0
            ),
        ))
    }
}
