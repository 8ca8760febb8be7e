//! The few ways in which a transaction changes the tree.
//!
//! Each keeps what follows from the nodes true: the digest, the sizes, who goes with which session, which
//! nodes the leader must look after, the lists that are in use, the quotas. And each notes what watches may
//! see, in the order in which ZooKeeper tells it: the node itself before its parent.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use imbl::OrdSet;
use node_wire::client::{Acl, ErrorCode, EventType, Stat};
use node_wire::digest::{body_crc, digest_behind};
use node_wire::ephemeral::EphemeralType;
use node_wire::ids::{SessionId, Zxid};
use node_wire::snapshot::{OPEN_ACL, StatPersisted};
use node_wire::txn::TxnHeader;

use super::image::size_of;
use super::{Seen, Tree, Znode, parent_of, parent_path};

/// A node that a transaction makes.
pub(super) struct NewNode<'a> {
    pub(super) path: &'a ByteString,
    pub(super) data: Option<&'a Bytes>,
    pub(super) acl: &'a [Acl],
    pub(super) owner: SessionId,
    pub(super) parent_cversion: i32,
}

impl Znode {
    /// One without children.
    pub(super) fn new(path: &str, data: Option<Bytes>, acl: i64, stat: StatPersisted) -> Self {
        let body = body_crc(path, data.as_deref());
        Self { data, acl, stat, children: OrdSet::new(), body }
    }

    fn write(&mut self, path: &str, data: Option<Bytes>) {
        self.body = body_crc(path, data.as_deref());
        self.data = data;
    }

    fn digest(&self, path: &str) -> i64 {
        digest_behind(self.body, path, &self.stat).cast_signed()
    }
}

impl Tree {
    pub(super) fn create(
        &mut self,
        header: &TxnHeader,
        new: &NewNode<'_>,
        seen: &mut Vec<Seen>,
    ) -> Result<(ByteString, Stat), ErrorCode> {
        let NewNode { path, data, acl, owner, parent_cversion } = *new;
        // Own copies: a slice of a network buffer would keep the whole buffer alive as long as the znode.
        let path = ByteString::from(path.to_string());
        let (parent_path, name) = parent_of(&path).ok_or(ErrorCode::BadArguments)?;
        let mut above = OPEN_ACL;
        // A fuzzy snapshot may hold the child already, beside its parent as it was before.
        let linked = self.change(parent_path, |parent| {
            above = parent.acl;
            parent.children.insert(path.slice_ref(name));
            // -1 is what transactions of the 3.3 line carry: they leave the counting to whoever applies them.
            let cversion =
                if parent_cversion == -1 { parent.stat.cversion.wrapping_add(1) } else { parent_cversion };
            if cversion > parent.stat.cversion {
                parent.stat.cversion = cversion;
                parent.stat.pzxid = header.zxid;
            }
        });
        if !linked {
            return Err(ErrorCode::NoNode);
        }
        if self.nodes.contains_key(&path) {
            return Err(ErrorCode::NodeExists);
        }
        let stat = StatPersisted {
            czxid: header.zxid,
            mzxid: header.zxid,
            ctime: header.time_ms,
            mtime: header.time_ms,
            version: 0,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: owner,
            pzxid: header.zxid,
        };
        let data = data.map(|data| Bytes::copy_from_slice(data));
        let length = data.as_ref().map_or(0, Bytes::len);
        let node = Znode::new(&path, data, self.acls.intern(acl), stat);
        let (shown, own) = (node.to_stat(), node.acl);
        self.count_in(&path, &node);
        if let EphemeralType::Normal(session) = EphemeralType::of(node.stat.ephemeral_owner) {
            self.ephemerals.entry(session).or_default().insert(path.clone());
        }
        self.nodes.insert(path.clone(), Arc::new(node));
        self.quota_created(&path, length);
        self.see(seen, EventType::NodeCreated, &path, [own, above]);
        Ok((path, shown))
    }

    pub(super) fn delete(
        &mut self,
        header: &TxnHeader,
        path: &ByteString,
        seen: &mut Vec<Seen>,
    ) -> Result<(), ErrorCode> {
        let mut above = OPEN_ACL;
        if let Some((parent_path, name)) = parent_of(path) {
            // Also for a child that is gone: a fuzzy snapshot may hold the parent as it was before.
            self.change(parent_path, |parent| {
                above = parent.acl;
                parent.children.remove(name);
                parent.stat.pzxid = parent.stat.pzxid.max(header.zxid);
            });
        }
        self.take_out(path, above, seen)
    }

    /// A node that its parent, whose list is `above`, does not name any more.
    fn take_out(&mut self, path: &ByteString, above: i64, seen: &mut Vec<Seen>) -> Result<(), ErrorCode> {
        let node = self.nodes.remove(path).ok_or(ErrorCode::NoNode)?;
        self.count_out(path, &node);
        // Before its list goes with it.
        self.see(seen, EventType::NodeDeleted, path, [node.acl, above]);
        self.acls.release(node.acl);
        self.quota_deleted(path, node.data.as_ref().map_or(0, Bytes::len));
        Ok(())
    }

