//! From a request to a transaction: the leader judges each write against the state that will stand when its
//! turn comes, that is the tree and everything proposed before it.
//!
//! What is proposed and not yet applied is kept here as one record for each changed path (ZooKeeper calls
//! them outstanding changes). Creates get their sequential number, setData its new version, and a refusal
//! becomes a transaction of its own: it too was judged against proposals that may yet be lost, so it takes
//! its place in the order. Told early, a failed compare-and-set would not be linearizable.
//!
//! The operations of a multi are judged one by one, each against those before it. When one is refused the
//! records of the others are taken back, and the transaction says which one it was.

mod nodes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_wire::client::{
    CREATE_CONTAINER, CheckVersionRequest, CreateRequest, CreateTtlRequest, DeleteRequest, ErrorCode, Id,
    MultiOp, MultiRequest, OpCode, PERM_WRITE, SetAclRequest, SetDataRequest,
};
use node_wire::ephemeral::EphemeralType;
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{DecodeError, Reader, Writer};
use node_wire::membership::Membership;
use node_wire::quorum::ForwardedRequest;
use node_wire::txn::Txn;

use crate::access::permits;
use crate::ensemble::CONFIG_NODE;
use crate::rules::ClientRules;
use crate::tree::{SharedAcl, Tree, parent_of, parent_path};
use crate::zab::Protocol;

/// What stands for no time to live.
const NO_TTL: i64 = -1;

/// A part of a multi that is refused: a kind, a length and an error.
const REFUSED_PART: usize = 4 + 4 + 4;

/// How a path will look when all that is proposed is applied.
#[derive(Clone, Debug, Hash)]
struct Record {
    /// The last proposal that changed it.
    zxid: Zxid,
    exists: bool,
    version: i32,
    /// Creates below it so far.
    cversion: i32,
    aversion: i32,
    children: usize,
    /// Its session, or what else makes it go by itself.
    owner: SessionId,
    acl: SharedAcl,
    /// Bytes of its data.
    length: usize,
}

/// Everything that is proposed and not applied.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Outstanding {
    records: BTreeMap<ByteString, Record>,
    /// Which proposal changed which paths, oldest first.
    changes: VecDeque<(Zxid, ByteString)>,
    /// Ephemeral nodes among the records, by session.
    ephemerals: BTreeMap<SessionId, BTreeSet<ByteString>>,
    created_sessions: BTreeMap<SessionId, Zxid>,
    /// Sessions that end: their nodes in the tree are as good as gone, without a record of each.
    closing_sessions: BTreeMap<SessionId, Zxid>,
    /// Which proposal begins or ends which session, oldest first.
    sessions: VecDeque<(Zxid, SessionId)>,
    /// What a multi that is being judged has changed, and what was there before.
    undo: Option<Vec<(ByteString, Option<Record>)>>,
}

/// One request, and all that it is judged by.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a, P> {
    pub(crate) zab: P,
    pub(crate) rules: &'a ClientRules,
    pub(crate) tree: &'a Tree,
    /// The membership that a reconfig asks for, as the leader judges it.
    pub(crate) membership: Option<&'a Result<Membership, ErrorCode>>,
    pub(crate) request: &'a ForwardedRequest,
    /// It is proposed as this: the records count on it.
    pub(crate) zxid: Zxid,
    /// Its session may be one that another member alone knows.
    pub(crate) local: bool,
}

impl<P> Case<'_, P> {
    fn who(&self) -> &[Id] {
        &self.request.auth
    }

    fn demand(&self, record: &Record, permission: i32) -> Result<(), ErrorCode> {
        if self.rules.skip_acl || permits(&record.acl, permission, self.who()) {
            Ok(())
        } else {
            Err(ErrorCode::NoAuth)
        }
    }

    /// So much more at a path. Judged by what is applied, as in ZooKeeper: what is under way may go beyond.
    fn demand_room(&self, path: &str, bytes: i64, nodes: i64) -> Result<(), ErrorCode> {
        if self.rules.enforce_quota && self.tree.exceeds_quota(path, bytes, nodes) {
            return Err(ErrorCode::QuotaExceeded);
        }
        Ok(())
    }
}

