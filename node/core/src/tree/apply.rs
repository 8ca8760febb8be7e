//! How a committed transaction changes the tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use imbl::OrdSet;
use node_wire::client::{Acl, ErrorCode, Stat};
use node_wire::ids::SessionId;
use node_wire::snapshot::StatPersisted;
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::image::size_of;
use super::{Tree, Znode, parent_of};

/// What a transaction did, as far as a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A znode was made.
    Created {
        /// Its path, with the number that a sequential one got.
        path: ByteString,
        /// Its Stat.
        stat: Stat,
    },
    /// A znode was removed.
    Deleted,
    /// A znode's data was replaced.
    DataSet {
        /// Its new Stat.
        stat: Stat,
    },
    /// A session began.
    SessionCreated {
        /// Its time-out in milliseconds.
        timeout_ms: i32,
    },
    /// A session ended, and its ephemeral znodes with it.
    SessionClosed,
    /// The request was refused, in its place in the order.
    Refused(ErrorCode),
}

impl Tree {
    /// Applies the next committed transaction.
    pub fn apply(&mut self, entry: &Entry) -> Applied {
        debug_assert!(entry.zxid() > self.zxid, "transactions are applied in order, each once");
        self.zxid = entry.zxid();
        let header = &entry.header;
        match &entry.txn {
            Txn::Create { path, data, acl, ephemeral, parent_cversion } => {
                let owner = if *ephemeral { header.session } else { SessionId::NONE };
                self.create(header, path, data.as_ref(), acl, owner, *parent_cversion)
            }
            Txn::Delete { path } => self.delete(header, path),
            Txn::SetData { path, data, version } => self.set_data(header, path, data.as_ref(), *version),
            Txn::CreateSession { timeout_ms } => {
                self.sessions.insert(header.session, *timeout_ms);
                Applied::SessionCreated { timeout_ms: *timeout_ms }
            }
            Txn::CloseSession { paths } => self.close_session(header, paths.as_deref().unwrap_or_default()),
            Txn::Error { code } => {
                Applied::Refused(ErrorCode::from_code(*code).unwrap_or(ErrorCode::SystemError))
            }
            // Their place: these transactions are never proposed by this member's leader, and a foreign one
            // is not followed yet.
            Txn::CreateContainer { .. }
            | Txn::CreateTtl { .. }
            | Txn::SetAcl { .. }
            | Txn::Check { .. }
            | Txn::Multi { .. } => Applied::Refused(ErrorCode::Unimplemented),
        }
    }

    fn create(
        &mut self,
        header: &TxnHeader,
        path: &ByteString,
        data: Option<&Bytes>,
        acl: &[Acl],
        owner: SessionId,
        parent_cversion: i32,
    ) -> Applied {
        let Some((parent_path, name)) = parent_of(path) else {
            return Applied::Refused(ErrorCode::BadArguments);
        };
        // A fuzzy snapshot may hold the child already, beside its parent as it was before.
        if !self.change(parent_path, |parent| {
            parent.children.insert(ByteString::from(name));
            // -1 is what transactions of the 3.3 line carry: they leave the counting to whoever applies them.
            let cversion = if parent_cversion == -1 { parent.stat.cversion + 1 } else { parent_cversion };
            if cversion > parent.stat.cversion {
                parent.stat.cversion = cversion;
                parent.stat.pzxid = header.zxid;
            }
        }) {
            return Applied::Refused(ErrorCode::NoNode);
        }
        if self.nodes.contains_key(path) {
            return Applied::Refused(ErrorCode::NodeExists);
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
        // Own copies: a slice of a network buffer would keep the whole buffer alive as long as the znode.
        let path = ByteString::from(path.to_string());
        let data = data.map(|data| Bytes::copy_from_slice(data));
        self.digest = self.digest.wrapping_add(digest_of(&path, data.as_ref(), &stat));
        self.data_size += size_of(&path, data.as_ref());
        if owner != SessionId::NONE {
            self.ephemerals.entry(owner).or_default().insert(path.clone());
            self.ephemeral_count += 1;
        }
        let node = Znode { data, acl: self.acls.intern(acl), stat, children: OrdSet::new() };
        let shown = node.to_stat();
        self.nodes.insert(path.clone(), Arc::new(node));
        Applied::Created { path, stat: shown }
    }

    fn delete(&mut self, header: &TxnHeader, path: &str) -> Applied {
        if let Some((parent_path, name)) = parent_of(path) {
            // Also for a child that is gone: a fuzzy snapshot may hold the parent as it was before.
            self.change(parent_path, |parent| {
                parent.children.remove(name);
                parent.stat.pzxid = parent.stat.pzxid.max(header.zxid);
            });
        }
        let Some(node) = self.nodes.get(path) else {
            return Applied::Refused(ErrorCode::NoNode);
        };
        let owner = node.stat.ephemeral_owner;
        self.digest = self.digest.wrapping_sub(digest_of(path, node.data.as_ref(), &node.stat));
        self.data_size -= size_of(path, node.data.as_ref());
        self.nodes.remove(path);
        if owner != SessionId::NONE {
            self.ephemeral_count -= 1;
            if let Some(paths) = self.ephemerals.get_mut(&owner) {
                paths.remove(path);
                if paths.is_empty() {
                    self.ephemerals.remove(&owner);
                }
            }
        }
        Applied::Deleted
    }

    fn set_data(&mut self, header: &TxnHeader, path: &str, data: Option<&Bytes>, version: i32) -> Applied {
        let Some(node) = self.nodes.get_mut(path).map(Arc::make_mut) else {
            return Applied::Refused(ErrorCode::NoNode);
        };
        let before = digest_of(path, node.data.as_ref(), &node.stat);
        let size_before = size_of(path, node.data.as_ref());
        node.data = data.map(|data| Bytes::copy_from_slice(data));
        node.stat.version = version;
        node.stat.mzxid = header.zxid;
        node.stat.mtime = header.time_ms;
        let after = digest_of(path, node.data.as_ref(), &node.stat);
        let size_after = size_of(path, node.data.as_ref());
        let stat = node.to_stat();
        self.digest = self.digest.wrapping_sub(before).wrapping_add(after);
        self.data_size = self.data_size - size_before + size_after;
        Applied::DataSet { stat }
    }

    /// What goes with the session is listed; in a fuzzy snapshot the list may be longer than what is there.
    fn close_session(&mut self, header: &TxnHeader, listed: &[ByteString]) -> Applied {
        self.sessions.remove(&header.session);
        let own = self.ephemerals(header.session).cloned();
        let paths: BTreeSet<ByteString> = listed.iter().cloned().chain(own).collect();
        for path in paths {
            self.delete(header, &path);
        }
        Applied::SessionClosed
    }

    /// Changes a znode's stat or children and keeps the digest true. False when there is no such znode.
    fn change(&mut self, path: &str, change: impl FnOnce(&mut Znode)) -> bool {
        let Some(node) = self.node_mut(path) else {
            return false;
        };
        let before = digest_of(path, node.data.as_ref(), &node.stat);
        change(node);
        let after = digest_of(path, node.data.as_ref(), &node.stat);
        self.digest = self.digest.wrapping_sub(before).wrapping_add(after);
        true
    }
}

pub(super) fn digest_of(path: &str, data: Option<&Bytes>, stat: &StatPersisted) -> i64 {
    node_wire::digest::node_digest(path, data.map(AsRef::as_ref), stat).cast_signed()
}
