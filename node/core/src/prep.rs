//! From a request to a transaction: the leader judges each write against the state that will stand when its
//! turn comes, that is the tree and everything proposed before it.
//!
//! What is proposed and not yet applied is kept here as one record for each changed path (ZooKeeper calls them
//! outstanding changes). Creates get their sequential number, setData its new version, and a refusal becomes a
//! transaction of its own: it too was judged against proposals that may yet be lost, so it takes its place in
//! the order. Told early, a failed compare-and-set would not be linearizable.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytestring::ByteString;
use node_wire::client::{CreateRequest, DeleteRequest, ErrorCode, OpCode, SetDataRequest, validate_path};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Reader;
use node_wire::quorum::ForwardedRequest;
use node_wire::txn::Txn;

use crate::learner::encode;
use crate::plant::{Bug, Plant};
use crate::tree::{Tree, parent_of};

/// Flags of a create request.
const EPHEMERAL: i32 = 1;
const SEQUENTIAL: i32 = 2;

/// How a path will look when all that is proposed is applied.
#[derive(Clone, Debug, Hash)]
struct Record {
    /// The last proposal that changed it.
    zxid: Zxid,
    exists: bool,
    version: i32,
    /// Creates below it so far.
    cversion: i32,
    children: usize,
    ephemeral_owner: SessionId,
}

/// Everything that is proposed and not applied.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Outstanding {
    records: BTreeMap<ByteString, Record>,
    /// Which proposal changed which paths, oldest first.
    changes: VecDeque<(Zxid, ByteString)>,
    created_sessions: BTreeMap<SessionId, Zxid>,
    closing_sessions: BTreeMap<SessionId, Zxid>,
}

impl Outstanding {
    /// The transaction for a request. It is proposed as `zxid`: the records count on it.
    pub(crate) fn transaction<P: Plant>(
        &mut self,
        plant: P,
        tree: &Tree,
        request: &ForwardedRequest,
        zxid: Zxid,
    ) -> (i32, Txn) {
        match self.judge(plant, tree, request, zxid) {
            // The header names the operation that made it: create and create2 share a record.
            Ok(txn) => (request.op, txn),
            Err(error) => {
                let txn = Txn::Error { code: error.code() };
                (txn.kind(), txn)
            }
        }
    }

    /// A proposal was applied: what it promised is in the tree.
    pub(crate) fn applied(&mut self, zxid: Zxid) {
        while let Some((changed, _)) = self.changes.front()
            && *changed <= zxid
        {
            if let Some((_, path)) = self.changes.pop_front()
                && self.records.get(&path).is_some_and(|record| record.zxid <= zxid)
            {
                self.records.remove(&path);
            }
        }
        if !self.created_sessions.is_empty() {
            self.created_sessions.retain(|_, created| *created > zxid);
        }
        if !self.closing_sessions.is_empty() {
            self.closing_sessions.retain(|_, closing| *closing > zxid);
        }
    }

    /// True when a session lives and is not about to be closed.
    pub(crate) fn session_lives(&self, tree: &Tree, session: SessionId) -> bool {
        !self.closing_sessions.contains_key(&session)
            && (tree.session(session).is_some() || self.created_sessions.contains_key(&session))
    }

    fn judge<P: Plant>(
        &mut self,
        plant: P,
        tree: &Tree,
        request: &ForwardedRequest,
        zxid: Zxid,
    ) -> Result<Txn, ErrorCode> {
        let op = OpCode::from_code(request.op).ok_or(ErrorCode::Unimplemented)?;
        let mut body = Reader::new(request.payload.clone());
        if op == OpCode::CreateSession {
            let timeout_ms = body.int().map_err(|_| ErrorCode::MarshallingError)?;
            self.created_sessions.insert(request.session, zxid);
            return Ok(Txn::CreateSession { timeout_ms });
        }
        if !self.session_lives(tree, request.session) {
            return Err(ErrorCode::SessionExpired);
        }
        match op {
            OpCode::Create | OpCode::Create2 => {
                let request_body =
                    CreateRequest::decode(&mut body).map_err(|_| ErrorCode::MarshallingError)?;
                self.create(plant, tree, request.session, request_body, zxid)
            }
            OpCode::Delete => {
                let request_body =
                    DeleteRequest::decode(&mut body).map_err(|_| ErrorCode::MarshallingError)?;
                self.delete(tree, request_body, zxid)
            }
            OpCode::SetData => {
                let request_body =
                    SetDataRequest::decode(&mut body).map_err(|_| ErrorCode::MarshallingError)?;
                self.set_data(tree, request_body, zxid)
            }
            OpCode::CloseSession => Ok(self.close_session(tree, request.session, zxid)),
            _ => Err(ErrorCode::Unimplemented),
        }
    }

