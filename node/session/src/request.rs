//! What a client may ask, what it is answered, and what a failure proves.

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, AddWatchMode, AddWatchRequest, AllChildrenNumberResponse, CREATE_CONTAINER, CREATE_EPHEMERAL,
    CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT, CREATE_PERSISTENT_SEQUENTIAL, CREATE_TTL,
    CREATE_TTL_SEQUENTIAL, CheckVersionRequest, Children2Response, Create2Response, CreateRequest,
    CreateTtlRequest, DeleteRequest, EphemeralsResponse, ErrorCode, ExistsResponse, GetAclResponse,
    GetDataResponse, MultiOp, MultiRequest, MultiResponse, MultiResult, OpCode, PathOnly, PathWatch,
    ReconfigRequest, SetAclRequest, SetAclResponse, SetDataRequest, SetDataResponse, Stat, SyncRequest,
    SyncResponse, WatchesRequest, WhoAmIResponse,
};
use node_wire::ids::Zxid;
use node_wire::jute::{DecodeError, Reader, Writer};

use crate::watches::WatchKind;

/// What kind of znode a create makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CreateMode {
    /// One that stays until it is deleted.
    Persistent,
    /// As persistent, with a number at the end of its name that grows within its parent.
    PersistentSequential,
    /// One that ends with the session.
    Ephemeral,
    /// As ephemeral, with a number at the end of its name that grows within its parent.
    EphemeralSequential,
    /// One that the ensemble deletes some time after its last child went.
    Container,
    /// One that the ensemble deletes when it had no child and no change for so many milliseconds.
    Ttl(i64),
    /// As `Ttl`, with a number at the end of its name that grows within its parent.
    TtlSequential(i64),
}

impl CreateMode {
    /// The flags of a create request.
    #[must_use]
    pub fn flags(self) -> i32 {
        match self {
            Self::Persistent => CREATE_PERSISTENT,
            Self::PersistentSequential => CREATE_PERSISTENT_SEQUENTIAL,
            Self::Ephemeral => CREATE_EPHEMERAL,
            Self::EphemeralSequential => CREATE_EPHEMERAL_SEQUENTIAL,
            Self::Container => CREATE_CONTAINER,
            Self::Ttl(_) => CREATE_TTL,
            Self::TtlSequential(_) => CREATE_TTL_SEQUENTIAL,
        }
    }
}

/// A request, whole. Paths are absolute. A version of -1 stands for any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Makes a znode. Answered by [`Response::Created`].
    Create {
        /// Where; a sequential znode's number is appended.
        path: ByteString,
        /// Its data.
        data: Bytes,
        /// Who may do what.
        acl: Vec<Acl>,
        /// What kind it is.
        mode: CreateMode,
    },
    /// Deletes a znode at this version. Answered by [`Response::Done`].
    Delete {
        /// Which.
        path: ByteString,
        /// At which version.
        version: i32,
    },
    /// Asks whether a znode is there. Answered by [`Response::Exists`]. Its watch stands also where there
    /// is none.
    Exists {
        /// Which.
        path: ByteString,
        /// Whether to be told of its next change.
        watch: bool,
    },
    /// Reads a znode. Answered by [`Response::Data`].
    GetData {
        /// Which.
        path: ByteString,
        /// Whether to be told of its next change.
        watch: bool,
    },
    /// Lists a znode's children. Answered by [`Response::Children`].
    GetChildren {
        /// Of which.
        path: ByteString,
        /// Whether to be told when a child comes or goes, or when the znode itself goes. A change of the
        /// znode's data is not told.
        watch: bool,
    },
    /// Replaces a znode's data at this version. Answered by [`Response::Stat`].
    SetData {
        /// Which.
        path: ByteString,
        /// The new data.
        data: Bytes,
        /// At which version.
        version: i32,
    },
    /// Reads who may do what. Answered by [`Response::Acl`].
    GetAcl {
        /// Of which.
        path: ByteString,
    },
    /// Replaces who may do what, at this version of the list. Answered by [`Response::Stat`].
    SetAcl {
        /// Of which.
        path: ByteString,
        /// The new list.
        acl: Vec<Acl>,
        /// At which version of the list.
        version: i32,
    },
    /// Brings the server up to what its leader has. Answered by [`Response::Done`].
    Sync {
        /// Echoed; a sync is of everything.
        path: ByteString,
    },
    /// Several changes, all or none. Answered by [`Response::Multi`]; [`Failure::Refused`] tells which of
    /// them was refused.
    Multi(Vec<MultiOp>),
    /// Several reads of one state. Answered by [`Response::Multi`], in which each may have failed alone.
    MultiRead(Vec<MultiOp>),
    /// A persistent watch. Answered by [`Response::Done`].
    AddWatch {
        /// Of which znode.
        path: ByteString,
        /// Of it alone, or of all below as well.
        mode: AddWatchMode,
    },
    /// Takes the session's watches of a znode back. Answered by [`Response::Done`].
    RemoveWatches {
        /// Of which znode.
        path: ByteString,
        /// 1 children, 2 data, 3 any.
        kind: i32,
    },
    /// Changes the membership of the ensemble. Answered by [`Response::Data`].
    Reconfig(ReconfigRequest),
    /// The paths of the session's ephemeral znodes below a prefix. Answered by [`Response::Paths`].
    Ephemerals {
        /// The prefix.
        path: ByteString,
    },
    /// How many znodes are below one. Answered by [`Response::Count`].
    CountDescendants {
        /// Below which.
        path: ByteString,
    },
    /// As whom the server takes this client. Answered by [`Response::Identities`].
    WhoAmI,
    /// Ends the session. Answered by [`Response::Done`].
    CloseSession,
}

