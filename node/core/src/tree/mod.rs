//! The tree of znodes: the state that committed transactions build.
//!
//! Only committed transactions are ever applied here. What a leader has proposed but not yet committed is
//! kept apart (`prep`), and what a member has logged without knowing its fate stays in its `Journal`: Apache
//! ZooKeeper keeps both in the tree and has to undo them when a new leader decides otherwise
//! (ZOOKEEPER-2845).
//!
//! The maps are persistent (they share structure), so a snapshot is a clone that costs nothing, is exactly
//! the state at one zxid, and can be written in the background. ZooKeeper's snapshots are fuzzy: they are
//! taken while the tree changes, and every transaction must therefore be fit to be applied twice. Here none
//! has to.
//!
//! `apply` never fails: a transaction was judged when it was proposed, and its effect follows from it alone.
//! A transaction that does not fit (only a foreign leader could send one) changes nothing and is reported as
//! the error that a client would get.

mod acl;
mod apply;
mod change;
mod image;
mod quota;
mod read;

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use imbl::{OrdMap, OrdSet};
use node_wire::client::{Acl, ErrorCode, EventType, PERM_READ, Stat};
use node_wire::ids::{SessionId, Zxid};
use node_wire::membership::Membership;
use node_wire::snapshot::{Contents, Image, NodeRecord, OPEN_ACL, StatPersisted};

pub use acl::{AclCache, SharedAcl};
pub use apply::Applied;
pub(crate) use image::is_built_in;
pub use quota::Quota;
pub(crate) use read::{looked_up, parent_of, parent_path};

/// One node of the tree.
#[derive(Clone, Debug)]
pub struct Znode {
    /// What clients wrote; null differs from empty.
    pub data: Option<Bytes>,
    /// Key into the ACL cache.
    pub acl: i64,
    /// The part of the Stat that is stored. `cversion` counts creates only, as in ZooKeeper's files.
    pub stat: StatPersisted,
    /// Names of the children, without their paths.
    pub children: OrdSet<ByteString>,
    /// The checksum of path and data, with which its digest begins: see [`node_wire::digest::body_crc`].
    body: u32,
}

/// Something that watches may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it was.
    pub kind: EventType,
    /// Of which node.
    pub path: ByteString,
    /// Who may read that node: its list at that moment, and of a node that goes the last one that it had.
    pub list: SharedAcl,
}

/// The committed state of one member.
#[derive(Clone, Debug)]
pub struct Tree {
    zxid: Zxid,
    nodes: OrdMap<ByteString, Arc<Znode>>,
    ephemerals: OrdMap<SessionId, OrdSet<ByteString>>,
    ephemeral_count: usize,
    /// Containers and nodes with a time to live: the leader looks after them.
    transient: OrdSet<ByteString>,
    /// Paths with limits.
    quotas: OrdSet<ByteString>,
    sessions: OrdMap<SessionId, i32>,
    acls: AclCache,
    data_size: u64,
    digest: i64,
}

/// The tree at one moment, cheap to take and to keep.
#[derive(Clone, Debug)]
pub struct TreeSnapshot(Tree);

impl TreeSnapshot {
    /// The last transaction in it.
    pub fn zxid(&self) -> Zxid {
        self.0.zxid
    }

    /// As the snapshot formats write it, without making another tree. Whoever walks through it should be a
    /// background thread.
    pub fn contents(&self) -> Contents<'_> {
        self.0.contents()
    }

    /// As the snapshot formats have it. Walks the whole tree: meant for a background thread.
    pub fn to_image(&self) -> Image {
        self.0.to_image()
    }

    /// The tree itself, to read.
    pub fn tree(&self) -> &Tree {
        &self.0
    }
}

