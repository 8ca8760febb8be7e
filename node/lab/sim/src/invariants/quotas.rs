//! Quotas: what is counted below a path is what is there, and no write goes beyond a hard limit.
//!
//! Limits are judged by what the leader had applied when it proposed (ZooKeeper does the same: what is under
//! way may go beyond them together), so each committed write is judged by that place of the sequence, and
//! each refusal too. What every member counts for itself is in no transaction and in no digest: nobody else
//! would notice that it is wrong.

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;
use node_core::tree::TreeSnapshot;
use node_wire::ids::Zxid;
use node_wire::txn::{Entry, Txn};

use super::{Finding, Invariants, parts_of, server};
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::watcher::{LIMITED, LIMITS, USAGE};

/// What is there, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) nodes: i64,
    pub(crate) bytes: i64,
}

/// What stands at a place of the sequence.
#[derive(Clone, Copy, Debug)]
struct Place {
    there: Amount,
    /// There are limits, and somebody counts.
    limits: Option<Amount>,
    counted: bool,
}

/// What the committed transactions leave below the path that has limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    /// The length of each node, through all of the sequence; none of one that is not there.
    lengths: BTreeMap<ByteString, Vec<(Zxid, Option<i64>)>>,
    places: Vec<(Zxid, Place)>,
}

const NOTHING: Place = Place { there: Amount { nodes: 0, bytes: 0 }, limits: None, counted: false };

fn length(data: Option<&Bytes>) -> i64 {
    i64::try_from(data.map_or(0, Bytes::len)).unwrap_or(i64::MAX)
}

/// The numbers of a text as `count=1,bytes=2=;byteHardLimit=3`, by these names; -1 where there is none.
pub(crate) fn amounts(data: Option<&Bytes>, names: [&str; 2]) -> Amount {
    let text = data.map(|data| String::from_utf8_lossy(data).into_owned()).unwrap_or_default();
    let number = |name: &str| {
        let mut pairs = text.split([',', ';']).map(|pair| pair.split('='));
        pairs
            .find_map(|mut pair| (pair.next() == Some(name)).then(|| pair.next()?.parse().ok())?)
            .unwrap_or(-1)
    };
    Amount { nodes: number(names[0]), bytes: number(names[1]) }
}