impl Outstanding {
    /// The transaction for a request.
    pub(crate) fn transaction<P: Protocol>(&mut self, case: Case<'_, P>) -> (i32, Txn) {
        match self.judge(case) {
            // The header names the operation that made it: create and create2 share a record.
            Ok(txn) => (case.request.op, txn),
            Err(error) => {
                let txn = refusal(error);
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
                self.put(path, None);
            }
        }
        while let Some((changed, session)) = self.sessions.front().copied()
            && changed <= zxid
        {
            self.sessions.pop_front();
            for sessions in [&mut self.created_sessions, &mut self.closing_sessions] {
                if sessions.get(&session).is_some_and(|changed| *changed <= zxid) {
                    sessions.remove(&session);
                }
            }
        }
    }

    /// True when a session lives and is not about to be closed.
    pub(crate) fn session_lives(&self, tree: &Tree, session: SessionId) -> bool {
        !self.closing_sessions.contains_key(&session)
            && (tree.session(session).is_some() || self.created_sessions.contains_key(&session))
    }

    fn judge<P: Protocol>(&mut self, case: Case<'_, P>) -> Result<Txn, ErrorCode> {
        let request = case.request;
        let op = OpCode::from_code(request.op).ok_or(ErrorCode::Unimplemented)?;
        if request.payload.len() > case.rules.max_buffer {
            // No client can ask so much; who forwards it is none of ours.
            return Err(ErrorCode::MarshallingError);
        }
        let mut body = Reader::new(request.payload.clone());
        if op == OpCode::CreateSession {
            let timeout_ms = body.int().map_err(malformed)?;
            self.created_sessions.insert(request.session, case.zxid);
            self.sessions.push_back((case.zxid, request.session));
            return Ok(Txn::CreateSession { timeout_ms });
        }
        if op == OpCode::DeleteContainer && request.session == SessionId::NONE {
            return self.delete_container(case, &request.payload);
        }
        if !self.session_lives(case.tree, request.session) && !case.local {
            return Err(ErrorCode::SessionExpired);
        }
        match op {
            OpCode::Reconfig => self.reconfig(case),
            OpCode::CloseSession => Ok(self.close_session(case)),
            OpCode::Multi => {
                let request = MultiRequest::decode(&mut body).map_err(malformed)?;
                Ok(self.multi(case, request))
            }
            _ => {
                let op = single(op, &mut body).ok_or(ErrorCode::Unimplemented)?.map_err(malformed)?;
                self.judge_single(case, op)
            }
        }
    }

    /// A request that stands alone, or is a part of a multi.
    fn judge_single<P: Protocol>(&mut self, case: Case<'_, P>, op: Single) -> Result<Txn, ErrorCode> {
        match op {
            Single::SetAcl(request) => self.set_acl(case, request),
            Single::Op(MultiOp::Create(request) | MultiOp::Create2(request)) => {
                self.create(case, OpCode::Create, without_ttl(request))
            }
            Single::Op(MultiOp::CreateContainer(request)) => {
                self.create(case, OpCode::CreateContainer, without_ttl(request))
            }
            Single::Op(MultiOp::CreateTtl(request)) => self.create(case, OpCode::CreateTtl, request),
            Single::Op(MultiOp::Delete(request)) => self.delete(case, request),
            Single::Op(MultiOp::SetData(request)) => self.set_data(case, request),
            Single::Op(MultiOp::Check(request)) => self.check(case, request),
            // Reads, which belong into a multiRead.
            Single::Op(MultiOp::GetData(_) | MultiOp::GetChildren(_)) => Err(ErrorCode::BadArguments),
        }
    }

