//! A model of an ensemble, as its clients see it: one tree, its sessions, and their watches.
//!
//! It keeps what recipes rest on: the order of all changes, numbers of sequential znodes, ephemeral znodes,
//! one-time watches, sessions that end some time after the leader last heard of them. It has no members, so
//! no reads that are behind: recipes are shown not to need newer ones by the worlds of the real protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use node_recipes::model::{Change, Outcome, Tree};
use node_session::{CreateMode, Moment, Request};
use node_wire::client::{EventType, SetWatches2};
use node_wire::ids::{SessionId, Zxid};

/// Which list a watch of a server stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum List {
    Data,
    Children,
}

/// An event for a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fired {
    /// Whose watch it was.
    pub session: SessionId,
    /// What happened.
    pub kind: EventType,
    /// To which znode.
    pub path: ByteString,
}

/// The tree, the sessions, and the watches of those that are connected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ensemble {
    tree: Tree,
    watches: BTreeSet<(List, ByteString, SessionId)>,
    sessions: BTreeMap<SessionId, Moment>,
    timeout: Duration,
    last_session: i64,
}

impl Ensemble {
    /// An empty tree, whose sessions end after so long a silence.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self {
            tree: Tree::default(),
            watches: BTreeSet::new(),
            sessions: BTreeMap::new(),
            timeout,
            last_session: 0,
        }
    }

    /// The newest change.
    #[must_use]
    pub fn zxid(&self) -> Zxid {
        self.tree.zxid()
    }

    /// The time-out of sessions.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A new session.
    pub fn open(&mut self, at: Moment) -> SessionId {
        self.last_session += 1;
        let session = SessionId(self.last_session);
        self.sessions.insert(session, at + self.timeout);
        session
    }

    /// True while a session lives.
    #[must_use]
    pub fn lives(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// The leader heard of a session.
    pub fn touch(&mut self, session: SessionId, at: Moment) {
        if let Some(deadline) = self.sessions.get_mut(&session) {
            *deadline = at + self.timeout;
        }
    }

    /// Sessions that may be ended now.
    #[must_use]
    pub fn overdue(&self, at: Moment) -> Vec<SessionId> {
        self.sessions.iter().filter(|(_, deadline)| **deadline <= at).map(|(session, _)| *session).collect()
    }

    /// Ends a session, and its ephemeral znodes with it.
    pub fn end(&mut self, session: SessionId) -> Vec<Fired> {
        self.sessions.remove(&session);
        self.disconnect(session);
        let changes = self.tree.end(session);
        self.fire(&changes)
    }

    /// The connection of a session is gone, and its watches with it.
    pub fn disconnect(&mut self, session: SessionId) {
        self.watches.retain(|(_, _, owner)| *owner != session);
    }

    /// The paths of a znode's children, with the sessions that own them.
    #[must_use]
    pub fn children(&self, parent: &str) -> Vec<(ByteString, SessionId)> {
        self.tree.owners(parent)
    }

    /// True while this znode is there.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.tree.stat(path).is_some()
    }

    /// Leaves the watches of an earlier connection again. What changed since fires at once.
    pub fn leave_again(&mut self, session: SessionId, watches: &SetWatches2) -> Vec<Fired> {
        let seen = watches.relative_zxid.0;
        let mut fired = Vec::new();
        let lists = [
            (&watches.data_watches, List::Data, EventType::NodeDataChanged),
            (&watches.child_watches, List::Children, EventType::NodeChildrenChanged),
        ];
        for (paths, list, changed) in lists {
            for path in paths {
                let newest = self.tree.stat(path).map(|stat| match list {
                    List::Data => stat.mzxid.0,
                    List::Children => stat.pzxid.0,
                });
                match newest {
                    None => fired.push(Fired { session, kind: EventType::NodeDeleted, path: path.clone() }),
                    Some(newest) if newest > seen => {
                        fired.push(Fired { session, kind: changed, path: path.clone() });
                    }
                    Some(_) => {
                        self.watches.insert((list, path.clone(), session));
                    }
                }
            }
        }
        for path in &watches.exist_watches {
            if self.has(path) {
                fired.push(Fired { session, kind: EventType::NodeCreated, path: path.clone() });
            } else {
                self.watches.insert((List::Data, path.clone(), session));
            }
        }
        fired
    }

    /// Carries out a request of a session that lives.
    pub fn serve(&mut self, session: SessionId, request: &Request, at: Moment) -> (Outcome, Vec<Fired>) {
        if request.is_transaction() {
            self.touch(session, at);
        }
        let (outcome, changes) = self.tree.apply(session, request);
        match request {
            Request::Exists { path, watch: true } => self.watch(List::Data, path, session),
            Request::GetData { path, watch: true } if outcome.is_ok() => {
                self.watch(List::Data, path, session);
            }
            Request::GetChildren { path, watch: true } if outcome.is_ok() => {
                self.watch(List::Children, path, session);
            }
            _ => {}
        }
        (outcome, self.fire(&changes))
    }

    fn watch(&mut self, list: List, path: &ByteString, session: SessionId) {
        self.watches.insert((list, path.clone(), session));
    }

    /// The watches that these changes spend.
    fn fire(&mut self, changes: &[Change]) -> Vec<Fired> {
        let mut all = Vec::new();
        for Change { kind, path } in changes {
            let lists: &[List] = match kind {
                EventType::NodeChildrenChanged => &[List::Children],
                EventType::NodeDeleted => &[List::Data, List::Children],
                _ => &[List::Data],
            };
            let spent = self.watches.extract_if(.., |(of, watched, _)| lists.contains(of) && watched == path);
            let mut fired: Vec<Fired> =
                spent.map(|(_, path, session)| Fired { session, kind: *kind, path }).collect();
            // A server tells a session once of a deletion, also where it watched in both ways.
            fired.sort_by_key(|fired| fired.session);
            fired.dedup();
            all.append(&mut fired);
        }
        all
    }
}

/// A request that makes a znode, for what is there before applications come.
#[must_use]
pub fn make(path: &str, mode: CreateMode) -> Request {
    Request::Create { path: path.into(), data: Bytes::new(), acl: Vec::new(), mode }
}
