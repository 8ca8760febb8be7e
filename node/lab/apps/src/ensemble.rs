//! A model of an ensemble, as its clients see it: one tree, changed by one request at a time.
//!
//! It keeps what recipes rest on: the order of all changes, numbers of sequential znodes, ephemeral znodes,
//! one-time watches, sessions that end some time after the leader last heard of them. It has no members, so
//! no reads that are behind: recipes are shown not to need newer ones by the worlds of the real protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Failure, Moment, Request, Response};
use node_wire::client::{
    CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT_SEQUENTIAL, ErrorCode, EventType,
    MultiOp, MultiResult, SetWatches2, Stat,
};
use node_wire::ids::{SessionId, Zxid};

/// A znode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Znode {
    data: Bytes,
    czxid: u64,
    mzxid: u64,
    pzxid: u64,
    version: i32,
    /// How many children were ever made: the number of the next sequential one.
    made: i32,
    owner: SessionId,
}

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
    znodes: BTreeMap<ByteString, Znode>,
    watches: BTreeSet<(List, ByteString, SessionId)>,
    sessions: BTreeMap<SessionId, Moment>,
    timeout: Duration,
    last_session: i64,
    zxid: u64,
}

type Outcome = Result<Response, Failure>;

impl Ensemble {
    /// An empty tree, whose sessions end after so long a silence.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        let root = Znode {
            data: Bytes::new(),
            czxid: 0,
            mzxid: 0,
            pzxid: 0,
            version: 0,
            made: 0,
            owner: SessionId::NONE,
        };
        Self {
            znodes: BTreeMap::from([("/".into(), root)]),
            watches: BTreeSet::new(),
            sessions: BTreeMap::new(),
            timeout,
            last_session: 0,
            zxid: 0,
        }
    }

    /// The newest change.
    #[must_use]
    pub fn zxid(&self) -> Zxid {
        Zxid(self.zxid)
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
        let own: Vec<ByteString> = self
            .znodes
            .iter()
            .filter(|(_, znode)| znode.owner == session)
            .map(|(path, _)| path.clone())
            .collect();
        self.zxid += 1;
        own.iter().flat_map(|path| self.remove(path)).collect()
    }

    /// The connection of a session is gone, and its watches with it.
    pub fn disconnect(&mut self, session: SessionId) {
        self.watches.retain(|(_, _, owner)| *owner != session);
    }

    /// The paths of a znode's children, with the sessions that own them.
    #[must_use]
    pub fn children(&self, parent: &str) -> Vec<(ByteString, SessionId)> {
        let found = self.znodes.iter().filter(|(path, _)| is_child(parent, path));
        found.map(|(path, znode)| (path.clone(), znode.owner)).collect()
    }

    /// The data of a znode.
    #[must_use]
    pub fn data(&self, path: &str) -> Option<&Bytes> {
        self.znodes.get(path).map(|znode| &znode.data)
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
                let newest = self.znodes.get(path).map(|znode| match list {
                    List::Data => znode.mzxid,
                    List::Children => znode.pzxid,
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
            if self.znodes.contains_key(path) {
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
        match request {
            Request::Sync { .. } => (Ok(Response::Done), Vec::new()),
            Request::Exists { path, watch } => (self.exists(session, path, *watch), Vec::new()),
            Request::GetData { path, watch } => (self.get_data(session, path, *watch), Vec::new()),
            Request::GetChildren { path, watch } => (self.get_children(session, path, *watch), Vec::new()),
            Request::Multi(ops) => self.multi(session, ops),
            Request::Create { path, data, mode, .. } => {
                self.alone(|world, fired| world.create(session, path, data, mode.flags(), fired))
            }
            Request::Delete { path, version } => {
                self.alone(|world, fired| world.delete(path, *version, fired))
            }
            Request::SetData { path, data, version } => {
                self.alone(|world, fired| world.set_data(path, data, *version, fired))
            }
            _ => (Err(Failure::refused(ErrorCode::Unimplemented)), Vec::new()),
        }
    }

    fn exists(&mut self, session: SessionId, path: &ByteString, watch: bool) -> Outcome {
        if watch {
            self.watches.insert((List::Data, path.clone(), session));
        }
        Ok(Response::Exists(self.stat(path)))
    }

    fn get_data(&mut self, session: SessionId, path: &ByteString, watch: bool) -> Outcome {
        let stat = self.stat(path).ok_or(Failure::refused(ErrorCode::NoNode))?;
        if watch {
            self.watches.insert((List::Data, path.clone(), session));
        }
        Ok(Response::Data { data: self.data(path).cloned().unwrap_or_default(), stat })
    }

    fn get_children(&mut self, session: SessionId, path: &ByteString, watch: bool) -> Outcome {
        let stat = self.stat(path).ok_or(Failure::refused(ErrorCode::NoNode))?;
        if watch {
            self.watches.insert((List::Children, path.clone(), session));
        }
        let names = self.children(path).into_iter();
        let names = names.filter_map(|(path, _)| path.rsplit('/').next().map(ByteString::from)).collect();
        Ok(Response::Children { names, stat })
    }

    fn alone(
        &mut self,
        change: impl FnOnce(&mut Self, &mut Vec<Fired>) -> Result<MultiResult, ErrorCode>,
    ) -> (Outcome, Vec<Fired>) {
        let before = self.zxid;
        self.zxid += 1;
        let mut fired = Vec::new();
        let outcome = match change(self, &mut fired) {
            Ok(MultiResult::Create2 { path, stat }) => Ok(Response::Created { path, stat }),
            Ok(MultiResult::SetData { stat }) => Ok(Response::Stat(stat)),
            Ok(_) => Ok(Response::Done),
            Err(code) => {
                self.zxid = before;
                Err(Failure::refused(code))
            }
        };
        (outcome, fired)
    }

    fn multi(&mut self, session: SessionId, ops: &[MultiOp]) -> (Outcome, Vec<Fired>) {
        let before = self.clone();
        if ops.iter().any(|op| !matches!(op, MultiOp::Check(_))) {
            self.zxid += 1;
        }
        let (mut fired, mut results) = (Vec::new(), Vec::new());
        for (at, op) in ops.iter().enumerate() {
            match self.part(session, op, &mut fired) {
                Ok(result) => results.push(result),
                Err(code) => {
                    let sessions = self.sessions.clone();
                    *self = Self { sessions, ..before };
                    return (Err(Failure::Refused { code, at: Some(at) }), Vec::new());
                }
            }
        }
        (Ok(Response::Multi(results)), fired)
    }

    fn part(
        &mut self,
        session: SessionId,
        op: &MultiOp,
        fired: &mut Vec<Fired>,
    ) -> Result<MultiResult, ErrorCode> {
        match op {
            MultiOp::Check(check) => {
                self.at_version(&check.path, check.version)?;
                Ok(MultiResult::Check)
            }
            MultiOp::Create(body) | MultiOp::Create2(body) => {
                let data = body.data.clone().unwrap_or_default();
                self.create(session, &body.path, &data, body.flags, fired)
            }
            MultiOp::Delete(body) => self.delete(&body.path, body.version, fired),
            MultiOp::SetData(body) => {
                let data = body.data.clone().unwrap_or_default();
                self.set_data(&body.path, &data, body.version, fired)
            }
            _ => Err(ErrorCode::Unimplemented),
        }
    }

    fn create(
        &mut self,
        session: SessionId,
        path: &ByteString,
        data: &Bytes,
        flags: i32,
        fired: &mut Vec<Fired>,
    ) -> Result<MultiResult, ErrorCode> {
        let zxid = self.zxid;
        let above = parent(path);
        let holder = self.znodes.get_mut(above).ok_or(ErrorCode::NoNode)?;
        if holder.owner != SessionId::NONE {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let numbered = [CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT_SEQUENTIAL].contains(&flags);
        let ephemeral = [CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL].contains(&flags);
        let path: ByteString =
            if numbered { format!("{path}{:010}", holder.made).into() } else { path.clone() };
        if self.znodes.contains_key(&path) {
            return Err(ErrorCode::NodeExists);
        }
        if let Some(holder) = self.znodes.get_mut(above) {
            holder.made += 1;
            holder.pzxid = zxid;
        }
        let znode = Znode {
            data: data.clone(),
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            version: 0,
            made: 0,
            owner: if ephemeral { session } else { SessionId::NONE },
        };
        self.znodes.insert(path.clone(), znode);
        self.fire(List::Data, &path, EventType::NodeCreated, fired);
        self.fire(List::Children, above, EventType::NodeChildrenChanged, fired);
        let stat = self.stat(&path).ok_or(ErrorCode::NoNode)?;
        Ok(MultiResult::Create2 { path, stat })
    }

    fn delete(&mut self, path: &str, version: i32, fired: &mut Vec<Fired>) -> Result<MultiResult, ErrorCode> {
        self.at_version(path, version)?;
        if !self.children(path).is_empty() {
            return Err(ErrorCode::NotEmpty);
        }
        fired.append(&mut self.remove(path));
        Ok(MultiResult::Delete)
    }

    fn set_data(
        &mut self,
        path: &str,
        data: &Bytes,
        version: i32,
        fired: &mut Vec<Fired>,
    ) -> Result<MultiResult, ErrorCode> {
        self.at_version(path, version)?;
        let zxid = self.zxid;
        if let Some(znode) = self.znodes.get_mut(path) {
            znode.data = data.clone();
            znode.version += 1;
            znode.mzxid = zxid;
        }
        self.fire(List::Data, path, EventType::NodeDataChanged, fired);
        let stat = self.stat(path).ok_or(ErrorCode::NoNode)?;
        Ok(MultiResult::SetData { stat })
    }

    fn at_version(&self, path: &str, version: i32) -> Result<(), ErrorCode> {
        let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
        if version == -1 || version == znode.version { Ok(()) } else { Err(ErrorCode::BadVersion) }
    }

    fn remove(&mut self, path: &str) -> Vec<Fired> {
        let mut fired = Vec::new();
        if self.znodes.remove(path).is_none() {
            return fired;
        }
        let above = parent(path);
        let zxid = self.zxid;
        if let Some(holder) = self.znodes.get_mut(above) {
            holder.pzxid = zxid;
        }
        self.fire(List::Data, path, EventType::NodeDeleted, &mut fired);
        self.fire(List::Children, path, EventType::NodeDeleted, &mut fired);
        // A server tells a session once of a deletion, also where it watched in both ways.
        fired.sort_by_key(|fired| fired.session);
        fired.dedup();
        self.fire(List::Children, above, EventType::NodeChildrenChanged, &mut fired);
        fired
    }

    fn fire(&mut self, list: List, path: &str, kind: EventType, fired: &mut Vec<Fired>) {
        let spent: Vec<_> =
            self.watches.iter().filter(|(of, watched, _)| *of == list && watched == path).cloned().collect();
        for watch in spent {
            self.watches.remove(&watch);
            let (_, path, session) = watch;
            fired.push(Fired { session, kind, path });
        }
    }

    fn stat(&self, path: &str) -> Option<Stat> {
        let znode = self.znodes.get(path)?;
        Some(Stat {
            czxid: Zxid(znode.czxid),
            mzxid: Zxid(znode.mzxid),
            pzxid: Zxid(znode.pzxid),
            ctime: 0,
            mtime: 0,
            version: znode.version,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: znode.owner,
            data_length: i32::try_from(znode.data.len()).unwrap_or(i32::MAX),
            num_children: i32::try_from(self.children(path).len()).unwrap_or(i32::MAX),
        })
    }
}

fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(at) => &path[..at],
    }
}

fn is_child(parent_path: &str, path: &str) -> bool {
    path != "/" && parent(path) == parent_path
}

/// A request that makes a znode, for what is there before applications come.
#[must_use]
pub fn make(path: &str, mode: CreateMode) -> Request {
    Request::Create { path: path.into(), data: Bytes::new(), acl: Vec::new(), mode }
}