    fn multi<P: Protocol>(&mut self, case: Case<'_, P>, request: MultiRequest) -> Txn {
        let changes = self.changes.len();
        self.undo = Some(Vec::new());
        let mut refused = false;
        // Each part has room as a refusal already.
        let mut room = case.rules.max_parts().saturating_sub(request.ops.len() * REFUSED_PART);
        // One buffer holds all parts.
        let mut parts = BytesMut::with_capacity(case.request.payload.len());
        let mut ends = Vec::with_capacity(request.ops.len());
        for op in request.ops {
            let op = as_in_a_multi(op);
            let kind = op.op().code();
            let (kind, txn) = if refused {
                let txn = refusal(ErrorCode::RuntimeInconsistency);
                (txn.kind(), txn)
            } else {
                let judged = self.judge_single(case, Single::Op(op)).and_then(|txn| {
                    // Of lists that a few bytes stand for.
                    room = room.checked_sub(txn.encoded_len()).ok_or(ErrorCode::MarshallingError)?;
                    Ok((kind, txn))
                });
                judged.unwrap_or_else(|error| {
                    refused = true;
                    let txn = refusal(error);
                    (txn.kind(), txn)
                })
            };
            txn.encode(&mut Writer::new(&mut parts));
            ends.push((kind, parts.len()));
        }
        let (parts, mut begin) = (parts.freeze(), 0);
        let part = |(kind, end)| (kind, parts.slice(std::mem::replace(&mut begin, end)..end));
        let mut txns: Vec<(i32, Bytes)> = ends.into_iter().map(part).collect();
        let undo = self.undo.take().unwrap_or_default();
        if refused && !case.zab.multi_is_atomic() {
            txns.retain(|(kind, _)| *kind != refusal(ErrorCode::Ok).kind());
        } else if refused {
            self.changes.truncate(changes);
            for (path, before) in undo.into_iter().rev() {
                self.put(path, before);
            }
        }
        Txn::Multi { txns }
    }

    /// The ensemble becomes another. Whether it can is the leader's judgement; here is whether the client
    /// may.
    fn reconfig<P: Protocol>(&mut self, case: Case<'_, P>) -> Result<Txn, ErrorCode> {
        /// ZooKeeper gives the node no other, however often it changes.
        const VERSION: i32 = -1;
        let membership = case.membership.ok_or(ErrorCode::Unimplemented)?.as_ref().map_err(|error| *error)?;
        let record = self.existing(case.tree, CONFIG_NODE)?;
        case.demand(&record, PERM_WRITE)?;
        let (path, data) = (ByteString::from_static(CONFIG_NODE), membership.to_bytes());
        let record = Record { version: VERSION, length: data.len(), ..record };
        self.change(path.clone(), record, case.zxid);
        Ok(Txn::SetData { path, data: Some(data), version: VERSION })
    }