    pub(super) fn set_data(
        &mut self,
        header: &TxnHeader,
        path: &ByteString,
        data: Option<&Bytes>,
        version: i32,
        seen: &mut Vec<Seen>,
    ) -> Result<Stat, ErrorCode> {
        let node = self.node(path).ok_or(ErrorCode::NoNode)?;
        let (before, list) = (node.data.as_ref().map_or(0, Bytes::len), self.acl_of(node));
        let data = data.map(|data| Bytes::copy_from_slice(data));
        let after = data.as_ref().map_or(0, Bytes::len);
        self.change(path, |node| {
            node.write(path, data);
            node.stat.version = version;
            node.stat.mzxid = header.zxid;
            node.stat.mtime = header.time_ms;
        });
        self.quota_set(path, before, after);
        seen.push(Seen { kind: EventType::NodeDataChanged, path: path.clone(), list });
        self.exists(path)
    }

    /// Nobody watches lists.
    pub(super) fn set_acl(&mut self, path: &str, acl: &[Acl], version: i32) -> Result<Stat, ErrorCode> {
        let before = self.node(path).ok_or(ErrorCode::NoNode)?.acl;
        let after = self.acls.intern(acl);
        self.change(path, |node| {
            node.acl = after;
            node.stat.aversion = version;
        });
        self.acls.release(before);
        self.exists(path)
    }

    pub(super) fn close_session(&mut self, header: &TxnHeader, seen: &mut Vec<Seen>) {
        self.sessions.remove(&header.session);
        let paths: Vec<ByteString> = self.ephemerals.remove(&header.session).into_iter().flatten().collect();
        // A parent changes once for all that lie side by side below it.
        for siblings in paths.chunk_by(|one, next| parent_path(one) == parent_path(next)) {
            let mut above = OPEN_ACL;
            if let Some(parent) = siblings.first().and_then(|path| parent_path(path)) {
                self.change(parent, |parent| {
                    above = parent.acl;
                    let names = siblings.iter().filter_map(|path| parent_of(path)).map(|(_, name)| name);
                    remove_all(&mut parent.children, siblings.len(), names);
                    parent.stat.pzxid = parent.stat.pzxid.max(header.zxid);
                });
            }
            for path in siblings {
                // What its own list names is there.
                let _ = self.take_out(path, above, seen);
            }
        }
    }

    /// Data that every member writes for itself: no version, no digest, no watch.
    pub(super) fn set_silently(&mut self, path: &str, data: Bytes) {
        self.change(path, |node| node.write(path, Some(data)));
    }

    /// Says since when the data of `/zookeeper/config` are what they are. ZooKeeper gives that node no
    /// version.
    pub(super) fn stamp(&mut self, path: &str, since: Zxid) {
        self.change(path, |node| {
            node.stat.mzxid = since;
            node.stat.version = -1;
        });
    }

    /// Changes a znode and keeps digest and size true. False when there is no such znode.
    fn change(&mut self, path: &str, change: impl FnOnce(&mut Znode)) -> bool {
        let Some(node) = self.nodes.get_mut(path).map(Arc::make_mut) else {
            return false;
        };
        let (digest, size) = (node.digest(path), size_of(path, node.data.as_ref()));
        change(node);
        self.digest = self.digest.wrapping_sub(digest).wrapping_add(node.digest(path));
        self.data_size = self.data_size - size + size_of(path, node.data.as_ref());
        true
    }

    /// A node came or went, so its parent has other children. The numbers are those of its list and of its
    /// parent's.
    fn see(&self, seen: &mut Vec<Seen>, kind: EventType, path: &ByteString, [own, above]: [i64; 2]) {
        seen.push(Seen { kind, path: path.clone(), list: self.acls.list(own) });
        if let Some((parent, _)) = parent_of(path) {
            let (kind, path) = (EventType::NodeChildrenChanged, path.slice_ref(parent));
            seen.push(Seen { kind, path, list: self.acls.list(above) });
        }
    }

    /// A node joins the tree. Whose it is, if it is an ephemeral, is for the caller to note.
    pub(super) fn count_in(&mut self, path: &ByteString, node: &Znode) {
        self.digest = self.digest.wrapping_add(node.digest(path));
        self.data_size += size_of(path, node.data.as_ref());
        match EphemeralType::of(node.stat.ephemeral_owner) {
            EphemeralType::Void => {}
            EphemeralType::Normal(_) => self.ephemeral_count += 1,
            EphemeralType::Container | EphemeralType::Ttl { .. } => {
                self.transient.insert(path.clone());
            }
        }
    }

