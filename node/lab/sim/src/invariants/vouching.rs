//! Vouching: currentEpoch stands on a disk only behind the history that it vouches for.
//!
//! A member votes with its currentEpoch, and whoever has a higher one wins. So the moment it is on disk, the
//! log on that disk is the history that the epoch began with, and behind it nothing but proposals of the
//! epoch: no entry too few (ZOOKEEPER-4643), none too many (ZOOKEEPER-4712), wherever a crash falls.

use node_wire::ids::Epoch;

use super::{Finding, Invariants, Mark, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A leader takes its own log for the history of an epoch.
    pub(super) fn begins(&mut self, host: HostIndex, epoch: Epoch) {
        self.histories.insert(epoch, self.views[host].logged.clone());
    }

    /// A member's currentEpoch became durable.
    pub(super) fn check_vouching(&self, host: HostIndex, epoch: Epoch) -> Finding {
        let Some(history) = self.histories.get(&epoch) else { return Ok(()) };
        let durable = &self.views[host].durable;
        // What both have only as a tree is compared by its digest, elsewhere.
        let from = durable.base().max(history.base());
        let (own, whole) = (durable.range(from, history.last()), history.range(from, history.last()));
        let differs = |from: &[Mark], other: &[Mark]| {
            (from != other).then(|| from.iter().copied().find(|mark| !other.contains(mark))).flatten()
        };
        if let Some(missing) = differs(whole, own) {
            return Err((
                Rule::Vouching,
                format!(
                    "server {} has epoch {} on its disk, but not {} of the history that it began with",
                    server(host).0,
                    epoch.0,
                    missing.zxid
                ),
            ));
        }
        if durable.last() < history.base() {
            return Err((
                Rule::Vouching,
                format!(
                    "server {} has epoch {} on its disk, but its log ends at {} before the tree that it \
                        began with",
                    server(host).0,
                    epoch.0,
                    durable.last()
                ),
            ));
        }
        let later = durable.range(history.last().max(durable.base()), durable.last());
        let strange = || later.iter().copied().find(|mark| mark.zxid.epoch() != epoch);
        match differs(own, whole).or_else(strange) {
            None => Ok(()),
            Some(mark) => Err((
                Rule::Vouching,
                format!(
                    "server {} has epoch {} on its disk, and {}, which is not in its history",
                    server(host).0,
                    epoch.0,
                    mark.zxid
                ),
            )),
        }
    }
}