/// What a request was answered with when it was not refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Response {
    /// A new znode.
    Created {
        /// With its number, when it is sequential.
        path: ByteString,
        /// Its Stat. `czxid` is its place in the order of all changes.
        stat: Stat,
    },
    /// Nothing more to say.
    Done,
    /// The Stat, if the znode is there.
    Exists(Option<Stat>),
    /// A znode.
    Data {
        /// Its data.
        data: Bytes,
        /// Its Stat.
        stat: Stat,
    },
    /// The children of a znode.
    Children {
        /// Their names, in no order.
        names: Vec<ByteString>,
        /// The znode's Stat.
        stat: Stat,
    },
    /// The Stat of a changed znode.
    Stat(Stat),
    /// Who may do what.
    Acl {
        /// The list.
        acl: Vec<Acl>,
        /// The znode's Stat.
        stat: Stat,
    },
    /// One result for each operation of a multi.
    Multi(Vec<MultiResult>),
    /// Paths.
    Paths(Vec<ByteString>),
    /// A number.
    Count(i32),
    /// As whom the server takes this client.
    Identities(WhoAmIResponse),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// The place of a change in the order of all, or the state that a read was answered from.
    pub zxid: Zxid,
    /// What was asked for.
    pub response: Response,
}

/// Why there is no answer, and what that proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The server refused. Definite: it had no effect.
    Refused {
        /// Why.
        code: ErrorCode,
        /// Which operation of a multi it was, counted from 0.
        at: Option<usize>,
    },
    /// It was never sent. Definite: it had no effect and will have none.
    NotSent,
    /// In doubt: it may have had its effect, may not have, and may have it later.
    Unknown,
}

impl Failure {
    /// A refusal of a request that is one operation.
    #[must_use]
    pub const fn refused(code: ErrorCode) -> Self {
        Self::Refused { code, at: None }
    }

    /// The server's reason, when it refused.
    #[must_use]
    pub const fn refusal(self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::NotSent | Self::Unknown => None,
        }
    }

    /// True when the request certainly had no effect and will have none.
    #[must_use]
    pub const fn is_definite(self) -> bool {
        !matches!(self, Self::Unknown)
    }
}

impl Request {
    /// A check that any znode can pass, as a multi: a transaction without an effect. The leader of our
    /// members takes it for a sign of life of the session, which a ping at a follower is not.
    #[must_use]
    pub fn heartbeat() -> Self {
        Self::Multi(vec![check("/", -1)])
    }

