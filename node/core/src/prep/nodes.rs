//! Requests that change one node, in the order in which ZooKeeper looks for what is wrong with them: clients
//! know which error wins.
//!
//! A createTTL without a time to live is refused. Apache ZooKeeper proposes it, and then every server that
//! applies it, or reads it from its log, ends.

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    CREATE_CONTAINER, CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT,
    CREATE_PERSISTENT_SEQUENTIAL, CREATE_TTL, CREATE_TTL_SEQUENTIAL, CheckVersionRequest, CreateTtlRequest,
    DeleteRequest, ErrorCode, OpCode, PERM_ADMIN, PERM_CREATE, PERM_DELETE, PERM_READ, PERM_WRITE,
    SetAclRequest, SetDataRequest, validate_path,
};
use node_wire::ephemeral::EphemeralType;
use node_wire::ids::SessionId;
use node_wire::txn::Txn;

use super::{Case, NO_TTL, Outstanding, Record};
use crate::access::fix_up;
use crate::tree::{is_built_in, parent_of};
use crate::zab::Protocol;

/// What a create's flags say.
#[derive(Clone, Copy)]
struct Mode {
    ephemeral: bool,
    sequential: bool,
    ttl: bool,
}

impl Mode {
    fn from_flags(flags: i32) -> Result<Mode, ErrorCode> {
        let mode = |ephemeral, sequential, ttl| Ok(Mode { ephemeral, sequential, ttl });
        match flags {
            CREATE_PERSISTENT | CREATE_CONTAINER => mode(false, false, false),
            CREATE_EPHEMERAL => mode(true, false, false),
            CREATE_PERSISTENT_SEQUENTIAL => mode(false, true, false),
            CREATE_EPHEMERAL_SEQUENTIAL => mode(true, true, false),
            CREATE_TTL => mode(false, false, true),
            CREATE_TTL_SEQUENTIAL => mode(false, true, true),
            _ => Err(ErrorCode::BadArguments),
        }
    }
}

impl Outstanding {
    /// The node below which one is made.
    fn parent<P: Protocol>(&self, case: &Case<'_, P>, path: &str) -> Result<Record, ErrorCode> {
        if !case.zab.judged_by_proposals() {
            return self.record(case.tree, path).ok_or(ErrorCode::NoNode);
        }
        self.existing(case.tree, path)
    }

    /// All kinds of create; `op` says which, and what the transaction is.
    pub(super) fn create<P: Protocol>(
        &mut self,
        case: Case<'_, P>,
        op: OpCode,
        request: CreateTtlRequest,
    ) -> Result<Txn, ErrorCode> {
        let CreateTtlRequest { path, data, acl, flags, ttl_ms } = request;
        let mode = Mode::from_flags(flags)?;
        if mode.ephemeral && case.local && !self.session_lives(case.tree, case.request.session) {
            // A session that nobody else knows owns nothing.
            return Err(ErrorCode::SessionExpired);
        }
        let owner = owner(case, op, mode, ttl_ms)?;
        // A sequential name may end in a slash: its number is the name.
        let slash = path.rfind('/').filter(|_| !path.contains('\0')).ok_or(ErrorCode::BadArguments)?;
        let parent_path = path.slice_ref(&path[..slash.max(1)]);
        let acl = fix_up(acl, case.who(), case.rules.max_list(), &case.rules.providers)?;
        let mut parent = self.parent(&case, &parent_path)?;
        case.demand(&parent, PERM_CREATE)?;
        let path = if mode.sequential {
            ByteString::from(format!("{path}{:010}", case.zab.sequence(parent.cversion, parent.children)))
        } else {
            path
        };
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        if path.len() == 1 || self.existing(case.tree, &path).is_ok() {
            return Err(ErrorCode::NodeExists);
        }
        if let EphemeralType::Normal(_) = EphemeralType::of(parent.owner) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let length = data.as_ref().map_or(0, Bytes::len);
        case.demand_room(&path, signed(length), 1)?;
        parent.cversion = parent.cversion.wrapping_add(1);
        parent.children += 1;
        let parent_cversion = parent.cversion;
        self.change(parent_path, parent, case.zxid);
        let created = Record {
            zxid: case.zxid,
            exists: true,
            version: 0,
            cversion: 0,
            aversion: 0,
            children: 0,
            owner,
            acl: std::sync::Arc::new(acl.clone()),
            length,
        };
        self.change(path.clone(), created, case.zxid);
        Ok(match op {
            OpCode::CreateContainer => Txn::CreateContainer { path, data, acl, parent_cversion },
            OpCode::CreateTtl => Txn::CreateTtl { path, data, acl, parent_cversion, ttl_ms },
            _ => Txn::Create { path, data, acl, ephemeral: mode.ephemeral, parent_cversion },
        })
    }

    pub(super) fn delete<P: Protocol>(
        &mut self,
        case: Case<'_, P>,
        request: DeleteRequest,
    ) -> Result<Txn, ErrorCode> {
        let DeleteRequest { path, version } = request;
        if is_built_in(&path) {
            return Err(ErrorCode::BadArguments);
        }
        // As in ZooKeeper: of a malformed path there is no node.
        if !path.contains('/') || path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        let (parent_path, _) = parent_of(&path).ok_or(ErrorCode::NoNode)?;
        let parent = self.existing(case.tree, parent_path)?;
        // Before the node is looked for: whoever may not delete here is not told either whether it is there.
        case.demand(&parent, PERM_DELETE)?;
        let record = self.existing(case.tree, &path)?;
        next_version(version, record.version)?;
        if record.children > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        self.remove(case, &path, parent_path, record);
        Ok(Txn::Delete { path })
    }

