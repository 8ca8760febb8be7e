//! A model of an ensemble's tree, as its clients see it: one tree, changed by one request at a time.
//!
//! It keeps what recipes rest on: the order of all changes, numbers of sequential znodes, znodes that go with
//! their session, and what a watch would see. It has no members, no sessions and no watches of its own. Tests
//! of recipes drive clients over it by hand, and the test bench explores applications over it.

use std::collections::BTreeMap;

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{Failure, Request, Response};
use node_wire::client::{
    CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT_SEQUENTIAL, ErrorCode, EventType,
    KeeperState, MultiOp, MultiResult, Stat, WatcherEvent,
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

/// What a watch of this znode would see.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// What happened.
    pub kind: EventType,
    /// To which znode.
    pub path: ByteString,
}

impl Change {
    /// The event as a server sends it.
    #[must_use]
    pub fn event(&self) -> WatcherEvent {
        let state = KeeperState::SyncConnected.code();
        WatcherEvent { kind: self.kind.code(), state, path: self.path.clone() }
    }
}

/// The answer to a request.
pub type Outcome = Result<Response, Failure>;

/// All znodes, and the number of the newest change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    znodes: BTreeMap<ByteString, Znode>,
    zxid: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Self { znodes: BTreeMap::from([("/".into(), Znode::new(Bytes::new(), 0, SessionId::NONE))]), zxid: 0 }
    }
}

impl Znode {
    fn new(data: Bytes, zxid: u64, owner: SessionId) -> Self {
        Self { data, czxid: zxid, mzxid: zxid, pzxid: zxid, version: 0, made: 0, owner }
    }
}

impl Tree {
    /// The newest change.
    #[must_use]
    pub fn zxid(&self) -> Zxid {
        Zxid(self.zxid)
    }

    /// The data of a znode.
    #[must_use]
    pub fn data(&self, path: &str) -> Option<Bytes> {
        self.znodes.get(path).map(|znode| znode.data.clone())
    }

