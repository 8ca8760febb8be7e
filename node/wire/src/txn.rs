//! Transactions, as they are proposed and logged.
//!
//! A transaction is a [`TxnHeader`], a body whose form the header's kind decides ([`Txn`]), and the digest of
//! the tree after it ([`TxnDigest`]). The bytes are the same in a PROPOSAL, in an INFORM and in the log, so
//! an [`Entry`] carries them along: they are made once, by the leader, and never again.
//!
//! A transaction says what to do, not what was asked: a sequential name has its number, a version is the one
//! after the change, and what was refused has become an error transaction.

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;

use crate::client::{Acl, OpCode};
use crate::ids::{SessionId, Zxid};
use crate::jute::{DecodeError, Jute, Reader, Writer, record};

record! {
    /// The first 32 bytes of a transaction.
    #[derive(Copy)]
    pub struct TxnHeader {
        /// On whose behalf.
        pub session: SessionId,
        /// The client's xid for the request.
        pub cxid: i32,
        /// Where it stands in the history.
        pub zxid: Zxid,
        /// When the leader made it, in milliseconds since the Unix epoch.
        pub time_ms: i64,
        /// What its body is; the code of an operation.
        pub kind: i32,
    }
}

record! {
    /// The digest of the tree after a transaction.
    #[derive(Copy)]
    pub struct TxnDigest {
        /// Of the calculation: [`DIGEST_VERSION`](crate::digest::DIGEST_VERSION).
        pub version: i32,
        /// The sum over all nodes.
        pub digest: i64,
    }
}

/// The body of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Txn {
    /// A session begins.
    CreateSession {
        /// Its timeout.
        timeout_ms: i32,
    },
    /// A session ends.
    CloseSession {
        /// The ephemeral nodes that go with it; `None` in logs from before they were listed.
        paths: Option<Vec<ByteString>>,
    },
    /// A node is created.
    Create {
        /// Where.
        path: ByteString,
        /// With what.
        data: Option<Bytes>,
        /// For whom.
        acl: Vec<Acl>,
        /// Whether it goes with the session.
        ephemeral: bool,
        /// The parent's child version after it; -1 means one more than before.
        parent_cversion: i32,
    },
    /// A container is created.
    CreateContainer {
        /// Where.
        path: ByteString,
        /// With what.
        data: Option<Bytes>,
        /// For whom.
        acl: Vec<Acl>,
        /// The parent's child version after it; -1 means one more than before.
        parent_cversion: i32,
    },
    /// A node with a time to live is created.
    CreateTtl {
        /// Where.
        path: ByteString,
        /// With what.
        data: Option<Bytes>,
        /// For whom.
        acl: Vec<Acl>,
        /// The parent's child version after it; -1 means one more than before.
        parent_cversion: i32,
        /// How long the node lives without children and changes.
        ttl_ms: i64,
    },
    /// A node is deleted.
    Delete {
        /// Which.
        path: ByteString,
    },
    /// A node's data is replaced.
    SetData {
        /// Which.
        path: ByteString,
        /// The new data.
        data: Option<Bytes>,
        /// The version after it.
        version: i32,
    },
    /// A node's ACL is replaced.
    SetAcl {
        /// Which.
        path: ByteString,
        /// The new list.
        acl: Vec<Acl>,
        /// The version of the list after it.
        version: i32,
    },
    /// A check that held; only inside a multi.
    Check {
        /// Which node.
        path: ByteString,
        /// At which version.
        version: i32,
    },
    /// Several at once.
    Multi {
        /// The kind and the body of each.
        txns: Vec<(i32, Bytes)>,
    },
    /// A refusal that holds a place in the history.
    Error {
        /// One of [`ErrorCode`](crate::client::ErrorCode).
        code: i32,
    },
}

impl Txn {
    /// The code of its form. Where several codes share a form it is the oldest; the header keeps the real
    /// one.
    #[must_use]
    pub fn kind(&self) -> i32 {
        let op = match self {
            Txn::CreateSession { .. } => OpCode::CreateSession,
            Txn::CloseSession { .. } => OpCode::CloseSession,
            Txn::Create { .. } => OpCode::Create,
            Txn::CreateContainer { .. } => OpCode::CreateContainer,
            Txn::CreateTtl { .. } => OpCode::CreateTtl,
            Txn::Delete { .. } => OpCode::Delete,
            Txn::SetData { .. } => OpCode::SetData,
            Txn::SetAcl { .. } => OpCode::SetAcl,
            Txn::Check { .. } => OpCode::Check,
            Txn::Multi { .. } => OpCode::Multi,
            Txn::Error { .. } => OpCode::Error,
        };
        op.code()
    }

