//! Quotas: how much may be below a path, and how much there is.
//!
//! The limits of `/a` are the data of `/zookeeper/quota/a/zookeeper_limits`, and what is there is kept in its
//! neighbour `zookeeper_stats`, by every member for itself and by no transaction: both are znodes that
//! clients read, and nothing below `/zookeeper` counts for the digest. The nearest path with limits counts a
//! znode, the others do not. A limit is a wish (`count`, `bytes`) or a wall (`countHardLimit`,
//! `byteHardLimit`), and walls stand only where the configuration enforces them.
//!
//! The text of both is `count=4,bytes=50=;byteHardLimit=100`: the stray `=` keeps readers of ZooKeeper 3.4,
//! which know two fields, from stumbling over the others.

use bytes::Bytes;
use bytestring::ByteString;
use std::collections::BTreeMap;

use super::{Tree, parent_of};

/// Below it, the paths that have quotas.
const QUOTAS: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

const COUNT: &str = "count";
const BYTES: &str = "bytes";
const COUNT_HARD: &str = "countHardLimit";
const BYTES_HARD: &str = "byteHardLimit";

/// All that is read. What else clients write there is not kept: it would be read again with every change
/// below.
const NAMES: [&str; 4] = [COUNT, BYTES, COUNT_HARD, BYTES_HARD];

/// Named numbers, -1 where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Track(BTreeMap<&'static str, i64>);

impl Track {
    /// What can't be read is left out: no client's text may stop a member.
    fn parse(data: Option<&Bytes>) -> Track {
        let text = data.map(|data| String::from_utf8_lossy(data)).unwrap_or_default();
        let pairs = text.split([',', ';']).filter_map(|pair| {
            let mut parts = pair.split('=');
            let (name, value) = (parts.next()?, parts.next()?);
            let name = NAMES.into_iter().find(|known| *known == name)?;
            let value = if value.is_empty() { -1 } else { value.parse().ok()? };
            Some((name, value))
        });
        Track(pairs.collect())
    }

    fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(-1)
    }

    fn set(&mut self, name: &'static str, value: i64) {
        self.0.insert(name, value);
    }

    fn to_data(&self) -> Bytes {
        let mut text = format!("{COUNT}={},{BYTES}={}", self.get(COUNT), self.get(BYTES));
        let others = self.0.iter().filter(|(name, _)| **name != COUNT && **name != BYTES);
        for (index, (name, value)) in others.enumerate() {
            text.push_str(if index == 0 { "=;" } else { ";" });
            text.push_str(name);
            text.push('=');
            text.push_str(&value.to_string());
        }
        Bytes::from(text)
    }
}

/// The path whose quota this node is part of, and which part.
fn quota_node(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = parent_of(path)?;
    let of = parent.strip_prefix(QUOTAS)?;
    (of.starts_with('/') && (name == LIMITS || name == STATS)).then_some((of, name))
}

fn part(of: &str, name: &str) -> String {
    format!("{QUOTAS}{of}/{name}")
}

/// What may be below a path and what is there, -1 where nothing is said. A hard limit goes before a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Znodes that may be there.
    pub count_limit: i64,
    /// Bytes of data that may be there.
    pub bytes_limit: i64,
    /// Znodes that are there.
    pub count: i64,
    /// Bytes that are there.
    pub bytes: i64,
}

