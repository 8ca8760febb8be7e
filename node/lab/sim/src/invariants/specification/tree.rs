//! The specification of a tree: what each request may do to it, in which order what is wrong with a request
//! is looked for, and what is shown of it.
//!
//! Written from ZooKeeper's documentation and from the order of checks in Apache ZooKeeper 3.8
//! (`PrepRequestProcessor`, `FinalRequestProcessor`), not from the member that is judged by it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, CREATE_CONTAINER, CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT,
    CREATE_PERSISTENT_SEQUENTIAL, CheckVersionRequest, CreateRequest, DeleteRequest, ErrorCode, Id, MultiOp,
    PERM_ADMIN, PERM_CREATE, PERM_DELETE, PERM_READ, PERM_WRITE, SetAclRequest, SetDataRequest, Stat,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::txn::{Entry, Txn};

use super::access::{permits, shown, stored};
use super::{Look, Told, Update};
use crate::invariants::parts_of;

/// Nodes that every ensemble has, and that nobody deletes.
const BUILT_IN: [&str; 4] = ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"];

/// Any version will do.
const ANY: i32 = -1;

/// What makes a node go without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Session(SessionId),
    /// It goes when its last child has gone.
    Container,
}

#[derive(Clone, Debug)]
struct Node {
    data: Option<Bytes>,
    list: Vec<Acl>,
    owner: Owner,
    children: BTreeSet<ByteString>,
    czxid: Zxid,
    mzxid: Zxid,
    pzxid: Zxid,
    ctime_ms: i64,
    mtime_ms: i64,
    version: i32,
    /// Creations of children so far.
    creations: i32,
    aversion: i32,
}

impl Node {
    fn stat(&self) -> Stat {
        let number = |len: usize| i32::try_from(len).unwrap_or(i32::MAX);
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            ctime: self.ctime_ms,
            mtime: self.mtime_ms,
            version: self.version,
            // Creations and deletions: of each child that is not there any more, both.
            cversion: 2 * self.creations - number(self.children.len()),
            aversion: self.aversion,
            ephemeral_owner: match self.owner {
                Owner::Session(session) => session,
                Owner::Nobody | Owner::Container => SessionId::NONE,
            },
            data_length: self.data.as_ref().map_or(0, |data| number(data.len())),
            num_children: number(self.children.len()),
            pzxid: self.pzxid,
        }
    }
}

/// Who asks, and where in the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) who: &'a [Id],
    pub(super) session: SessionId,
    pub(super) zxid: Zxid,
    pub(super) time_ms: i64,
}

impl<'a> Case<'a> {
    pub(super) fn of(entry: &Entry, who: &'a [Id]) -> Self {
        let header = &entry.header;
        Self { who, session: header.session, zxid: header.zxid, time_ms: header.time_ms }
    }
}

/// The nodes of all probers at one place of the sequence. Of the root only the children count.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// No list is asked: members are configured so.
    pub(super) skips_lists: bool,
    nodes: BTreeMap<ByteString, Arc<Node>>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node {
            data: None,
            list: vec![Acl::world_anyone()],
            owner: Owner::Nobody,
            children: BTreeSet::new(),
            czxid: Zxid::ZERO,
            mzxid: Zxid::ZERO,
            pzxid: Zxid::ZERO,
            ctime_ms: 0,
            mtime_ms: 0,
            version: 0,
            creations: 0,
            aversion: 0,
        };
        Self { skips_lists: false, nodes: [(ByteString::from_static("/"), Arc::new(root))].into() }
    }
}

/// The path of the parent, with the root's as it is written.
fn parent_of(path: &str) -> Option<&str> {
    let slash = path.rfind('/').filter(|_| !path.contains('\0'))?;
    Some(if slash == 0 { "/" } else { &path[..slash] })
}

/// True for what can be a node's path. Probers use no other strange characters than these.
fn is_sound(path: &str) -> bool {
    let names = path.strip_prefix('/');
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    path == "/" || names.is_some_and(|names| names.split('/').all(is_name))
}

fn sound(path: &str) -> Result<(), ErrorCode> {
    if is_sound(path) { Ok(()) } else { Err(ErrorCode::BadArguments) }
}

fn next_version(asked: i32, is: i32) -> Result<i32, ErrorCode> {
    if asked == ANY || asked == is { Ok(is + 1) } else { Err(ErrorCode::BadVersion) }
}