    /// A node leaves the tree.
    fn count_out(&mut self, path: &ByteString, node: &Znode) {
        self.digest = self.digest.wrapping_sub(node.digest(path));
        self.data_size -= size_of(path, node.data.as_ref());
        match EphemeralType::of(node.stat.ephemeral_owner) {
            EphemeralType::Void => {}
            EphemeralType::Normal(session) => {
                self.ephemeral_count -= 1;
                if let Some(paths) = self.ephemerals.get_mut(&session) {
                    paths.remove(path);
                    if paths.is_empty() {
                        self.ephemerals.remove(&session);
                    }
                }
            }
            EphemeralType::Container | EphemeralType::Ttl { .. } => {
                self.transient.remove(path);
            }
        }
    }
}

/// Takes so many names out of a set, given in its order. When few are left they are gathered anew.
fn remove_all<'a>(set: &mut OrdSet<ByteString>, count: usize, names: impl Iterator<Item = &'a str>) {
    if count < set.len() / 2 {
        names.for_each(|name| {
            set.remove(name);
        });
        return;
    }
    let mut names = names.peekable();
    let stays = |name: &&ByteString| {
        while names.next_if(|gone| *gone < &***name).is_some() {}
        names.peek() != Some(&&***name)
    };
    *set = set.iter().filter(stays).cloned().collect();
}

#[cfg(test)]
mod tests {
    use node_wire::digest::node_digest;
    use node_wire::ids::Epoch;
    use node_wire::txn::{Entry, Txn};

    use super::*;

    fn apply(tree: &mut Tree, txn: Txn) -> Vec<Seen> {
        let (session, zxid) = (SessionId(7), Zxid::new(Epoch(1), tree.zxid().counter() + 1));
        let header = TxnHeader { session, cxid: 1, zxid, time_ms: 5, kind: txn.kind() };
        let mut seen = Vec::new();
        tree.apply_seen(&Entry::new(header, txn, None), &mut seen);
        assert_eq!(tree.digest(), whole(tree), "after {header:?}");
        seen
    }

    /// The digest of a tree, from all that is in it.
    fn whole(tree: &Tree) -> i64 {
        let nodes = tree.nodes.iter();
        let digests = nodes.map(|(path, node)| node_digest(path, node.data.as_deref(), &node.stat));
        digests.fold(0, u64::wrapping_add).cast_signed()
    }

    fn create(tree: &mut Tree, path: &'static str, ephemeral: bool) {
        let (path, data) = (path.into(), Some(Bytes::from_static(b"data")));
        let acl = vec![Acl::world_anyone()];
        apply(tree, Txn::Create { path, data, acl, ephemeral, parent_cversion: -1 });
    }

    #[test]
    fn the_digest_is_that_of_all_nodes_however_they_came_to_be() {
        let mut tree = Tree::default();
        for path in ["/a", "/a/b", "/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits"] {
            create(&mut tree, path, false);
        }
        create(&mut tree, "/a/c", true);
        let data = Some(Bytes::from_static(b"other"));
        apply(&mut tree, Txn::SetData { path: "/a".into(), data, version: 1 });
        apply(&mut tree, Txn::SetData { path: "/a/b".into(), data: None, version: 1 });
        create(&mut tree, "/a/b/d", false);
        apply(&mut tree, Txn::SetAcl { path: "/a".into(), acl: Vec::new(), version: 1 });
        apply(&mut tree, Txn::Delete { path: "/a/b/d".into() });
        apply(&mut tree, Txn::CloseSession { paths: None });
        let mut again = Tree::of_nodes(&tree.to_image());
        assert_eq!(again.digest(), tree.digest());
        create(&mut again, "/a/e", false);
    }

    #[test]
    fn the_end_of_a_session_does_what_deleting_its_nodes_would() {
        let mut tree = Tree::default();
        for path in ["/a", "/a/m", "/b"] {
            create(&mut tree, path, false);
        }
        let ephemerals = ["/a/e", "/a/m/x", "/a/m/y", "/a/z", "/b/e", "/e"];
        for path in ephemerals {
            create(&mut tree, path, true);
        }
        let mut one_by_one = tree.clone();
        let seen = apply(&mut tree, Txn::CloseSession { paths: None });
        let told: Vec<Seen> = ephemerals
            .into_iter()
            .flat_map(|path| apply(&mut one_by_one, Txn::Delete { path: path.into() }))
            .collect();
        assert_eq!(seen, told);
        assert_eq!(tree.counts().ephemerals, 0);
        assert_eq!(tree.ephemerals(SessionId(7)).count(), 0);
        // What the end itself changed bears its zxid, and else the zxids of the deletions.
        let before = Zxid::new(Epoch(1), 9);
        let shape = |tree: &Tree| -> Vec<(ByteString, OrdSet<ByteString>, Zxid)> {
            let shown = |(path, node): (&ByteString, &Arc<Znode>)| {
                (path.clone(), node.children.clone(), node.stat.pzxid.min(before))
            };
            tree.nodes.iter().map(shown).collect()
        };
        assert_eq!(shape(&tree), shape(&one_by_one));
    }
}