    /// The operation code.
    #[must_use]
    pub fn op(&self) -> OpCode {
        match self {
            Self::Create { mode: CreateMode::Container, .. } => OpCode::CreateContainer,
            Self::Create { mode: CreateMode::Ttl(_) | CreateMode::TtlSequential(_), .. } => OpCode::CreateTtl,
            Self::Create { .. } => OpCode::Create2,
            Self::Delete { .. } => OpCode::Delete,
            Self::Exists { .. } => OpCode::Exists,
            Self::GetData { .. } => OpCode::GetData,
            Self::GetChildren { .. } => OpCode::GetChildren2,
            Self::SetData { .. } => OpCode::SetData,
            Self::GetAcl { .. } => OpCode::GetAcl,
            Self::SetAcl { .. } => OpCode::SetAcl,
            Self::Sync { .. } => OpCode::Sync,
            Self::Multi(_) => OpCode::Multi,
            Self::MultiRead(_) => OpCode::MultiRead,
            Self::AddWatch { .. } => OpCode::AddWatch,
            Self::RemoveWatches { .. } => OpCode::RemoveWatches,
            Self::Reconfig(_) => OpCode::Reconfig,
            Self::Ephemerals { .. } => OpCode::GetEphemerals,
            Self::CountDescendants { .. } => OpCode::GetAllChildrenNumber,
            Self::WhoAmI => OpCode::WhoAmI,
            Self::CloseSession => OpCode::CloseSession,
        }
    }

    /// True for a request whose answer shows that the leader saw it as one of the session's transactions.
    /// The time-out of the session then began anew.
    #[must_use]
    pub fn is_transaction(&self) -> bool {
        self.op().class().makes_transaction() && !matches!(self, Self::CloseSession)
    }

    /// The one-time watch that the request leaves.
    #[must_use]
    pub fn watch(&self) -> Option<(WatchKind, &ByteString)> {
        match self {
            Self::Exists { path, watch: true } => Some((WatchKind::Exists, path)),
            Self::GetData { path, watch: true } => Some((WatchKind::Data, path)),
            Self::GetChildren { path, watch: true } => Some((WatchKind::Children, path)),
            Self::AddWatch { path, mode: AddWatchMode::Persistent } => Some((WatchKind::Persistent, path)),
            Self::AddWatch { path, mode: AddWatchMode::PersistentRecursive } => {
                Some((WatchKind::Recursive, path))
            }
            _ => None,
        }
    }

