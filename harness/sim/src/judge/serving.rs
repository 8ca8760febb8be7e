//! Serving: a member answers only while its epoch stands, and from all that it was told to be committed.
//!
//! Between two epochs nobody knows how old its tree is (a read of it may be stale by any measure, and a sync there
//! is a lie). When it serves, what its leader said to be committed is in the tree: each COMMIT, the ones that
//! came before UPTODATE as well (ZOOKEEPER-4394, 3023).

use node_wire::ids::Zxid;

use super::{Finding, Judge, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Judge {
    /// The leader of a member says that everything up to here is committed.
    pub(crate) fn hears(&mut self, host: HostIndex, committed: Zxid) {
        let view = &mut self.views[host];
        view.told = view.told.max(committed);
    }

    /// A member writes to a client. `serves`: its epoch stood before the step in which it does so, or stands after it.
    pub(crate) fn answers(&self, host: HostIndex, serves: bool) -> Finding {
        if serves {
            return Ok(());
        }
        Err((
            Rule::Serving,
            format!("server {} answers a client though no epoch stands there", server(host).0),
        ))
    }

    /// A member without a leader writes to a client that is content with that: from a state that the ensemble was in.
    pub(crate) fn answers_alone(&self, host: HostIndex, applied: Zxid, digest: i64) -> Finding {
        let place = self.committed.binary_search_by_key(&applied, |committed| committed.mark.zxid);
        let known = place.ok().and_then(|place| self.committed[place].digest);
        let ever = place.is_ok() || applied == Zxid::ZERO || applied > self.last_committed();
        if ever && known.is_none_or(|known| known == digest) {
            return Ok(());
        }
        Err((
            Rule::Serving,
            format!("server {} reads from {applied}, as the ensemble never was", server(host).0),
        ))
    }

    /// After each step of a member.
    pub(super) fn check_told(&self, host: HostIndex, serves: bool, applied: Zxid) -> Finding {
        let told = self.views[host].told;
        if !serves || applied >= told {
            return Ok(());
        }
        Err((
            Rule::Serving,
            format!(
                "server {} serves from {applied}, though it was told that {told} is committed",
                server(host).0
            ),
        ))
    }
}