    /// How many bytes [`Txn::encode`] appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let string = |string: &ByteString| 4 + string.len();
        let buffer = |data: &Option<Bytes>| 4 + data.as_ref().map_or(0, Bytes::len);
        let list = |acl: &[Acl]| -> usize {
            4 + acl.iter().map(|entry| Acl::MIN_LEN + entry.scheme.len() + entry.id.len()).sum::<usize>()
        };
        match self {
            Txn::CreateSession { .. } | Txn::Error { .. } => 4,
            Txn::CloseSession { paths } => {
                paths.as_ref().map_or(0, |paths| 4 + paths.iter().map(string).sum::<usize>())
            }
            Txn::Create { path, data, acl, .. } => string(path) + buffer(data) + list(acl) + 1 + 4,
            Txn::CreateContainer { path, data, acl, .. } => string(path) + buffer(data) + list(acl) + 4,
            Txn::CreateTtl { path, data, acl, .. } => string(path) + buffer(data) + list(acl) + 4 + 8,
            Txn::Delete { path } => string(path),
            Txn::SetData { path, data, .. } => string(path) + buffer(data) + 4,
            Txn::SetAcl { path, acl, .. } => string(path) + list(acl) + 4,
            Txn::Check { path, .. } => string(path) + 4,
            Txn::Multi { txns } => 4 + txns.iter().map(|(_, body)| MIN_MULTI_TXN + body.len()).sum::<usize>(),
        }
    }

    /// Appends the body.
    pub fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Txn::CreateSession { timeout_ms } => w.int(*timeout_ms),
            Txn::CloseSession { paths } => {
                if let Some(paths) = paths {
                    w.write(paths);
                }
            }
            Txn::Create { path, data, acl, ephemeral, parent_cversion } => {
                encode_node(w, path, data, acl);
                w.bool(*ephemeral);
                w.int(*parent_cversion);
            }
            Txn::CreateContainer { path, data, acl, parent_cversion } => {
                encode_node(w, path, data, acl);
                w.int(*parent_cversion);
            }
            Txn::CreateTtl { path, data, acl, parent_cversion, ttl_ms } => {
                encode_node(w, path, data, acl);
                w.int(*parent_cversion);
                w.long(*ttl_ms);
            }
            Txn::Delete { path } => w.write(path),
            Txn::SetData { path, data, version } => {
                w.write(path);
                w.write(data);
                w.int(*version);
            }
            Txn::SetAcl { path, acl, version } => {
                w.write(path);
                w.write(acl);
                w.int(*version);
            }
            Txn::Check { path, version } => {
                w.write(path);
                w.int(*version);
            }
            Txn::Multi { txns } => {
                w.count(txns.len());
                for (kind, body) in txns {
                    w.int(*kind);
                    w.buffer(body);
                }
            }
            Txn::Error { code } => w.int(*code),
        }
    }

    /// Reads the body of a transaction of this kind, also one of a multi's.
    ///
    /// # Errors
    /// When the kind has no transactions, or the bytes are not such a body.
    pub fn decode(kind: i32, r: &mut Reader) -> Result<Txn, DecodeError> {
        let unknown = DecodeError::Unknown { what: "transaction", value: i64::from(kind) };
        Ok(match OpCode::from_code(kind).ok_or(unknown.clone())? {
            OpCode::CreateSession => Txn::CreateSession { timeout_ms: r.int()? },
            OpCode::CloseSession => Txn::CloseSession { paths: decode_paths(r) },
            OpCode::Create | OpCode::Create2 => Txn::Create {
                path: r.read()?,
                data: r.read()?,
                acl: r.read()?,
                ephemeral: r.bool()?,
                // The oldest logs end here.
                parent_cversion: if r.remaining() == 0 { -1 } else { r.int()? },
            },
            OpCode::CreateContainer => Txn::CreateContainer {
                path: r.read()?,
                data: r.read()?,
                acl: r.read()?,
                parent_cversion: r.int()?,
            },
            OpCode::CreateTtl => Txn::CreateTtl {
                path: r.read()?,
                data: r.read()?,
                acl: r.read()?,
                parent_cversion: r.int()?,
                ttl_ms: r.long()?,
            },
            OpCode::Delete | OpCode::DeleteContainer => Txn::Delete { path: r.read()? },
            OpCode::SetData | OpCode::Reconfig => {
                Txn::SetData { path: r.read()?, data: r.read()?, version: r.int()? }
            }
            OpCode::SetAcl => Txn::SetAcl { path: r.read()?, acl: r.read()?, version: r.int()? },
            OpCode::Check => Txn::Check { path: r.read()?, version: r.int()? },
            OpCode::Multi => Txn::Multi { txns: decode_multi(r)? },
            OpCode::Error => Txn::Error { code: r.int()? },
            OpCode::Exists
            | OpCode::GetData
            | OpCode::GetAcl
            | OpCode::GetChildren
            | OpCode::Sync
            | OpCode::Ping
            | OpCode::GetChildren2
            | OpCode::CheckWatches
            | OpCode::RemoveWatches
            | OpCode::MultiRead
            | OpCode::Auth
            | OpCode::SetWatches
            | OpCode::Sasl
            | OpCode::GetEphemerals
            | OpCode::GetAllChildrenNumber
            | OpCode::SetWatches2
            | OpCode::AddWatch
            | OpCode::WhoAmI => return Err(unknown),
        })
    }
}