impl Tree {
    /// The last transaction applied.
    pub fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// How many znodes there are.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.nodes.len()).unwrap_or(u64::MAX)
    }

    /// A clone that shares everything.
    pub fn snapshot(&self) -> TreeSnapshot {
        TreeSnapshot(self.clone())
    }

    /// The sum of all znodes' digests: equal trees at equal zxids have equal digests.
    pub fn digest(&self) -> i64 {
        self.digest
    }

    /// Live sessions and their time-outs in milliseconds.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, i32)> + '_ {
        self.sessions.iter().map(|(session, timeout)| (*session, *timeout))
    }

    /// The time-out of a session in milliseconds, if it lives.
    pub fn session(&self, session: SessionId) -> Option<i32> {
        self.sessions.get(&session).copied()
    }

    /// Paths of the znodes that end with this session.
    pub fn ephemerals(&self, session: SessionId) -> impl Iterator<Item = &ByteString> + '_ {
        self.ephemerals.get(&session).into_iter().flat_map(OrdSet::iter)
    }

    /// How many znodes, sessions and ephemeral znodes there are, and how many bytes of paths and data.
    pub fn counts(&self) -> Counts {
        Counts {
            znodes: self.nodes.len(),
            sessions: self.sessions.len(),
            ephemerals: self.ephemeral_count,
            data_size: self.data_size,
        }
    }

    /// The node at a path.
    pub fn node(&self, path: &str) -> Option<&Znode> {
        self.nodes.get(path).map(Arc::as_ref)
    }

    /// The access control list of a znode.
    pub(crate) fn acl_of(&self, node: &Znode) -> SharedAcl {
        self.acls.list(node.acl)
    }

    /// Containers and nodes with a time to live, by path: all, or those behind one.
    pub(crate) fn transient_behind(
        &self,
        path: Option<&ByteString>,
    ) -> impl Iterator<Item = &ByteString> + '_ {
        let from = path.map_or(Bound::Unbounded, Bound::Excluded);
        self.transient.range::<_, ByteString>((from, Bound::Unbounded))
    }

    /// All znodes below a path, by path.
    pub(crate) fn nodes_below(&self, path: &str) -> impl Iterator<Item = (&ByteString, &Znode)> + '_ {
        let prefix = ByteString::from(if path == "/" { "/".to_owned() } else { format!("{path}/") });
        let from = prefix.clone();
        self.nodes
            .range(from..)
            .take_while(move |(path, _)| path.starts_with(&*prefix))
            .filter(|(path, _)| path.len() > 1)
            .map(|(path, node)| (path, node.as_ref()))
    }

    /// A znode and all below it.
    fn subtree(&self, path: &str) -> impl Iterator<Item = &Znode> + '_ {
        self.node(path).into_iter().chain(self.nodes_below(path).map(|(_, node)| node))
    }

    /// Shows who is in the ensemble, as this member's configuration says, if it says it. No transaction does:
    /// a member that starts knows its configuration before it knows a leader.
    pub(crate) fn show_membership(&mut self, membership: &ByteString) {
        const CONFIG: &str = "/zookeeper/config";
        if !self.nodes.contains_key(CONFIG) {
            let stat = StatPersisted::default();
            self.put(NodeRecord { path: ByteString::from_static(CONFIG), data: None, acl: -1, stat });
            self.link_children();
        }
        if !membership.is_empty() {
            self.set_silently(CONFIG, membership.as_bytes().clone());
            // As if a reconfiguration had set it: clients name the mzxid that they read as the version from
            // which theirs goes on.
            let since = Membership::from_bytes(membership.as_bytes()).map_or(Zxid(0), |shown| shown.version);
            self.stamp(CONFIG, since);
        }
        // Everybody may read it, and nobody but the superuser write, until somebody says otherwise.
        if self.node(CONFIG).is_some_and(|node| node.acl == OPEN_ACL) {
            let acl = [Acl { perms: PERM_READ, ..Acl::world_anyone() }];
            let _ = self.set_acl(CONFIG, &acl, -1);
        }
    }

    /// The Stat of a path as clients see it.
    pub fn exists(&self, path: &str) -> Result<Stat, ErrorCode> {
        self.node(path).map(Znode::to_stat).ok_or(ErrorCode::NoNode)
    }

    /// Data and Stat of a path.
    pub fn get_data(&self, path: &str) -> Result<(Option<Bytes>, Stat), ErrorCode> {
        self.node(path).map(|node| (node.data.clone(), node.to_stat())).ok_or(ErrorCode::NoNode)
    }

    /// Names of the children and the Stat of their parent.
    pub fn get_children(&self, path: &str) -> Result<(Vec<ByteString>, Stat), ErrorCode> {
        let node = self.node(path).ok_or(ErrorCode::NoNode)?;
        Ok((node.children.iter().cloned().collect(), node.to_stat()))
    }
}

/// Sizes of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Znodes, the root included.
    pub znodes: usize,
    /// Live sessions.
    pub sessions: usize,
    /// Ephemeral znodes.
    pub ephemerals: usize,
    /// Bytes of paths and data.
    pub data_size: u64,
}
