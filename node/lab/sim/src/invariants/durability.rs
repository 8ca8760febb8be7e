//! Durability: what is committed is on the disks of a quorum, what was acknowledged is committed, and every
//! later leader has it.

use node_wire::ids::{Epoch, Zxid};

use super::{Finding, Invariants, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// At the first sight of a committed entry, and at the end.
    pub(super) fn check_quorum(&self, mark: Mark) -> Finding {
        let voters = self.memberships.voters_at(mark.zxid);
        let holders = voters.iter().filter(|voter| self.holds(**voter, mark)).count();
        let quorum = voters.len() / 2 + 1;
        if holders >= quorum {
            return self.check_both(mark);
        }
        Err((
            Rule::Durability,
            format!("{} was committed while {holders} of {} disks held it", mark.zxid, voters.len()),
        ))
    }

    /// When a leader is established: everything committed in earlier epochs is in its history.
    ///
    /// Only earlier epochs: a leader that was deposed while it slept may learn late that it was established.
    pub(super) fn check_history_of_leader(&self, host: HostIndex, epoch: Epoch) -> Finding {
        let logged = &self.views[host].logged;
        let committed = self.committed.iter().map(|committed| committed.mark);
        let unseen = self
            .unseen
            .iter()
            .filter_map(|zxid| self.proposed.get(zxid).map(|known| Mark { zxid: *zxid, hash: known.hash }));
        match committed.chain(unseen).find(|mark| mark.zxid.epoch() < epoch && !logged.holds(*mark)) {
            None => Ok(()),
            Some(mark) => Err((
                Rule::Durability,
                format!(
                    "server {} leads epoch {} without {}, which was committed before",
                    server(host).0,
                    epoch.0,
                    mark.zxid
                ),
            )),
        }
    }

    /// A client was told that its write happened.
    pub(crate) fn acknowledged(&mut self, zxid: Zxid) -> Finding {
        if self.committed.binary_search_by_key(&zxid, |committed| committed.mark.zxid).is_ok() {
            return Ok(());
        }
        if !self.proposed.contains_key(&zxid) {
            return Err((Rule::Durability, format!("{zxid} was acknowledged and never proposed")));
        }
        // The member may have died in the step in which it applied the entry, before anybody looked.
        self.unseen.push(zxid);
        Ok(())
    }

    /// At the end, when every member applied everything: nothing of it may have been lost since.
    pub(crate) fn check_acknowledged(&self) -> Finding {
        let lost = self.unseen.iter().find(|zxid| {
            self.committed.binary_search_by_key(*zxid, |committed| committed.mark.zxid).is_err()
        });
        if let Some(zxid) = lost {
            return Err((Rule::Durability, format!("{zxid} was acknowledged and is nowhere at the end")));
        }
        self.check_ruled()?;
        self.committed.iter().try_for_each(|committed| self.check_quorum(committed.mark))
    }
}