impl Tree {
    /// Every path with limits.
    pub fn quotas(&self) -> impl Iterator<Item = (ByteString, Quota)> + '_ {
        self.quotas.iter().map(|of| {
            let read = |name| {
                let node = self.node(&part(of, name));
                Track::parse(node.and_then(|node| node.data.as_ref()))
            };
            let (limits, stats) = (read(LIMITS), read(STATS));
            let limit = |hard: &str, wish: &str| match limits.get(hard) {
                -1 => limits.get(wish),
                hard => hard,
            };
            let quota = Quota {
                count_limit: limit(COUNT_HARD, COUNT),
                bytes_limit: limit(BYTES_HARD, BYTES),
                count: stats.get(COUNT),
                bytes: stats.get(BYTES),
            };
            (of.clone(), quota)
        })
    }

    /// The nearest path with limits that a node is at or below.
    fn quota_of(&self, path: &str) -> Option<ByteString> {
        if self.quotas.is_empty() {
            return None;
        }
        let mut path = path;
        while path.len() > 1 {
            if let Some(found) = self.quotas.get(path) {
                return Some(found.clone());
            }
            path = parent_of(path)?.0;
        }
        None
    }

    /// A node was made: it is counted, and may itself be part of a quota.
    pub(super) fn quota_created(&mut self, path: &str, length: usize) {
        match quota_node(path) {
            Some((of, LIMITS)) => {
                self.quotas.insert(ByteString::from(of));
            }
            Some((of, _)) => self.recount(of),
            None => {}
        }
        self.count(path, signed(length), 1);
    }

    /// A node is gone.
    pub(super) fn quota_deleted(&mut self, path: &str, length: usize) {
        if let Some((of, LIMITS)) = quota_node(path) {
            self.quotas.remove(of);
        }
        self.count(path, -signed(length), -1);
    }

    /// A node's data was replaced.
    pub(super) fn quota_set(&mut self, path: &str, before: usize, after: usize) {
        self.count(path, signed(after) - signed(before), 0);
    }

    fn count(&mut self, path: &str, bytes: i64, nodes: i64) {
        let Some(of) = self.quota_of(path) else { return };
        let stats = part(&of, STATS);
        let Some(node) = self.node(&stats) else { return };
        let mut track = Track::parse(node.data.as_ref());
        track.set(COUNT, track.get(COUNT).saturating_add(nodes));
        track.set(BYTES, track.get(BYTES).saturating_add(bytes));
        self.set_silently(&stats, track.to_data());
    }

    /// Counts everything at and below a path anew.
    fn recount(&mut self, of: &str) {
        let mut track = Track::default();
        let (mut nodes, mut bytes) = (0, 0);
        for node in self.subtree(of) {
            nodes += 1;
            bytes += signed(node.data.as_ref().map_or(0, Bytes::len));
        }
        track.set(COUNT, nodes);
        track.set(BYTES, bytes);
        self.set_silently(&part(of, STATS), track.to_data());
    }

    /// A tree that came whole: finds its quotas and counts what is below them.
    pub fn find_quotas(&mut self) {
        let quotas = self.nodes_below(QUOTAS).filter_map(|(path, _)| match quota_node(path) {
            Some((of, LIMITS)) => Some(ByteString::from(of)),
            _ => None,
        });
        self.quotas = quotas.collect();
        for of in self.quotas.clone() {
            self.recount(&of);
        }
    }

    /// True when so much more would be beyond a wall.
    pub(crate) fn exceeds_quota(&self, path: &str, bytes: i64, nodes: i64) -> bool {
        let Some(of) = self.quota_of(path) else { return false };
        let read = |name| Some(Track::parse(self.node(&part(&of, name))?.data.as_ref()));
        let (Some(limits), Some(stats)) = (read(LIMITS), read(STATS)) else { return false };
        let beyond = |more: i64, now: &str, wall: &str| {
            let wall = limits.get(wall);
            more != 0 && wall > -1 && stats.get(now).saturating_add(more) > wall
        };
        beyond(nodes, COUNT, COUNT_HARD) || beyond(bytes, BYTES, BYTES_HARD)
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use node_wire::snapshot::{NodeRecord, StatPersisted};

    use super::*;

    #[test]
    fn a_hard_limit_goes_before_a_wish_where_limits_are_told() {
        let mut tree = Tree::default();
        let mut put = |path: &'static str, data: &'static str| {
            let stat = StatPersisted::default();
            let data = Some(Bytes::from_static(data.as_bytes()));
            tree.put(NodeRecord { path: path.into(), data, acl: -1, stat });
        };
        put("/a", "12345");
        put("/zookeeper/quota/a", "");
        put("/zookeeper/quota/a/zookeeper_limits", "count=4,bytes=50=;byteHardLimit=100");
        put("/zookeeper/quota/a/zookeeper_stats", "");
        tree.find_quotas();
        let quota = Quota { count_limit: 4, bytes_limit: 100, count: 1, bytes: 5 };
        assert_eq!(tree.quotas().collect::<Vec<_>>(), [(ByteString::from_static("/a"), quota)]);
    }

    fn track(text: &'static str) -> Track {
        Track::parse(Some(&Bytes::from_static(text.as_bytes())))
    }

    #[test]
    fn a_track_is_written_as_zookeeper_writes_it() {
        let text = "count=4,bytes=50=;byteHardLimit=100;countHardLimit=10";
        assert_eq!(track(text).to_data(), text.as_bytes());
        assert_eq!(Track::default().to_data(), "count=-1,bytes=-1".as_bytes());
    }

    #[test]
    fn a_track_reads_whatever_clients_write() {
        for text in ["", "count", "=", "count=x,bytes=7", ";;,", "count=99999999999999999999999"] {
            let read = track(text);
            assert_eq!(read.get(COUNT), -1, "{text:?}");
        }
        assert_eq!(track("count=x,bytes=7").get(BYTES), 7);
        assert_eq!(track("count=,bytes=7").get(COUNT), -1);
        assert_eq!(track("count=1,bytes=2=;other=3").to_data(), "count=1,bytes=2".as_bytes());
    }

    #[test]
    fn a_quota_is_of_a_path() {
        assert_eq!(quota_node("/zookeeper/quota/a/b/zookeeper_limits"), Some(("/a/b", LIMITS)));
        assert_eq!(quota_node("/zookeeper/quota/a/zookeeper_stats"), Some(("/a", STATS)));
        assert_eq!(quota_node("/zookeeper/quota/zookeeper_limits"), None);
        assert_eq!(quota_node("/zookeeper/quotas/a/zookeeper_limits"), None);
        assert_eq!(quota_node("/zookeeper/quota/a"), None);
    }
}