impl Tree {
    fn node(&self, path: &str) -> Result<&Node, ErrorCode> {
        self.nodes.get(path).map(Arc::as_ref).ok_or(ErrorCode::NoNode)
    }

    fn allowed(&self, node: &Node, permissions: i32, who: &[Id]) -> Result<(), ErrorCode> {
        let allowed = self.skips_lists || permits(&node.list, permissions, who);
        if allowed { Ok(()) } else { Err(ErrorCode::NoAuth) }
    }

    /// The transaction that a request must become here, and what its client must be told.
    pub(super) fn outcome(&self, update: &Update, case: Case<'_>) -> (Txn, Told) {
        let refused = |error: ErrorCode| (Txn::Error { code: error.code() }, Told::Refused(error.code()));
        let outcome = match update {
            Update::One(op) => self.clone().perform(op, case),
            Update::SetAcl(request) => self.set_acl(request, case).and_then(|txn| {
                let told = self.clone().apply(&txn, case);
                Ok((txn, told.ok_or(ErrorCode::NoNode)?))
            }),
            Update::Multi(ops) => Ok(self.multi(ops, case)),
            // Which nodes it names is judged with the sessions.
            Update::Close => Ok((Txn::CloseSession { paths: None }, Told::Done)),
        };
        outcome.unwrap_or_else(refused)
    }

    /// One part of a multi, or a request by itself. It is done here when it is lawful.
    fn perform(&mut self, op: &MultiOp, case: Case<'_>) -> Result<(Txn, Told), ErrorCode> {
        let txn = match op {
            MultiOp::Create(request) | MultiOp::Create2(request) | MultiOp::CreateContainer(request) => {
                self.create(request, case)?
            }
            MultiOp::Delete(request) => self.delete(request, case)?,
            MultiOp::SetData(request) => self.set_data(request, case)?,
            MultiOp::Check(request) => self.check(request, case)?,
            MultiOp::CreateTtl(_) | MultiOp::GetData(_) | MultiOp::GetChildren(_) => {
                return Err(ErrorCode::BadArguments);
            }
        };
        let told = self.apply(&txn, case).ok_or(ErrorCode::NoNode)?;
        Ok(match (told, op) {
            (Told::Made(path, _), MultiOp::Create(_)) => (txn, Told::Path(path)),
            (told, _) => (txn, told),
        })
    }

    /// All parts or none. Each sees those before it.
    fn multi(&self, ops: &[MultiOp], case: Case<'_>) -> (Txn, Told) {
        let mut after = self.clone();
        let mut refused = None;
        let mut parts = Vec::new();
        let mut told = Vec::new();
        for op in ops {
            let (txn, answer) = match refused {
                None => after.perform(op, case).unwrap_or_else(|error| {
                    refused = Some(told.len());
                    (Txn::Error { code: error.code() }, Told::Refused(error.code()))
                }),
                Some(_) => {
                    let code = ErrorCode::RuntimeInconsistency.code();
                    (Txn::Error { code }, Told::Refused(code))
                }
            };
            parts.push(txn);
            told.push(answer);
        }
        if let Some(at) = refused {
            told[..at].fill(Told::Refused(ErrorCode::Ok.code()));
        }
        (whole(&parts), Told::Several(told))
    }

    fn create(&self, request: &CreateRequest, case: Case<'_>) -> Result<Txn, ErrorCode> {
        let CreateRequest { path, data, acl, flags } = request;
        let (ephemeral, sequential) = match *flags {
            CREATE_PERSISTENT | CREATE_CONTAINER => (false, false),
            CREATE_EPHEMERAL => (true, false),
            CREATE_PERSISTENT_SEQUENTIAL => (false, true),
            CREATE_EPHEMERAL_SEQUENTIAL => (true, true),
            _ => return Err(ErrorCode::BadArguments),
        };
        let above = parent_of(path).ok_or(ErrorCode::BadArguments)?;
        let acl = stored(acl, case.who)?;
        let parent = self.node(above)?;
        self.allowed(parent, PERM_CREATE, case.who)?;
        let path = if sequential {
            ByteString::from(format!("{path}{:010}", parent.creations))
        } else {
            path.clone()
        };
        sound(&path)?;
        if BUILT_IN.contains(&&*path) || self.nodes.contains_key(&path) {
            return Err(ErrorCode::NodeExists);
        }
        if matches!(parent.owner, Owner::Session(_)) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let (data, parent_cversion) = (data.clone(), parent.creations + 1);
        Ok(if *flags == CREATE_CONTAINER {
            Txn::CreateContainer { path, data, acl, parent_cversion }
        } else {
            Txn::Create { path, data, acl, ephemeral, parent_cversion }
        })
    }

