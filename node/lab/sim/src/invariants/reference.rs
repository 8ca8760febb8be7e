//! What the committed transactions did to the nodes of watchers, probers and applications: a second reading
//! of them, of as much as watches and reaping depend on.
//!
//! Watches are told of changes at places of the one sequence; what a member must tell its client between two
//! replies follows from it alone. A container goes when its last child did, and not before it had one. A node
//! with a time to live goes when nothing wrote it for that long and it has no children, by the stamps that
//! the transactions carry: every leader reads the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytestring::ByteString;
use lab_apps::elections::RESOURCE;
use node_wire::client::{Acl, EventType, OpCode};
use node_wire::ids::{SessionId, Zxid};
use node_wire::txn::{Entry, Txn};

use super::{Finding, Invariants, parts_of};
use crate::outcome::Rule;
use crate::watcher::{Change, List, ROOT, Standing, Stands};

/// What makes a node go by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mortality {
    Stays,
    /// With its session, which is no business of the leader's.
    Session(SessionId),
    Container,
    Ttl {
        ttl_ms: i64,
    },
}

/// A node as the sequence leaves it.
#[derive(Clone, Debug)]
struct Node {
    mortality: Mortality,
    mzxid: Zxid,
    pzxid: Zxid,
    mtime_ms: i64,
    children: u64,
    list: List,
    /// It ever had a child.
    parent: bool,
}

/// How a node stands at a place of the sequence and from there on.
type Standings = Vec<(Zxid, Standing)>;

/// The nodes of watchers through all of the sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Reference {
    nodes: BTreeMap<ByteString, Node>,
    changes: Vec<Change>,
    standings: BTreeMap<ByteString, Standings>,
}

fn parent_of(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..slash])
}

impl Reference {
    /// The next committed entry.
    pub(super) fn commit(&mut self, entry: &Entry) -> Finding {
        let reaps = entry.header.kind == OpCode::DeleteContainer.code();
        let finding = if reaps { self.check_reaping(entry) } else { Ok(()) };
        self.apply(entry, &entry.txn);
        finding
    }

    fn apply(&mut self, entry: &Entry, txn: &Txn) {
        match txn {
            Txn::Create { path, acl, ephemeral: true, .. } => {
                self.create(entry, path, acl, Mortality::Session(entry.header.session));
            }
            Txn::Create { path, acl, .. } => self.create(entry, path, acl, Mortality::Stays),
            Txn::CreateContainer { path, acl, .. } => self.create(entry, path, acl, Mortality::Container),
            Txn::CreateTtl { path, acl, ttl_ms, .. } => {
                self.create(entry, path, acl, Mortality::Ttl { ttl_ms: *ttl_ms });
            }
            Txn::SetAcl { path, acl, .. } => {
                let Some(node) = self.nodes.get_mut(path) else { return };
                node.list = Arc::new(acl.clone());
                self.stand(entry.zxid(), path);
            }
            Txn::Delete { path } => self.delete(entry, path),
            Txn::SetData { path, .. } => {
                let Some(node) = self.nodes.get_mut(path) else { return };
                (node.mzxid, node.mtime_ms) = (entry.zxid(), entry.header.time_ms);
                let list = Arc::clone(&node.list);
                self.note(entry, EventType::NodeDataChanged, path, list);
            }
            Txn::Multi { txns } => parts_of(txns).iter().for_each(|part| self.apply(entry, part)),
            Txn::CloseSession { .. } => self.close(entry),
            _ => {}
        }
    }

    /// What a session owned goes with it.
    fn close(&mut self, entry: &Entry) {
        let mortality = Mortality::Session(entry.header.session);
        let owned = self.nodes.iter().filter(|(_, node)| node.mortality == mortality);
        for path in owned.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            self.delete(entry, &path);
        }
    }

    fn create(&mut self, entry: &Entry, path: &ByteString, acl: &[Acl], mortality: Mortality) {
        let of_watchers =
            **path == *ROOT || path.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'));
        let of_line = **path == *RESOURCE || parent_of(path) == RESOURCE;
        if !of_watchers && !of_line && !super::is_probed(path) {
            return;
        }
        let zxid = entry.zxid();
        let list = Arc::new(acl.to_vec());
        let node = Node {
            list: Arc::clone(&list),
            mortality,
            mzxid: zxid,
            pzxid: zxid,
            mtime_ms: entry.header.time_ms,
            children: 0,
            parent: false,
        };
        self.nodes.insert(path.clone(), node);
        if let Some(parent) = self.nodes.get_mut(parent_of(path)) {
            parent.children += 1;
            parent.parent = true;
            parent.pzxid = zxid;
        }
        self.note(entry, EventType::NodeCreated, path, list);
    }

    fn delete(&mut self, entry: &Entry, path: &ByteString) {
        let Some(Node { list, .. }) = self.nodes.remove(path) else { return };
        if let Some(parent) = self.nodes.get_mut(parent_of(path)) {
            parent.children = parent.children.saturating_sub(1);
            parent.pzxid = entry.zxid();
        }
        self.note(entry, EventType::NodeDeleted, path, list);
    }

    /// What watches see of it, the parent's children behind the node itself.
    fn note(&mut self, entry: &Entry, kind: EventType, path: &ByteString, list: List) {
        let zxid = entry.zxid();
        self.stand(zxid, path);
        self.changes.push(Change { zxid, kind, path: path.clone(), list });
        if kind != EventType::NodeDataChanged {
            let path = ByteString::from(parent_of(path));
            self.stand(zxid, &path);
            // Nobody watches the root.
            let list = self.nodes.get(&path).map_or_else(Default::default, |node| Arc::clone(&node.list));
            self.changes.push(Change { zxid, kind: EventType::NodeChildrenChanged, path, list });
        }
    }

    fn stand(&mut self, zxid: Zxid, path: &ByteString) {
        let standing = self.nodes.get(path).map(|node| Stands {
            mzxid: node.mzxid,
            pzxid: node.pzxid,
            list: Arc::clone(&node.list),
        });
        self.standings.entry(path.clone()).or_default().push((zxid, standing));
    }

    /// The leader removes a node that nobody asked to remove.
    fn check_reaping(&self, entry: &Entry) -> Finding {
        let Txn::Delete { path } = &entry.txn else { return Ok(()) };
        let zxid = entry.zxid();
        let found = |what: String| Err((Rule::Reaping, format!("{zxid} removes {path}, {what}")));
        let Some(node) = self.nodes.get(path) else { return found("which is not there".to_owned()) };
        if node.children > 0 {
            return found("which has children".to_owned());
        }
        match node.mortality {
            Mortality::Stays | Mortality::Session(_) => found("which is to stay".to_owned()),
            Mortality::Container if !node.parent => found("a container that never had a child".to_owned()),
            Mortality::Container => Ok(()),
            Mortality::Ttl { ttl_ms } => {
                let age_ms = entry.header.time_ms - node.mtime_ms;
                if age_ms > ttl_ms {
                    return Ok(());
                }
                found(format!("which was written {age_ms} ms before and is to live for {ttl_ms}"))
            }
        }
    }

    /// Whether some node should be gone by now, on a clock that shows this.
    fn overdue(&self, wall_ms: i64) -> Option<&ByteString> {
        let is_due = |node: &Node| match node.mortality {
            Mortality::Stays | Mortality::Session(_) => false,
            Mortality::Container => node.parent,
            Mortality::Ttl { ttl_ms } => wall_ms - node.mtime_ms > ttl_ms,
        };
        self.nodes.iter().find(|(_, node)| node.children == 0 && is_due(node)).map(|(path, _)| path)
    }
}

