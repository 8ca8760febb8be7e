//! From a tree to a snapshot and back.

use std::sync::Arc;

use bytestring::ByteString;
use imbl::{OrdMap, OrdSet};
use node_wire::ephemeral::EphemeralType;
use node_wire::ids::{SessionId, Zxid};
use node_wire::snapshot::{Contents, Image, NodeRecord, NodeRef, StatPersisted};

use super::{AclCache, Tree, Znode, parent_of, parent_path};

/// Znodes that every ensemble has from its start.
const BUILT_IN: [&str; 4] = ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"];

/// True for a node that nobody may delete.
pub(crate) fn is_built_in(path: &str) -> bool {
    BUILT_IN.contains(&path)
}

impl Default for Tree {
    fn default() -> Self {
        let mut tree = Self::empty();
        for path in BUILT_IN {
            let stat = if path == "/" { StatPersisted::default() } else { built_in_stat() };
            tree.put(NodeRecord {
                path: ByteString::from_static(path),
                data: Some(bytes::Bytes::new()),
                acl: -1,
                stat,
            });
        }
        tree.link_children();
        tree
    }
}

/// The stat of a built-in znode: as if created by no transaction.
fn built_in_stat() -> StatPersisted {
    StatPersisted::default()
}

impl Tree {
    fn empty() -> Self {
        Self {
            zxid: Zxid::ZERO,
            nodes: OrdMap::new(),
            ephemerals: OrdMap::new(),
            ephemeral_count: 0,
            transient: OrdSet::new(),
            quotas: OrdSet::new(),
            sessions: OrdMap::new(),
            acls: AclCache::default(),
            data_size: 0,
            digest: 0,
        }
    }

    /// The tree that a snapshot holds: its nodes, as they are written there. What they tell together is yet
    /// to be found: [`Self::find_owners`], [`Self::find_quotas`]. A snapshot without nodes is that of a new
    /// member.
    pub fn of_nodes(image: &Image) -> Self {
        if image.nodes.is_empty() {
            return Self::default();
        }
        let mut tree = Self::empty();
        tree.zxid = image.zxid;
        tree.acls = AclCache::from_lists(image.acls.clone());
        tree.sessions = image.sessions.iter().copied().collect();
        for record in &image.nodes {
            tree.put(record.clone());
        }
        tree.acls.forget_unused();
        tree.link_children();
        tree
    }

    /// A tree that came whole: finds whose the ephemerals are.
    pub fn find_owners(&mut self) {
        let mut ephemerals: OrdMap<SessionId, OrdSet<ByteString>> = OrdMap::new();
        for (path, node) in &self.nodes {
            if let EphemeralType::Normal(session) = EphemeralType::of(node.stat.ephemeral_owner) {
                ephemerals.entry(session).or_default().insert(path.clone());
            }
        }
        self.ephemerals = ephemerals;
    }

    /// As the snapshot formats write it: parents before their children.
    pub fn to_image(&self) -> Image {
        Image {
            zxid: self.zxid,
            sessions: self.sessions().collect(),
            acls: self.acls.lists(),
            nodes: self
                .nodes
                .iter()
                .map(|(path, node)| NodeRecord {
                    path: path.clone(),
                    data: node.data.clone(),
                    acl: node.acl,
                    stat: node.stat,
                })
                .collect(),
        }
    }

    /// What a snapshot says, node by node.
    pub fn contents(&self) -> Contents<'_> {
        let nodes = self.nodes.iter().map(|(path, node)| NodeRef {
            path,
            data: node.data.as_ref(),
            acl: node.acl,
            stat: &node.stat,
        });
        Contents {
            zxid: self.zxid,
            sessions: self.sessions().collect(),
            acls: self.acls.lists(),
            nodes: Box::new(nodes),
        }
    }

    pub(super) fn put(&mut self, record: NodeRecord) {
        let NodeRecord { path, data, acl, stat } = record;
        let node = Znode::new(&path, data, acl, stat);
        self.acls.hold(acl);
        self.count_in(&path, &node);
        self.nodes.insert(path, Arc::new(node));
    }

    pub(super) fn link_children(&mut self) {
        let paths: Vec<ByteString> = self.nodes.keys().cloned().collect();
        // A parent is looked up once for all that lie side by side below it.
        for siblings in paths.chunk_by(|one, next| parent_path(one) == parent_path(next)) {
            let parent = siblings.first().and_then(|path| parent_path(path));
            if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)).map(Arc::make_mut) {
                for path in siblings {
                    parent.children.extend(parent_of(path).map(|(_, name)| path.slice_ref(name)));
                }
            }
        }
    }
}

/// What a znode counts for in `approximate_data_size`.
pub(super) fn size_of(path: &str, data: Option<&bytes::Bytes>) -> u64 {
    let bytes = path.len() + data.map_or(0, bytes::Bytes::len);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