    /// What a client is told of a znode.
    #[must_use]
    pub fn stat(&self, path: &str) -> Option<Stat> {
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
            num_children: i32::try_from(self.owners(path).len()).unwrap_or(i32::MAX),
        })
    }

    /// The paths of a znode's children, with the sessions that own them.
    #[must_use]
    pub fn owners(&self, parent: &str) -> Vec<(ByteString, SessionId)> {
        let found = self.znodes.iter().filter(|(path, _)| is_child(parent, path));
        found.map(|(path, znode)| (path.clone(), znode.owner)).collect()
    }

    /// The names of a znode's children.
    #[must_use]
    pub fn children(&self, parent: &str) -> Vec<ByteString> {
        let paths = self.owners(parent).into_iter();
        paths.filter_map(|(path, _)| path.rsplit('/').next().map(ByteString::from)).collect()
    }

    /// Carries out a request of this session. What is refused changes nothing.
    pub fn apply(&mut self, session: SessionId, request: &Request) -> (Outcome, Vec<Change>) {
        let unchanged = |answer: Result<Response, ErrorCode>| (answer.map_err(Failure::refused), Vec::new());
        match request {
            Request::Sync { .. } | Request::AddWatch { .. } | Request::RemoveWatches { .. } => {
                unchanged(Ok(Response::Done))
            }
            Request::Exists { path, .. } => unchanged(Ok(Response::Exists(self.stat(path)))),
            Request::GetData { path, .. } => unchanged(
                self.there(path)
                    .map(|stat| Response::Data { data: self.data(path).unwrap_or_default(), stat }),
            ),
            Request::GetChildren { path, .. } => unchanged(
                self.there(path).map(|stat| Response::Children { names: self.children(path), stat }),
            ),
            Request::MultiRead(ops) => {
                let failed = |code: ErrorCode| MultiResult::Error { err: code.code() };
                let mut read = |op| self.part(session, op, &mut Vec::new()).unwrap_or_else(failed);
                unchanged(Ok(Response::Multi(ops.iter().map(&mut read).collect())))
            }
            Request::Multi(ops) => self.multi(session, ops),
            Request::Create { path, data, mode, .. } => {
                self.alone(|tree, changes| tree.create(session, path, data, mode.flags(), changes))
            }
            Request::Delete { path, version } => {
                self.alone(|tree, changes| tree.delete(path, *version, changes))
            }
            Request::SetData { path, data, version } => {
                self.alone(|tree, changes| tree.set_data(path, data, *version, changes))
            }
            _ => unchanged(Err(ErrorCode::Unimplemented)),
        }
    }

    /// A session is over, and its znodes go.
    pub fn end(&mut self, session: SessionId) -> Vec<Change> {
        let own: Vec<ByteString> = self
            .znodes
            .iter()
            .filter(|(_, znode)| znode.owner == session)
            .map(|(path, _)| path.clone())
            .collect();
        self.zxid += 1;
        let mut changes = Vec::new();
        for path in own {
            self.remove(&path, &mut changes);
        }
        changes
    }

    fn alone(
        &mut self,
        change: impl FnOnce(&mut Self, &mut Vec<Change>) -> Result<MultiResult, ErrorCode>,
    ) -> (Outcome, Vec<Change>) {
        let before = self.zxid;
        self.zxid += 1;
        let mut changes = Vec::new();
        let outcome = match change(self, &mut changes) {
            Ok(MultiResult::Create2 { path, stat }) => Ok(Response::Created { path, stat }),
            Ok(MultiResult::SetData { stat }) => Ok(Response::Stat(stat)),
            Ok(_) => Ok(Response::Done),
            Err(code) => {
                self.zxid = before;
                Err(Failure::refused(code))
            }
        };
        (outcome, changes)
    }

    fn multi(&mut self, session: SessionId, ops: &[MultiOp]) -> (Outcome, Vec<Change>) {
        let before = self.clone();
        if ops.iter().any(|op| !matches!(op, MultiOp::Check(_))) {
            self.zxid += 1;
        }
        let (mut changes, mut results) = (Vec::new(), Vec::new());
        for (at, op) in ops.iter().enumerate() {
            match self.part(session, op, &mut changes) {
                Ok(result) => results.push(result),
                Err(code) => {
                    *self = before;
                    return (Err(Failure::Refused { code, at: Some(at) }), Vec::new());
                }
            }
        }
        (Ok(Response::Multi(results)), changes)
    }

    fn part(
        &mut self,
        session: SessionId,
        op: &MultiOp,
        changes: &mut Vec<Change>,
    ) -> Result<MultiResult, ErrorCode> {
        match op {
            MultiOp::Check(check) => {
                self.at_version(&check.path, check.version)?;
                Ok(MultiResult::Check)
            }
            MultiOp::Create(body) | MultiOp::Create2(body) | MultiOp::CreateContainer(body) => {
                let data = body.data.clone().unwrap_or_default();
                self.create(session, &body.path, &data, body.flags, changes)
            }
            MultiOp::Delete(body) => self.delete(&body.path, body.version, changes),
            MultiOp::SetData(body) => {
                let data = body.data.clone().unwrap_or_default();
                self.set_data(&body.path, &data, body.version, changes)
            }
            MultiOp::GetData(body) => {
                let stat = self.there(&body.path)?;
                Ok(MultiResult::GetData { data: self.data(&body.path), stat })
            }
            MultiOp::GetChildren(body) => {
                self.there(&body.path)?;
                Ok(MultiResult::GetChildren { children: self.children(&body.path) })
            }
            MultiOp::CreateTtl(_) => Err(ErrorCode::Unimplemented),
        }
    }

    fn create(
        &mut self,
        session: SessionId,
        path: &ByteString,
        data: &Bytes,
        flags: i32,
        changes: &mut Vec<Change>,
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
        let owner = if ephemeral { session } else { SessionId::NONE };
        self.znodes.insert(path.clone(), Znode::new(data.clone(), zxid, owner));
        changes.push(Change { kind: EventType::NodeCreated, path: path.clone() });
        changes.push(Change { kind: EventType::NodeChildrenChanged, path: above.into() });
        let stat = self.there(&path)?;
        Ok(MultiResult::Create2 { path, stat })
    }

    fn delete(
        &mut self,
        path: &str,
        version: i32,
        changes: &mut Vec<Change>,
    ) -> Result<MultiResult, ErrorCode> {
        self.at_version(path, version)?;
        if !self.owners(path).is_empty() {
            return Err(ErrorCode::NotEmpty);
        }
        self.remove(path, changes);
        Ok(MultiResult::Delete)
    }

    fn set_data(
        &mut self,
        path: &str,
        data: &Bytes,
        version: i32,
        changes: &mut Vec<Change>,
    ) -> Result<MultiResult, ErrorCode> {
        self.at_version(path, version)?;
        let zxid = self.zxid;
        if let Some(znode) = self.znodes.get_mut(path) {
            znode.data = data.clone();
            znode.version += 1;
            znode.mzxid = zxid;
        }
        changes.push(Change { kind: EventType::NodeDataChanged, path: path.into() });
        Ok(MultiResult::SetData { stat: self.there(path)? })
    }

    fn there(&self, path: &str) -> Result<Stat, ErrorCode> {
        self.stat(path).ok_or(ErrorCode::NoNode)
    }

    fn at_version(&self, path: &str, version: i32) -> Result<(), ErrorCode> {
        let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
        if version == -1 || version == znode.version { Ok(()) } else { Err(ErrorCode::BadVersion) }
    }

    fn remove(&mut self, path: &str, changes: &mut Vec<Change>) {
        if self.znodes.remove(path).is_none() {
            return;
        }
        let above = parent(path);
        let zxid = self.zxid;
        if let Some(holder) = self.znodes.get_mut(above) {
            holder.pzxid = zxid;
        }
        changes.push(Change { kind: EventType::NodeDeleted, path: path.into() });
        changes.push(Change { kind: EventType::NodeChildrenChanged, path: above.into() });
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