fn is_limited(path: &str) -> bool {
    path.strip_prefix(LIMITED).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether so much more is beyond the limits of a place.
fn is_beyond(place: Place, more: Amount) -> bool {
    let beyond = |more: i64, there: i64, limit: i64| more != 0 && limit > -1 && there + more > limit;
    place.counted
        && place.limits.is_some_and(|limits| {
            beyond(more.nodes, place.there.nodes, limits.nodes)
                || beyond(more.bytes, place.there.bytes, limits.bytes)
        })
}

impl Quotas {
    fn at(&self, zxid: Zxid) -> Place {
        let next = self.places.partition_point(|(at, _)| *at <= zxid);
        next.checked_sub(1).map_or(NOTHING, |last| self.places[last].1)
    }

    /// The length of a node before a place.
    fn length_before(&self, path: &str, zxid: Zxid) -> Option<i64> {
        let lengths = self.lengths.get(path)?;
        let next = lengths.partition_point(|(at, _)| *at < zxid);
        lengths[..next].last()?.1
    }

    /// The next committed entry, whose leader had applied so much when it proposed it.
    pub(super) fn commit(&mut self, entry: &Entry, seen: Option<Zxid>) -> Finding {
        match &entry.txn {
            Txn::Multi { txns } => {
                parts_of(txns).iter().try_for_each(|part| self.apply(entry.zxid(), part, seen))
            }
            txn => self.apply(entry.zxid(), txn, seen),
        }
    }

    fn apply(&mut self, zxid: Zxid, txn: &Txn, seen: Option<Zxid>) -> Finding {
        let (path, now) = match txn {
            Txn::Create { path, data, .. } | Txn::SetData { path, data, .. } => (path, Some(data.as_ref())),
            Txn::Delete { path } => (path, None),
            _ => return Ok(()),
        };
        let mut place = self.places.last().map_or(NOTHING, |(_, place)| *place);
        match &**path {
            LIMITS => {
                place.limits = now.map(|data| amounts(data, ["countHardLimit", "byteHardLimit"]));
            }
            USAGE => place.counted = now.is_some(),
            path if is_limited(path) => {}
            _ => return Ok(()),
        }
        let mut finding = Ok(());
        if is_limited(path) {
            let before = self.lengths.get(path).and_then(|lengths| lengths.last()?.1);
            let now = now.map(length);
            let more = Amount {
                nodes: i64::from(now.is_some()) - i64::from(before.is_some()),
                bytes: now.unwrap_or(0) - before.unwrap_or(0),
            };
            if now.is_some() && seen.is_some_and(|seen| is_beyond(self.at(seen), more)) {
                finding = Err((Rule::Quotas, format!("{zxid} makes {path} go beyond a hard limit")));
            }
            place.there.nodes += more.nodes;
            place.there.bytes += more.bytes;
            self.lengths.entry(path.clone()).or_default().push((zxid, now));
        }
        self.places.push((zxid, place));
        finding
    }
}

impl Invariants {
    /// What is counted at a place, if somebody counts there.
    pub(crate) fn counted(&self, at: Zxid) -> Option<Amount> {
        let place = self.quotas.at(at);
        place.counted.then_some(place.there)
    }

    /// A write to a node was refused for want of room: there was none. A node that is made has no data.
    pub(crate) fn check_refusal(&self, zxid: Zxid, path: &str, written: Option<i64>) -> Finding {
        let Some(seen) = self.proposed.get(&zxid).map(|proposed| proposed.seen) else { return Ok(()) };
        let more = match written {
            None => Amount { nodes: 1, bytes: 0 },
            Some(length) => {
                let before = self.quotas.length_before(path, zxid).unwrap_or(0);
                Amount { nodes: 0, bytes: length - before }
            }
        };
        if is_beyond(self.quotas.at(seen), more) {
            return Ok(());
        }
        Err((Rule::Quotas, format!("{path} was refused at {zxid} for want of room, and there was room")))
    }

    /// When all is quiet a member has counted what is there.
    pub(crate) fn check_count(&self, host: HostIndex, tree: &TreeSnapshot) -> Finding {
        let tree = tree.tree();
        if tree.zxid() != self.last_committed() {
            return Ok(());
        }
        let shown = tree.get_data(USAGE).ok().map(|(data, _)| amounts(data.as_ref(), ["count", "bytes"]));
        let counted = self.counted(tree.zxid());
        if shown == counted {
            return Ok(());
        }
        Err((
            Rule::Quotas,
            format!("server {} has counted {shown:?} at the end, where {counted:?} is there", server(host).0),
        ))
    }
}

#[cfg(test)]
mod tests {
    use node_wire::ids::{Epoch, SessionId};
    use node_wire::txn::TxnHeader;

    use super::*;

    const fn at(counter: u32) -> Zxid {
        Zxid(0x1_0000_0000 + counter as u64)
    }

    fn entry(counter: u32, txn: Txn) -> Entry {
        let header = TxnHeader {
            session: SessionId(1),
            cxid: 1,
            zxid: Zxid::new(Epoch(1), counter),
            time_ms: 0,
            kind: txn.kind(),
        };
        Entry::new(header, txn, None)
    }

    fn create(path: &'static str, data: &'static str) -> Txn {
        let data = Some(Bytes::from_static(data.as_bytes()));
        Txn::Create { path: path.into(), data, acl: Vec::new(), ephemeral: false, parent_cversion: 1 }
    }

    fn set(path: &'static str, data: &'static str) -> Txn {
        Txn::SetData { path: path.into(), data: Some(Bytes::from_static(data.as_bytes())), version: 1 }
    }

    /// Two nodes and four bytes may be there, and one node is.
    fn limited() -> Quotas {
        let mut quotas = Quotas::default();
        let limits = "count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=2";
        for (counter, txn) in [(1, create(LIMITED, "")), (2, create(LIMITS, limits)), (3, create(USAGE, ""))]
        {
            quotas.commit(&entry(counter, txn), Some(at(counter - 1))).expect("nothing is limited yet");
        }
        quotas
    }

    #[test]
    fn a_write_is_judged_by_what_its_leader_had_applied() {
        let mut quotas = limited();
        quotas.commit(&entry(4, create("/w/q/0", "")), Some(at(3))).expect("the second");
        quotas.commit(&entry(5, create("/w/q/1", "")), Some(at(3))).expect("under way beside it");
        assert!(quotas.commit(&entry(6, create("/w/q/2", "")), Some(at(5))).is_err());
        quotas.commit(&entry(7, set("/w/q/0", "1234")), Some(at(6))).expect("just enough");
        assert!(quotas.commit(&entry(8, set("/w/q/0", "12345")), Some(at(7))).is_err());
        assert_eq!(quotas.at(at(7)).there, Amount { nodes: 4, bytes: 4 });
    }

    #[test]
    fn where_nobody_counts_nothing_is_limited() {
        let mut quotas = limited();
        quotas.commit(&entry(4, Txn::Delete { path: USAGE.into() }), Some(at(3))).expect("no limit on that");
        quotas.commit(&entry(5, set(LIMITED, "12345")), Some(at(4))).expect("nobody counts");
    }
}