    fn close_session<P: Protocol>(&mut self, case: Case<'_, P>) -> Txn {
        let session = case.request.session;
        let proposed = self.ephemerals.get(&session).cloned().unwrap_or_default();
        // A proposed change overrides the tree: the path may be gone, or be somebody else's by then.
        let applied = case.tree.ephemerals(session).filter(|path| !self.records.contains_key(*path));
        let mut paths: Vec<ByteString> = applied.cloned().collect();
        for siblings in paths.chunk_by(|one, next| parent_path(one) == parent_path(next)) {
            if let Some(parent) = siblings.first().and_then(|path| parent_path(path)) {
                self.forget_children(case, parent, siblings.len());
            }
        }
        for path in &proposed {
            if let (Some((parent_path, _)), Some(record)) = (parent_of(path), self.record(case.tree, path)) {
                self.remove(case, path, parent_path, record);
            }
        }
        if !proposed.is_empty() {
            paths.extend(proposed);
            paths.sort_unstable();
        }
        self.closing_sessions.insert(session, case.zxid);
        self.sessions.push_back((case.zxid, session));
        // Whoever applies it deletes everything that is the session's. The list is for members that come
        // later and find some of it gone; as much of it as a transaction can hold has to do.
        let mut room = case.rules.max_parts();
        let paths = paths.into_iter().take_while(|path| match room.checked_sub(4 + path.len()) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
        Txn::CloseSession { paths: Some(paths.collect()) }
    }

    /// How a path will look, whether it exists then or not. `None` when nobody ever spoke of it.
    fn record(&self, tree: &Tree, path: &str) -> Option<Record> {
        if let Some(record) = self.records.get(path) {
            return Some(record.clone());
        }
        tree.node(path).map(|node| Record {
            zxid: Zxid::ZERO,
            exists: self.closing_sessions.is_empty()
                || !self.closing_sessions.contains_key(&node.stat.ephemeral_owner),
            version: node.stat.version,
            cversion: node.stat.cversion,
            aversion: node.stat.aversion,
            children: node.children.len(),
            owner: node.stat.ephemeral_owner,
            acl: tree.acl_of(node),
            length: node.data.as_ref().map_or(0, Bytes::len),
        })
    }

    fn existing(&self, tree: &Tree, path: &str) -> Result<Record, ErrorCode> {
        self.record(tree, path).filter(|record| record.exists).ok_or(ErrorCode::NoNode)
    }

    fn change(&mut self, path: ByteString, record: Record, zxid: Zxid) {
        self.changes.push_back((zxid, path.clone()));
        let before = self.put(path.clone(), Some(Record { zxid, ..record }));
        if let Some(undo) = &mut self.undo {
            undo.push((path, before));
        }
    }

    /// The record of a path, or none any more. Gives the one before.
    fn put(&mut self, path: ByteString, record: Option<Record>) -> Option<Record> {
        let owner = record.as_ref().and_then(Record::session);
        let before = match record {
            Some(record) => self.records.insert(path.clone(), record),
            None => self.records.remove(&path),
        };
        let owned_before = before.as_ref().and_then(Record::session);
        if owner != owned_before {
            if let Some(session) = owned_before
                && let Some(paths) = self.ephemerals.get_mut(&session)
            {
                paths.remove(&path);
                if paths.is_empty() {
                    self.ephemerals.remove(&session);
                }
            }
            if let Some(session) = owner {
                self.ephemerals.entry(session).or_default().insert(path);
            }
        }
        before
    }
}

impl Record {
    /// The session that it goes with, if it is there and goes with one.
    fn session(&self) -> Option<SessionId> {
        match EphemeralType::of(self.owner) {
            EphemeralType::Normal(session) if self.exists => Some(session),
            _ => None,
        }
    }
}

/// An operation that changes one node.
enum Single {
    Op(MultiOp),
    SetAcl(SetAclRequest),
}

/// The operation of a request by itself. `None` for one that makes no transaction.
fn single(op: OpCode, body: &mut Reader) -> Option<Result<Single, DecodeError>> {
    Some(match op {
        OpCode::Create => CreateRequest::decode(body).map(|body| Single::Op(MultiOp::Create(body))),
        OpCode::Create2 => CreateRequest::decode(body).map(|body| Single::Op(MultiOp::Create2(body))),
        OpCode::CreateContainer => {
            CreateRequest::decode(body).map(|body| Single::Op(MultiOp::CreateContainer(body)))
        }
        OpCode::CreateTtl => CreateTtlRequest::decode(body).map(|body| Single::Op(MultiOp::CreateTtl(body))),
        OpCode::Delete => DeleteRequest::decode(body).map(|body| Single::Op(MultiOp::Delete(body))),
        OpCode::SetData => SetDataRequest::decode(body).map(|body| Single::Op(MultiOp::SetData(body))),
        OpCode::Check => CheckVersionRequest::decode(body).map(|body| Single::Op(MultiOp::Check(body))),
        OpCode::SetAcl => SetAclRequest::decode(body).map(Single::SetAcl),
        _ => return None,
    })
}

/// A create within a multi is what its flags say, whatever it is called: ZooKeeper reads it so.
fn as_in_a_multi(op: MultiOp) -> MultiOp {
    match op {
        MultiOp::Create(create) | MultiOp::Create2(create) | MultiOp::CreateContainer(create)
            if create.flags == CREATE_CONTAINER =>
        {
            MultiOp::CreateContainer(create)
        }
        MultiOp::Create2(create) | MultiOp::CreateContainer(create) => MultiOp::Create(create),
        other => other,
    }
}

fn without_ttl(request: CreateRequest) -> CreateTtlRequest {
    let CreateRequest { path, data, acl, flags } = request;
    CreateTtlRequest { path, data, acl, flags, ttl_ms: NO_TTL }
}

fn refusal(error: ErrorCode) -> Txn {
    Txn::Error { code: error.code() }
}

fn malformed(_: DecodeError) -> ErrorCode {
    ErrorCode::MarshallingError
}

/// The leader's own request to remove a node that is left alone. It speaks for no session.
pub(crate) fn reaping(path: &ByteString) -> ForwardedRequest {
    let payload = path.as_bytes().clone();
    let op = OpCode::DeleteContainer.code();
    ForwardedRequest { session: SessionId::NONE, cxid: 0, op, payload, auth: Vec::new() }
}

#[cfg(test)]
mod tests;