impl Invariants {
    /// What happened to the nodes of watchers between two places.
    pub(crate) fn changes_between(&self, from: Zxid, to: Zxid) -> &[Change] {
        let changes = &self.reference.changes;
        let begin = changes.partition_point(|change| change.zxid <= from);
        let end = changes.partition_point(|change| change.zxid <= to);
        changes.get(begin..end).unwrap_or_default()
    }

    /// How a node stands at a place; nothing if it is not there.
    pub(crate) fn standing(&self, path: &str, at: Zxid) -> Standing {
        let standings = self.reference.standings.get(path)?;
        let next = standings.partition_point(|(zxid, _)| *zxid <= at);
        standings[..next].last()?.1.clone()
    }

    /// A node that should have gone by itself, on a clock that shows this.
    pub(crate) fn overdue(&self, wall_ms: i64) -> Option<&ByteString> {
        self.reference.overdue(wall_ms)
    }
}

#[cfg(test)]
mod tests {
    use node_wire::ids::Epoch;
    use node_wire::txn::TxnHeader;

    use super::*;

    fn entry(counter: u32, time_ms: i64, kind: i32, txn: Txn) -> Entry {
        let zxid = Zxid::new(Epoch(1), counter);
        Entry::new(TxnHeader { session: SessionId::NONE, cxid: 0, zxid, time_ms, kind }, txn, None)
    }

    fn with_ttl(ttl_ms: i64) -> Reference {
        let mut reference = Reference::default();
        let path = ByteString::from_static("/w/t");
        let txn = Txn::CreateTtl { path, data: None, acl: Vec::new(), parent_cversion: 1, ttl_ms };
        reference.commit(&entry(1, 100, OpCode::CreateTtl.code(), txn)).expect("a client's");
        reference
    }

    fn reaped(at_ms: i64) -> Entry {
        let txn = Txn::Delete { path: ByteString::from_static("/w/t") };
        entry(9, at_ms, OpCode::DeleteContainer.code(), txn)
    }

    #[test]
    fn a_time_to_live_counts_from_the_last_write() {
        assert!(with_ttl(50).commit(&reaped(150)).is_err());
        assert!(with_ttl(50).commit(&reaped(151)).is_ok());
        let mut written = with_ttl(50);
        let path = ByteString::from_static("/w/t");
        let set = Txn::SetData { path, data: None, version: 1 };
        written.commit(&entry(2, 140, OpCode::SetData.code(), set)).expect("a client's");
        assert_eq!(written.overdue(190).map(|path| &**path), None);
        assert_eq!(written.overdue(191).map(|path| &**path), Some("/w/t"));
        assert!(written.commit(&reaped(151)).is_err());
        assert_eq!(written.overdue(191), None, "the sequence is followed all the same");
    }

    #[test]
    fn a_parent_changes_with_its_children() {
        let mut judge = Invariants::new(1);
        for (counter, path) in [(1, "/w"), (2, "/w/d"), (3, "/w/d/0")] {
            let txn = Txn::Create {
                path: path.into(),
                data: None,
                acl: Vec::new(),
                ephemeral: false,
                parent_cversion: 1,
            };
            judge.reference.commit(&entry(counter, 0, OpCode::Create.code(), txn)).expect("a client's");
        }
        let at = |counter| Zxid::new(Epoch(1), counter);
        assert_eq!(judge.standing("/w/d", at(1)), None);
        let changed = |place| judge.standing("/w/d", place).map(|stands| (stands.mzxid, stands.pzxid));
        assert_eq!(changed(at(2)), Some((at(2), at(2))));
        assert_eq!(changed(at(3)), Some((at(2), at(3))));
        let kinds: Vec<_> = judge.changes_between(at(2), at(3)).iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [EventType::NodeCreated, EventType::NodeChildrenChanged]);
    }
}