fn encode_node(w: &mut Writer<'_>, path: &ByteString, data: &Option<Bytes>, acl: &Vec<Acl>) {
    w.write(path);
    w.write(data);
    w.write(acl);
}

/// Where there is no list of paths, a digest or nothing follows at once, and reading it as a list fails.
fn decode_paths(r: &mut Reader) -> Option<Vec<ByteString>> {
    let mut ahead = r.clone();
    let paths = Vec::<ByteString>::decode(&mut ahead).ok()?;
    *r = ahead;
    Some(paths)
}

/// A kind and the length of a body.
const MIN_MULTI_TXN: usize = 4 + 4;

fn decode_multi(r: &mut Reader) -> Result<Vec<(i32, Bytes)>, DecodeError> {
    let count = r.count(MIN_MULTI_TXN)?.unwrap_or(0);
    let mut txns = Vec::with_capacity(count);
    for _ in 0..count {
        txns.push((r.int()?, r.buffer()?.unwrap_or_default()));
    }
    Ok(txns)
}

/// A transaction with the bytes it has everywhere.
///
/// Cloning one copies no data. What was decoded keeps the buffer it came from alive, which is as small as a
/// packet or as large as a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The header.
    pub header: TxnHeader,
    /// The body.
    pub txn: Txn,
    /// The digest, where there is one.
    pub digest: Option<TxnDigest>,
    /// All of it, as it is sent and logged.
    pub bytes: Bytes,
}

impl Entry {
    /// Makes an entry, encoding it once.
    #[must_use]
    pub fn new(header: TxnHeader, txn: Txn, digest: Option<TxnDigest>) -> Entry {
        let room = TxnHeader::MIN_LEN + txn.encoded_len() + TxnDigest::MIN_LEN;
        let mut buffer = BytesMut::with_capacity(room);
        let mut w = Writer::new(&mut buffer);
        header.encode(&mut w);
        txn.encode(&mut w);
        if let Some(digest) = &digest {
            digest.encode(&mut w);
        }
        Entry { header, txn, digest, bytes: buffer.freeze() }
    }

    /// Takes the bytes of a proposal or of a log record apart, and keeps them as they are. Bytes behind what
    /// is known here are tolerated, as ZooKeeper tolerates them: later versions may say more.
    ///
    /// # Errors
    /// When the bytes are not a transaction.
    pub fn decode(bytes: Bytes) -> Result<Entry, DecodeError> {
        let mut r = Reader::new(bytes.clone());
        let header = TxnHeader::decode(&mut r)?;
        let txn = Txn::decode(header.kind, &mut r)?;
        let digest =
            if r.remaining() >= TxnDigest::MIN_LEN { Some(TxnDigest::decode(&mut r)?) } else { None };
        Ok(Entry { header, txn, digest, bytes })
    }

    /// Where it stands in the history.
    #[must_use]
    pub fn zxid(&self) -> Zxid {
        self.header.zxid
    }
}