    /// The leader's own: of a container whose children are gone, or of a node whose time is over. Somebody
    /// may have been quicker, with a child or with another node of this name.
    pub(super) fn delete_container<P: Protocol>(
        &mut self,
        case: Case<'_, P>,
        path: &Bytes,
    ) -> Result<Txn, ErrorCode> {
        let path = ByteString::try_from(path.clone()).map_err(|_| ErrorCode::BadArguments)?;
        let (parent_path, _) = parent_of(&path).ok_or(ErrorCode::BadArguments)?;
        let record = self.existing(case.tree, &path)?;
        if record.children > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        if self.records.contains_key(&path) {
            // Written since the leader looked: what is under way keeps it alive.
            return Err(ErrorCode::BadVersion);
        }
        match EphemeralType::of(record.owner) {
            EphemeralType::Container | EphemeralType::Ttl { .. } => {}
            EphemeralType::Void | EphemeralType::Normal(_) => return Err(ErrorCode::BadVersion),
        }
        self.remove(case, &path, parent_path, record);
        Ok(Txn::Delete { path })
    }

    pub(super) fn remove<P: Protocol>(
        &mut self,
        case: Case<'_, P>,
        path: &ByteString,
        parent_path: &str,
        mut record: Record,
    ) {
        if let Some(mut parent) = self.record(case.tree, parent_path) {
            parent.children = parent.children.saturating_sub(1);
            self.change(path.slice_ref(parent_path), parent, case.zxid);
        }
        record.exists = false;
        self.change(path.clone(), record, case.zxid);
    }

    /// So many children of a node go with their session.
    pub(super) fn forget_children<P: Protocol>(&mut self, case: Case<'_, P>, path: &str, count: usize) {
        if let Some(mut parent) = self.record(case.tree, path) {
            parent.children = parent.children.saturating_sub(count);
            self.change(ByteString::from(path), parent, case.zxid);
        }
    }

    pub(super) fn set_data<P: Protocol>(
        &mut self,
        case: Case<'_, P>,
        request: SetDataRequest,
    ) -> Result<Txn, ErrorCode> {
        let SetDataRequest { path, data, version } = request;
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        let mut record = self.existing(case.tree, &path)?;
        case.demand(&record, PERM_WRITE)?;
        let length = data.as_ref().map_or(0, Bytes::len);
        let measured = case.zab.measured(length, record.length);
        case.demand_room(&path, signed(measured) - signed(record.length), 0)?;
        record.version = next_version(version, record.version)?;
        record.length = length;
        let version = record.version;
        self.change(path.clone(), record, case.zxid);
        Ok(Txn::SetData { path, data, version })
    }

    pub(super) fn set_acl<P: Protocol>(
        &mut self,
        case: Case<'_, P>,
        request: SetAclRequest,
    ) -> Result<Txn, ErrorCode> {
        let SetAclRequest { path, acl, version } = request;
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        let acl = fix_up(acl, case.who(), case.rules.max_list(), &case.rules.providers)?;
        let mut record = self.existing(case.tree, &path)?;
        case.demand(&record, PERM_ADMIN)?;
        record.aversion = next_version(version, record.aversion)?;
        record.acl = std::sync::Arc::new(acl.clone());
        let version = record.aversion;
        self.change(path.clone(), record, case.zxid);
        Ok(Txn::SetAcl { path, acl, version })
    }

    /// Changes nothing, and stands in the log with the version that a change would have made.
    pub(super) fn check<P: Protocol>(
        &mut self,
        case: Case<'_, P>,
        request: CheckVersionRequest,
    ) -> Result<Txn, ErrorCode> {
        let CheckVersionRequest { path, version } = request;
        validate_path(&path).map_err(|_| ErrorCode::BadArguments)?;
        let record = self.existing(case.tree, &path)?;
        case.demand(&record, PERM_READ)?;
        let version = next_version(version, record.version)?;
        Ok(Txn::Check { path, version })
    }
}

/// The owner of a node to be. The operation decides what the transaction will be, the flags what it must not
/// be.
fn owner<P: Protocol>(
    case: Case<'_, P>,
    op: OpCode,
    mode: Mode,
    ttl_ms: i64,
) -> Result<SessionId, ErrorCode> {
    if mode.ttl && !case.rules.extended_types {
        return Err(ErrorCode::Unimplemented);
    }
    if mode.ttl != (ttl_ms > NO_TTL) || mode.ttl != (op == OpCode::CreateTtl) {
        return Err(ErrorCode::BadArguments);
    }
    let kind = match op {
        OpCode::CreateContainer => EphemeralType::Container,
        _ if mode.ttl => EphemeralType::Ttl { ttl_ms },
        _ if mode.ephemeral => EphemeralType::Normal(case.request.session),
        _ => EphemeralType::Void,
    };
    kind.owner().ok_or(ErrorCode::BadArguments)
}

/// The version after a change that was asked for at a version, or at any: -1.
pub(super) fn next_version(asked: i32, is: i32) -> Result<i32, ErrorCode> {
    if asked == -1 || asked == is { Ok(is.wrapping_add(1)) } else { Err(ErrorCode::BadVersion) }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