    /// Appends the body.
    pub fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Create { path, data, acl, mode } => encode_create(w, path, data, acl, *mode),
            Self::Delete { path, version } => {
                DeleteRequest { path: path.clone(), version: *version }.encode(w);
            }
            Self::Exists { path, watch }
            | Self::GetData { path, watch }
            | Self::GetChildren { path, watch } => {
                PathWatch { path: path.clone(), watch: *watch }.encode(w);
            }
            Self::SetData { path, data, version } => {
                let data = Some(data.clone());
                SetDataRequest { path: path.clone(), data, version: *version }.encode(w);
            }
            Self::GetAcl { path } | Self::Ephemerals { path } | Self::CountDescendants { path } => {
                PathOnly { path: path.clone() }.encode(w);
            }
            Self::SetAcl { path, acl, version } => {
                SetAclRequest { path: path.clone(), acl: acl.clone(), version: *version }.encode(w);
            }
            Self::Sync { path } => SyncRequest { path: path.clone() }.encode(w),
            Self::Multi(ops) | Self::MultiRead(ops) => MultiRequest { ops: ops.clone() }.encode(w),
            Self::AddWatch { path, mode } => {
                AddWatchRequest { path: path.clone(), mode: mode.code() }.encode(w);
            }
            Self::RemoveWatches { path, kind } => {
                WatchesRequest { path: path.clone(), kind: *kind }.encode(w);
            }
            Self::Reconfig(body) => body.encode(w),
            Self::WhoAmI | Self::CloseSession => {}
        }
    }

    /// Reads the body of the answer whose header carries no error.
    ///
    /// # Errors
    /// The outer one when the bytes are not such an answer. The inner one when a multi was refused.
    pub fn decode(&self, r: &mut Reader) -> Result<Result<Response, Failure>, DecodeError> {
        Ok(Ok(match self {
            Self::Create { .. } => {
                let Create2Response { path, stat } = Create2Response::decode(r)?;
                Response::Created { path, stat }
            }
            Self::Exists { .. } => Response::Exists(Some(ExistsResponse::decode(r)?.stat)),
            Self::GetData { .. } | Self::Reconfig(_) => {
                let GetDataResponse { data, stat } = GetDataResponse::decode(r)?;
                Response::Data { data: data.unwrap_or_default(), stat }
            }
            Self::GetChildren { .. } => {
                let Children2Response { children, stat } = Children2Response::decode(r)?;
                Response::Children { names: children, stat }
            }
            Self::SetData { .. } => Response::Stat(SetDataResponse::decode(r)?.stat),
            Self::SetAcl { .. } => Response::Stat(SetAclResponse::decode(r)?.stat),
            Self::GetAcl { .. } => {
                let GetAclResponse { acl, stat } = GetAclResponse::decode(r)?;
                Response::Acl { acl, stat }
            }
            Self::Sync { .. } => {
                SyncResponse::decode(r)?;
                Response::Done
            }
            Self::Multi(ops) => return Ok(multi_outcome(one_for_each(ops, r)?)),
            Self::MultiRead(ops) => Response::Multi(one_for_each(ops, r)?),
            Self::Ephemerals { .. } => Response::Paths(EphemeralsResponse::decode(r)?.ephemerals),
            Self::CountDescendants { .. } => Response::Count(AllChildrenNumberResponse::decode(r)?.total),
            Self::WhoAmI => Response::Identities(WhoAmIResponse::decode(r)?),
            Self::Delete { .. } | Self::AddWatch { .. } | Self::RemoveWatches { .. } | Self::CloseSession => {
                Response::Done
            }
        }))
    }

    /// The answer to a request that the server refused with this code. That a znode is not there is an
    /// answer to [`Request::Exists`] and no refusal.
    pub fn refused(&self, code: ErrorCode) -> Result<Response, Failure> {
        match (self, code) {
            (Self::Exists { .. }, ErrorCode::NoNode) => Ok(Response::Exists(None)),
            _ => Err(Failure::refused(code)),
        }
    }
}

fn encode_create(w: &mut Writer<'_>, path: &ByteString, data: &Bytes, acl: &[Acl], mode: CreateMode) {
    let (path, data, acl, flags) = (path.clone(), Some(data.clone()), acl.to_vec(), mode.flags());
    match mode {
        CreateMode::Ttl(ttl_ms) | CreateMode::TtlSequential(ttl_ms) => {
            CreateTtlRequest { path, data, acl, flags, ttl_ms }.encode(w);
        }
        _ => CreateRequest { path, data, acl, flags }.encode(w),
    }
}

/// The results of a multi, of which there is one for each operation.
fn one_for_each(ops: &[MultiOp], r: &mut Reader) -> Result<Vec<MultiResult>, DecodeError> {
    let results = MultiResponse::decode(r)?.results;
    if results.len() == ops.len() {
        return Ok(results);
    }
    let value = i64::try_from(results.len()).unwrap_or(i64::MAX);
    Err(DecodeError::OutOfRange { what: "the number of results of a multi", value })
}

/// A multi that was refused carries an error for every operation; 0 for those that would have passed, and
/// "runtime inconsistency" for those behind the one that did not.
fn multi_outcome(results: Vec<MultiResult>) -> Result<Response, Failure> {
    let first = results.iter().enumerate().find_map(|(at, result)| match result {
        MultiResult::Error { err } if *err != 0 => Some((at, *err)),
        _ => None,
    });
    match first {
        None => Ok(Response::Multi(results)),
        Some((at, err)) => match ErrorCode::from_code(err) {
            Some(code) => Err(Failure::Refused { code, at: Some(at) }),
            None => Err(Failure::Unknown),
        },
    }
}