    fn delete(&self, request: &DeleteRequest, case: Case<'_>) -> Result<Txn, ErrorCode> {
        let DeleteRequest { path, version } = request;
        let above = parent_of(path).ok_or(ErrorCode::BadArguments)?;
        if BUILT_IN.contains(&&**path) {
            return Err(ErrorCode::BadArguments);
        }
        // Who may not delete below a node is not told either what is there.
        self.allowed(self.node(above)?, PERM_DELETE, case.who)?;
        let node = self.node(path)?;
        next_version(*version, node.version)?;
        if !node.children.is_empty() {
            return Err(ErrorCode::NotEmpty);
        }
        Ok(Txn::Delete { path: path.clone() })
    }

    fn set_data(&self, request: &SetDataRequest, case: Case<'_>) -> Result<Txn, ErrorCode> {
        let SetDataRequest { path, data, version } = request;
        sound(path)?;
        let node = self.node(path)?;
        self.allowed(node, PERM_WRITE, case.who)?;
        let version = next_version(*version, node.version)?;
        Ok(Txn::SetData { path: path.clone(), data: data.clone(), version })
    }

    fn check(&self, request: &CheckVersionRequest, case: Case<'_>) -> Result<Txn, ErrorCode> {
        let CheckVersionRequest { path, version } = request;
        sound(path)?;
        let node = self.node(path)?;
        self.allowed(node, PERM_READ, case.who)?;
        let version = next_version(*version, node.version)?;
        Ok(Txn::Check { path: path.clone(), version })
    }

    fn set_acl(&self, request: &SetAclRequest, case: Case<'_>) -> Result<Txn, ErrorCode> {
        let SetAclRequest { path, acl, version } = request;
        sound(path)?;
        let acl = stored(acl, case.who)?;
        let node = self.node(path)?;
        self.allowed(node, PERM_ADMIN, case.who)?;
        let version = next_version(*version, node.aversion)?;
        Ok(Txn::SetAcl { path: path.clone(), acl, version })
    }

    /// What a transaction does to these nodes, whether it is lawful or not. Nothing when it touches none of
    /// them.
    pub(super) fn apply(&mut self, txn: &Txn, case: Case<'_>) -> Option<Told> {
        match txn {
            Txn::Create { path, data, acl, ephemeral, .. } => {
                let owner = if *ephemeral { Owner::Session(case.session) } else { Owner::Nobody };
                self.make(path, data.clone(), acl, owner, case)
            }
            Txn::CreateContainer { path, data, acl, .. } => {
                self.make(path, data.clone(), acl, Owner::Container, case)
            }
            Txn::Delete { path } => self.remove(path, case),
            Txn::SetData { path, data, version } => {
                let node = Arc::make_mut(self.nodes.get_mut(path)?);
                (node.data, node.version) = (data.clone(), *version);
                (node.mzxid, node.mtime_ms) = (case.zxid, case.time_ms);
                Some(Told::Stat(node.stat()))
            }
            Txn::SetAcl { path, acl, version } => {
                let node = Arc::make_mut(self.nodes.get_mut(path)?);
                (node.list, node.aversion) = (acl.clone(), *version);
                Some(Told::Stat(node.stat()))
            }
            Txn::Check { path, .. } => self.nodes.get(path).map(|_| Told::Done),
            Txn::Multi { txns } => self.apply_all(txns, case),
            Txn::CloseSession { .. } => self.close(case),
            Txn::CreateSession { .. } | Txn::CreateTtl { .. } | Txn::Error { .. } => None,
        }
    }

    fn apply_all(&mut self, txns: &[(i32, Bytes)], case: Case<'_>) -> Option<Told> {
        let told: Vec<Told> = parts_of(txns).iter().filter_map(|part| self.apply(part, case)).collect();
        (!told.is_empty()).then_some(Told::Several(told))
    }