    fn create<P: Plant>(
        &mut self,
        plant: P,
        tree: &Tree,
        session: SessionId,
        request: CreateRequest,
        zxid: Zxid,
    ) -> Result<Txn, ErrorCode> {
        let CreateRequest { path, data, acl, flags } = request;
        if !(0..=(EPHEMERAL | SEQUENTIAL)).contains(&flags) {
            return Err(ErrorCode::Unimplemented);
        }
        if acl.is_empty() {
            return Err(ErrorCode::InvalidAcl);
        }
        let ephemeral = flags & EPHEMERAL != 0;
        let sequential = flags & SEQUENTIAL != 0;
        // A sequential name may end in a slash: its number is the name.
        let slash = path.rfind('/').ok_or(ErrorCode::BadArguments)?;
        let parent_path = if slash == 0 { "/" } else { &path[..slash] };
        let parent = self.record(tree, parent_path).filter(|parent| parent.exists);
        let path = match (&parent, sequential) {
            (Some(parent), true) if plant.has(Bug::SequentialTwice) => {
                ByteString::from(format!("{path}{:010}", parent.children))
            }
            (Some(parent), true) => ByteString::from(format!("{path}{:010}", parent.cversion)),
            _ => path.clone(),
        };
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        let mut parent = parent.ok_or(ErrorCode::NoNode)?;
        if path.len() == 1 || self.record(tree, &path).is_some_and(|record| record.exists) {
            return Err(ErrorCode::NodeExists);
        }
        if parent.ephemeral_owner != SessionId::NONE {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        parent.cversion = parent.cversion.wrapping_add(1);
        parent.children += 1;
        let parent_cversion = parent.cversion;
        self.change(ByteString::from(parent_path), parent, zxid);
        let owner = if ephemeral { session } else { SessionId::NONE };
        let created =
            Record { zxid, exists: true, version: 0, cversion: 0, children: 0, ephemeral_owner: owner };
        self.change(path.clone(), created, zxid);
        Ok(Txn::Create { path, data, acl, ephemeral, parent_cversion })
    }

    fn delete(&mut self, tree: &Tree, request: DeleteRequest, zxid: Zxid) -> Result<Txn, ErrorCode> {
        let DeleteRequest { path, version } = request;
        let (parent_path, _) = parent_of(&path).ok_or(ErrorCode::BadArguments)?;
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        let record = self.record(tree, &path).filter(|record| record.exists).ok_or(ErrorCode::NoNode)?;
        check_version(version, record.version)?;
        if record.children > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        if path == "/zookeeper" || path.starts_with("/zookeeper/") {
            return Err(ErrorCode::BadArguments);
        }
        self.remove(tree, &path, parent_path, record, zxid);
        Ok(Txn::Delete { path })
    }

    fn remove(&mut self, tree: &Tree, path: &ByteString, parent_path: &str, mut record: Record, zxid: Zxid) {
        if let Some(mut parent) = self.record(tree, parent_path) {
            parent.children = parent.children.saturating_sub(1);
            self.change(ByteString::from(parent_path), parent, zxid);
        }
        record.exists = false;
        self.change(path.clone(), record, zxid);
    }

    fn set_data(&mut self, tree: &Tree, request: SetDataRequest, zxid: Zxid) -> Result<Txn, ErrorCode> {
        let SetDataRequest { path, data, version } = request;
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        let mut record = self.record(tree, &path).filter(|record| record.exists).ok_or(ErrorCode::NoNode)?;
        check_version(version, record.version)?;
        record.version = record.version.wrapping_add(1);
        let version = record.version;
        self.change(path.clone(), record, zxid);
        Ok(Txn::SetData { path, data, version })
    }

    fn close_session(&mut self, tree: &Tree, session: SessionId, zxid: Zxid) -> Txn {
        let mut paths: BTreeSet<ByteString> = tree.ephemerals(session).cloned().collect();
        for (path, record) in &self.records {
            // A proposed change overrides the tree: the path may be gone, or be somebody else's by then.
            if record.exists && record.ephemeral_owner == session {
                paths.insert(path.clone());
            } else {
                paths.remove(path);
            }
        }
        for path in &paths {
            if let (Some((parent_path, _)), Some(record)) = (parent_of(path), self.record(tree, path)) {
                self.remove(tree, path, parent_path, record, zxid);
            }
        }
        self.closing_sessions.insert(session, zxid);
        Txn::CloseSession { paths: Some(paths.into_iter().collect()) }
    }

    fn record(&self, tree: &Tree, path: &str) -> Option<Record> {
        if let Some(record) = self.records.get(path) {
            return Some(record.clone());
        }
        tree.node(path).map(|node| Record {
            zxid: Zxid::ZERO,
            exists: true,
            version: node.stat.version,
            cversion: node.stat.cversion,
            children: node.children.len(),
            ephemeral_owner: node.stat.ephemeral_owner,
        })
    }

    fn change(&mut self, path: ByteString, record: Record, zxid: Zxid) {
        self.changes.push_back((zxid, path.clone()));
        self.records.insert(path, Record { zxid, ..record });
    }
}

/// True for a compare-and-set that fails on this tree, whatever is proposed and under way.
pub(crate) fn fails_here(tree: &Tree, request: &ForwardedRequest) -> bool {
    if request.op != OpCode::SetData.code() {
        return false;
    }
    let Ok(set) = SetDataRequest::decode(&mut Reader::new(request.payload.clone())) else { return false };
    tree.node(&set.path).is_some_and(|node| check_version(set.version, node.stat.version).is_err())
}

/// The request to remove a node that nobody asked to remove.
pub(crate) fn removal(session: SessionId, path: ByteString) -> ForwardedRequest {
    let payload = encode(|w| DeleteRequest { path, version: -1 }.encode(w));
    ForwardedRequest { session, cxid: 0, op: OpCode::Delete.code(), payload }
}

/// -1 asks for any version.
fn check_version(asked: i32, is: i32) -> Result<(), ErrorCode> {
    if asked == -1 || asked == is { Ok(()) } else { Err(ErrorCode::BadVersion) }
}
