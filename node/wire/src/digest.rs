//! The digest of a tree, by which members notice that they have come apart.
//!
//! Each node has a CRC-32 over its path, its data and its persistent Stat; the tree's digest is the sum of
//! them modulo 2^64, so that a change costs one subtraction and one addition. Transactions carry the digest
//! of the tree as it is after them ([`TxnDigest`](crate::txn::TxnDigest)), and snapshots carry the one of
//! their end.
//!
//! Two rules are easily missed. Whatever lies below `/zookeeper` counts as nothing, because quota counters
//! are kept by each member for itself; `/zookeeper` itself does count. And the root's path is the empty
//! string.

use bytes::BufMut;
use crc32fast::Hasher;

use crate::snapshot::StatPersisted;

/// The version of this calculation, as transactions and snapshots name it.
pub const DIGEST_VERSION: i32 = 2;

/// Nodes below this prefix are left out.
const EXCLUDED_PREFIX: &str = "/zookeeper/";

/// Six longs and three ints.
const STAT_LEN: usize = 6 * 8 + 3 * 4;

/// The digest of one node. The root's path may be given as `/` or as the empty string.
#[must_use]
pub fn node_digest(path: &str, data: Option<&[u8]>, stat: &StatPersisted) -> u64 {
    digest_behind(body_crc(path, data), path, stat)
}

/// The CRC-32 over a node's path and data, with which its digest begins. It stays the same while only the
/// Stat changes, as a parent's does with each child: who keeps it need not read the data again.
#[must_use]
pub fn body_crc(path: &str, data: Option<&[u8]>) -> u32 {
    if path.starts_with(EXCLUDED_PREFIX) {
        return 0;
    }
    let mut hasher = Hasher::new();
    if path != "/" {
        hasher.update(path.as_bytes());
    }
    if let Some(data) = data {
        hasher.update(data);
    }
    hasher.finalize()
}

/// The digest of a node, from what [`body_crc`] gave for its path and data.
#[must_use]
pub fn digest_behind(body: u32, path: &str, stat: &StatPersisted) -> u64 {
    if path.starts_with(EXCLUDED_PREFIX) {
        return 0;
    }
    let mut hasher = Hasher::new_with_initial(body);
    // Not the order of the record on the wire: pzxid comes third and the owner last.
    let mut fields = [0; STAT_LEN];
    let mut rest = &mut fields[..];
    rest.put_i64(stat.czxid.to_wire());
    rest.put_i64(stat.mzxid.to_wire());
    rest.put_i64(stat.pzxid.to_wire());
    rest.put_i64(stat.ctime);
    rest.put_i64(stat.mtime);
    rest.put_i32(stat.version);
    rest.put_i32(stat.cversion);
    rest.put_i32(stat.aversion);
    rest.put_i64(stat.ephemeral_owner.0);
    hasher.update(&fields);
    u64::from(hasher.finalize())
}

/// The digest of a tree, kept up to date node by node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TreeDigest(u64);

impl TreeDigest {
    /// Of a tree without nodes.
    pub const EMPTY: TreeDigest = TreeDigest(0);

    /// Counts a node in.
    pub fn add(&mut self, node: u64) {
        self.0 = self.0.wrapping_add(node);
    }

    /// Counts a node out, as it was when it was counted in.
    pub fn remove(&mut self, node: u64) {
        self.0 = self.0.wrapping_sub(node);
    }

    /// As transactions and snapshots write it.
    #[must_use]
    pub fn to_wire(self) -> i64 {
        self.0.cast_signed()
    }
}