    fn make(
        &mut self,
        path: &ByteString,
        data: Option<Bytes>,
        list: &[Acl],
        owner: Owner,
        case: Case<'_>,
    ) -> Option<Told> {
        let (above, zxid) = (parent_of(path)?, case.zxid);
        if above == "/" && !super::is_probed(path) {
            return None;
        }
        let parent = Arc::make_mut(self.nodes.get_mut(above)?);
        parent.children.insert(path.clone());
        parent.creations += 1;
        parent.pzxid = zxid;
        let node = Node {
            data,
            list: list.to_vec(),
            owner,
            children: BTreeSet::new(),
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: case.time_ms,
            mtime_ms: case.time_ms,
            version: 0,
            creations: 0,
            aversion: 0,
        };
        let told = Told::Made(path.clone(), node.stat());
        self.nodes.insert(path.clone(), Arc::new(node));
        Some(told)
    }

    fn remove(&mut self, path: &ByteString, case: Case<'_>) -> Option<Told> {
        self.nodes.remove(path)?;
        let parent = parent_of(path).and_then(|above| self.nodes.get_mut(above));
        if let Some(parent) = parent.map(Arc::make_mut) {
            parent.children.remove(path);
            parent.pzxid = case.zxid;
        }
        Some(Told::Done)
    }

    fn close(&mut self, case: Case<'_>) -> Option<Told> {
        let owned: Vec<ByteString> = self.owned(case.session).cloned().collect();
        for path in &owned {
            self.remove(path, case);
        }
        (!owned.is_empty()).then_some(Told::Done)
    }

    fn owned(&self, session: SessionId) -> impl Iterator<Item = &ByteString> {
        let all = self.nodes.iter();
        all.filter(move |(_, node)| node.owner == Owner::Session(session)).map(|(path, _)| path)
    }

    /// What a read must show here.
    pub(super) fn shown(&self, look: &Look, who: &[Id], session: SessionId) -> Told {
        self.look(look, who, session).unwrap_or_else(|error| Told::Refused(error.code()))
    }

    fn look(&self, look: &Look, who: &[Id], session: SessionId) -> Result<Told, ErrorCode> {
        let readable = |path: &str, permissions: i32| {
            let node = self.node(path)?;
            self.allowed(node, permissions, who).map(|()| node)
        };
        let name_of = |path: &ByteString| path.rsplit('/').next().unwrap_or_default().into();
        Ok(match look {
            Look::Data(path) => {
                let node = readable(path, PERM_READ)?;
                Told::Data(node.data.clone(), node.stat())
            }
            // Whether a node is there anybody may know.
            Look::Exists(path) => Told::Stat(self.node(path)?.stat()),
            Look::Children(path) => {
                let node = readable(path, PERM_READ)?;
                Told::Names(node.children.iter().map(name_of).collect(), node.stat())
            }
            Look::List(path) => {
                let node = readable(path, PERM_READ | PERM_ADMIN)?;
                let list = if self.skips_lists { node.list.clone() } else { shown(&node.list, who) };
                Told::List(list, node.stat())
            }
            Look::Count(path) => {
                readable(path, PERM_READ)?;
                Told::Count(self.below(path).count())
            }
            Look::Ephemerals(path) => {
                let prefix = &**path;
                let owned = self.owned(session).filter(|path| path.starts_with(prefix));
                Told::Paths(owned.cloned().collect())
            }
        })
    }

    fn below(&self, path: &str) -> impl Iterator<Item = &ByteString> {
        let is_below = move |other: &str| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        self.nodes.keys().filter(move |other| is_below(other))
    }

    /// Every node with its list.
    pub(super) fn lists(&self) -> impl Iterator<Item = (&ByteString, &[Acl])> {
        let probed = self.nodes.iter().filter(|(path, _)| path.len() > 1);
        probed.map(|(path, node)| (path, node.list.as_slice()))
    }
}

/// Transactions as one.
fn whole(parts: &[Txn]) -> Txn {
    let encoded = |txn: &Txn| {
        let mut buffer = bytes::BytesMut::new();
        txn.encode(&mut node_wire::jute::Writer::new(&mut buffer));
        (txn.kind(), buffer.freeze())
    };
    Txn::Multi { txns: parts.iter().map(encoded).collect() }
}