impl Request {
    /// The same request, in which each znode that would be open to anyone is made with this list.
    #[must_use]
    pub fn with_acl(mut self, list: &[Acl]) -> Self {
        let close = |acl: &mut Vec<Acl>| {
            if *acl == [Acl::world_anyone()] {
                *acl = list.to_vec();
            }
        };
        match &mut self {
            Self::Create { acl, .. } => close(acl),
            Self::Multi(ops) => {
                for op in ops {
                    match op {
                        MultiOp::Create(body) | MultiOp::Create2(body) | MultiOp::CreateContainer(body) => {
                            close(&mut body.acl);
                        }
                        MultiOp::CreateTtl(body) => close(&mut body.acl),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        self
    }
}

/// The operation of a multi that passes only while a znode is there at this version.
#[must_use]
pub fn check(path: impl Into<ByteString>, version: i32) -> MultiOp {
    MultiOp::Check(CheckVersionRequest { path: path.into(), version })
}

/// The operation of a multi that makes a znode which anyone may use. Its result tells its Stat.
#[must_use]
pub fn create(path: impl Into<ByteString>, data: impl Into<Bytes>, mode: CreateMode) -> MultiOp {
    let (path, data, acl) = (path.into(), Some(data.into()), vec![Acl::world_anyone()]);
    match mode {
        CreateMode::Ttl(ttl_ms) | CreateMode::TtlSequential(ttl_ms) => {
            MultiOp::CreateTtl(CreateTtlRequest { path, data, acl, flags: mode.flags(), ttl_ms })
        }
        CreateMode::Container => {
            MultiOp::CreateContainer(CreateRequest { path, data, acl, flags: mode.flags() })
        }
        _ => MultiOp::Create2(CreateRequest { path, data, acl, flags: mode.flags() }),
    }
}

/// The operation of a multi that deletes a znode at this version.
#[must_use]
pub fn delete(path: impl Into<ByteString>, version: i32) -> MultiOp {
    MultiOp::Delete(DeleteRequest { path: path.into(), version })
}

/// The operation of a multi that replaces a znode's data at this version.
#[must_use]
pub fn set_data(path: impl Into<ByteString>, data: impl Into<Bytes>, version: i32) -> MultiOp {
    MultiOp::SetData(SetDataRequest { path: path.into(), data: Some(data.into()), version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_closes_what_would_be_open_and_nothing_else() {
        let of = |scheme: &'static str| vec![Acl { perms: 1, scheme: scheme.into(), id: "".into() }];
        let modes = [CreateMode::Persistent, CreateMode::Container, CreateMode::Ttl(5)];
        for mode in modes {
            for (acl, expected) in [(vec![Acl::world_anyone()], of("auth")), (of("ip"), of("ip"))] {
                let make = |acl| Request::Create { path: "/a".into(), data: Bytes::new(), acl, mode };
                assert_eq!(make(acl).with_acl(&of("auth")), make(expected));
            }
            let many = Request::Multi(vec![check("/a", 1), create("/a", "", mode)]).with_acl(&of("auth"));
            let Request::Multi(ops) = &many else { unreachable!("it is one") };
            match &ops[1] {
                MultiOp::CreateTtl(body) => assert_eq!(body.acl, of("auth")),
                MultiOp::Create2(body) | MultiOp::CreateContainer(body) => assert_eq!(body.acl, of("auth")),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_multi_is_answered_with_one_result_for_each_operation() {
        let mut bytes = bytes::BytesMut::new();
        let results = vec![MultiResult::Check, MultiResult::Check];
        MultiResponse { results }.encode(&mut Writer::new(&mut bytes));
        let bytes = bytes.freeze();
        for (asked, taken) in [(1, false), (2, true), (3, false)] {
            for request in
                [Request::Multi(vec![check("/", -1); asked]), Request::MultiRead(vec![check("/", -1); asked])]
            {
                let answer = request.decode(&mut Reader::new(bytes.clone()));
                assert_eq!(answer.is_ok(), taken, "{answer:?}");
            }
        }
    }
}
