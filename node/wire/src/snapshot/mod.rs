//! A whole tree, on its way to a learner or on disk.
//!
//! Both forms share one stream: the sessions with their timeouts, the access control lists with the numbers
//! that nodes refer to them by, then every node behind its parent, and at the end the path `/`, which no node
//! has: the root's path in the stream is empty. [`stream`] reads and writes it as it follows a SNAP packet,
//! [`file`](mod@file) as a file with checksums.
//!
//! Neither form says up to which transaction it reaches. The SNAP packet and the file's name do, and
//! [`Image::zxid`] keeps it.
//!
//! ZooKeeper's snapshots are fuzzy: the tree changes while it is written, and replaying the log over the
//! result sets it right. So a node may be newer than [`Image::zxid`], and may refer to a list that is not
//! there. What is checked while decoding is that the nodes make a tree.

pub mod file;
pub mod stream;

pub use file::{FileEncoder, SnapshotError, SnapshotFile, ZxidDigest, decode_file, encode_file};
pub use stream::{StreamDecoder, StreamEncoder, encode_stream};

use bytes::Bytes;
use bytestring::ByteString;

use crate::client::{Acl, Stat};
use crate::ids::{SessionId, Zxid};
use crate::jute::record;

/// The number that stands for [`Acl::world_anyone`] without a list.
pub const OPEN_ACL: i64 = -1;

/// The most sessions, lists or nodes of an image.
pub const MAX_IMAGE_ITEMS: usize = 1 << 26;

record! {
    /// What of a node's Stat is not computed.
    #[derive(Copy, Default)]
    pub struct StatPersisted {
        /// The transaction that created it.
        pub czxid: Zxid,
        /// The transaction that set its data last.
        pub mzxid: Zxid,
        /// When it was created, in milliseconds since the Unix epoch.
        pub ctime: i64,
        /// When its data was set last, in milliseconds since the Unix epoch.
        pub mtime: i64,
        /// How often its data was set.
        pub version: i32,
        /// How often its children changed.
        pub cversion: i32,
        /// How often its ACL was set.
        pub aversion: i32,
        /// The session it goes with, or [`SessionId::NONE`]; also marks containers and times to live.
        pub ephemeral_owner: SessionId,
        /// The transaction that changed its children last.
        pub pzxid: Zxid,
    }
}

impl StatPersisted {
    /// The Stat that clients see, with what is computed. ZooKeeper keeps the child version as the number of
    /// creations; what clients see counts creations and deletions, which the caller's `num_children` gives.
    #[must_use]
    pub fn with_counts(&self, data_length: i32, num_children: i32) -> Stat {
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            cversion: self.cversion.wrapping_mul(2).wrapping_sub(num_children),
            aversion: self.aversion,
            ephemeral_owner: self.ephemeral_owner,
            data_length,
            num_children,
            pzxid: self.pzxid,
        }
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its whole path.
    pub path: ByteString,
    /// Its data.
    pub data: Option<Bytes>,
    /// Its list in [`Image::acls`], or [`OPEN_ACL`].
    pub acl: i64,
    /// Its Stat.
    pub stat: StatPersisted,
}

/// A node, to be written.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    /// Its whole path.
    pub path: &'a str,
    /// Its data.
    pub data: Option<&'a Bytes>,
    /// Its list, or [`OPEN_ACL`].
    pub acl: i64,
    /// Its Stat.
    pub stat: &'a StatPersisted,
}

/// What is written of a tree. Nodes are taken from it one by one, so that a tree that is kept in another form
/// than [`Image`] need not be there twice.
pub struct Contents<'a> {
    /// Every transaction up to this one is in it.
    pub zxid: Zxid,
    /// The sessions and their timeouts in milliseconds.
    pub sessions: Vec<(SessionId, i32)>,
    /// The access control lists and their numbers.
    pub acls: Vec<(i64, Vec<Acl>)>,
    /// The nodes, each behind its parent, the root first.
    pub nodes: Box<dyn Iterator<Item = NodeRef<'a>> + 'a>,
}

impl std::fmt::Debug for Contents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { zxid, sessions, acls, nodes: _ } = self;
        f.debug_struct("Contents")
            .field("zxid", zxid)
            .field("sessions", sessions)
            .field("acls", acls)
            .finish_non_exhaustive()
    }
}

impl<'a> From<&'a Image> for Contents<'a> {
    fn from(image: &'a Image) -> Self {
        let nodes = image.nodes.iter().map(|NodeRecord { path, data, acl, stat }| NodeRef {
            path,
            data: data.as_ref(),
            acl: *acl,
            stat,
        });
        Self {
            zxid: image.zxid,
            sessions: image.sessions.clone(),
            acls: image.acls.clone(),
            nodes: Box::new(nodes),
        }
    }
}

/// A whole tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Every transaction up to this one is in it.
    pub zxid: Zxid,
    /// The sessions and their timeouts in milliseconds.
    pub sessions: Vec<(SessionId, i32)>,
    /// The access control lists and their numbers.
    pub acls: Vec<(i64, Vec<Acl>)>,
    /// The nodes, each behind its parent. Empty, or beginning with the root, `/`.
    pub nodes: Vec<NodeRecord>,
}
