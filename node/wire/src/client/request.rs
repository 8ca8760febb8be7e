//! Requests and their bodies.

use bytes::Bytes;
use bytestring::ByteString;

use super::codes::PERM_ALL;
use crate::ids::Zxid;
use crate::jute::{DecodeError, Jute, Reader, Writer, record};

/// A request whose body is still bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's number for it; the reply bears the same.
    pub xid: i32,
    /// What is asked. Raw, because an unknown operation is answered and not refused.
    pub op: i32,
    /// What it is asked of; its form depends on the operation.
    pub body: Bytes,
}

impl Request {
    /// Appends header and body.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.int(self.xid);
        w.int(self.op);
        w.raw(&self.body);
    }

    /// Takes a frame apart; the body is a slice of it.
    ///
    /// # Errors
    /// When there is no whole header.
    pub fn decode(frame: Bytes) -> Result<Self, DecodeError> {
        let mut r = Reader::new(frame);
        Ok(Self { xid: r.int()?, op: r.int()?, body: r.rest() })
    }
}

/// One entry of an access control list: who may do what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Acl {
    /// A sum of the `PERM_` bits.
    pub perms: i32,
    /// The kind of identity.
    pub scheme: ByteString,
    /// The identity.
    pub id: ByteString,
}

impl Acl {
    /// Everybody may do everything.
    #[must_use]
    pub fn world_anyone() -> Acl {
        Acl {
            perms: PERM_ALL,
            scheme: ByteString::from_static("world"),
            id: ByteString::from_static("anyone"),
        }
    }

    /// Appends the record.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.int(self.perms);
        w.string(&self.scheme);
        w.string(&self.id);
    }

    /// Reads the record. Null strings become empty ones, which no scheme accepts: the request is answered
    /// with an error, where a refusal here would cost the client its connection.
    ///
    /// # Errors
    /// When the bytes are not such a record, or not a whole one.
    pub fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            perms: r.int()?,
            scheme: r.optional_string()?.unwrap_or_default(),
            id: r.optional_string()?.unwrap_or_default(),
        })
    }
}

impl Jute for Acl {
    const MIN_LEN: usize = 12;

    fn encode(&self, w: &mut Writer<'_>) {
        Self::encode(self, w);
    }

    fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        Self::decode(r)
    }
}

/// Who a client is, or one of those it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// The kind of identity.
    pub scheme: ByteString,
    /// The identity.
    pub id: ByteString,
}

impl Id {
    /// Whom no access control list stops.
    #[must_use]
    pub fn superuser() -> Id {
        Id { scheme: ByteString::from_static("super"), id: ByteString::new() }
    }
}

/// Null strings become empty ones, as in an [`Acl`].
impl Jute for Id {
    const MIN_LEN: usize = 8;

    fn encode(&self, w: &mut Writer<'_>) {
        w.string(&self.scheme);
        w.string(&self.id);
    }

    fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            scheme: r.optional_string()?.unwrap_or_default(),
            id: r.optional_string()?.unwrap_or_default(),
        })
    }
}

record! {
    /// create, create2 and createContainer.
    pub struct CreateRequest {
        /// Where.
        pub path: ByteString,
        /// With what.
        pub data: Option<Bytes>,
        /// For whom.
        pub acl: Vec<Acl>,
        /// One of the `CREATE_` flags.
        pub flags: i32,
    }
}

record! {
    /// createTTL.
    pub struct CreateTtlRequest {
        /// Where.
        pub path: ByteString,
        /// With what.
        pub data: Option<Bytes>,
        /// For whom.
        pub acl: Vec<Acl>,
        /// One of the `CREATE_` flags.
        pub flags: i32,
        /// How long the node lives without children and changes.
        pub ttl_ms: i64,
    }
}

record! {
    /// delete.
    pub struct DeleteRequest {
        /// Which node.
        pub path: ByteString,
        /// At which version, -1 for any.
        pub version: i32,
    }
}

record! {
    /// exists, getData, getChildren and getChildren2.
    pub struct PathWatch {
        /// Which node.
        pub path: ByteString,
        /// Whether to leave a watch.
        pub watch: bool,
    }
}

record! {
    /// setData.
    pub struct SetDataRequest {
        /// Which node.
        pub path: ByteString,
        /// The new data.
        pub data: Option<Bytes>,
        /// At which version, -1 for any.
        pub version: i32,
    }
}

record! {
    /// sync.
    pub struct SyncRequest {
        /// Echoed; the sync itself is of everything.
        pub path: ByteString,
    }
}

record! {
    /// getACL, getEphemerals (a prefix, there) and getAllChildrenNumber.
    pub struct PathOnly {
        /// Which node.
        pub path: ByteString,
    }
}

record! {
    /// check.
    pub struct CheckVersionRequest {
        /// Which node.
        pub path: ByteString,
        /// At which version, -1 for any.
        pub version: i32,
    }
}

record! {
    /// setACL.
    pub struct SetAclRequest {
        /// Which node.
        pub path: ByteString,
        /// The new list.
        pub acl: Vec<Acl>,
        /// At which version of the list, -1 for any.
        pub version: i32,
    }
}

record! {
    /// setWatches: the one-time watches of an earlier connection.
    #[derive(Default)]
    pub struct SetWatches {
        /// What the client has seen; whatever changed since is reported at once.
        pub relative_zxid: Zxid,
        /// Watches on data.
        pub data_watches: Vec<ByteString>,
        /// Watches on a node that was not there.
        pub exist_watches: Vec<ByteString>,
        /// Watches on children.
        pub child_watches: Vec<ByteString>,
    }
}

record! {
    /// setWatches2: as setWatches, with persistent watches.
    #[derive(Default)]
    pub struct SetWatches2 {
        /// What the client has seen; whatever changed since is reported at once.
        pub relative_zxid: Zxid,
        /// Watches on data.
        pub data_watches: Vec<ByteString>,
        /// Watches on a node that was not there.
        pub exist_watches: Vec<ByteString>,
        /// Watches on children.
        pub child_watches: Vec<ByteString>,
        /// Persistent watches.
        pub persistent_watches: Vec<ByteString>,
        /// Persistent watches that reach everything below.
        pub persistent_recursive_watches: Vec<ByteString>,
    }
}

record! {
    /// addWatch.
    pub struct AddWatchRequest {
        /// Which node.
        pub path: ByteString,
        /// One of [`super::AddWatchMode`].
        pub mode: i32,
    }
}

record! {
    /// checkWatches and removeWatches.
    pub struct WatchesRequest {
        /// Which node.
        pub path: ByteString,
        /// Which watches: 1 children, 2 data, 3 any.
        pub kind: i32,
    }
}

record! {
    /// auth.
    pub struct AuthPacket {
        /// Always 0.
        pub kind: i32,
        /// The kind of identity.
        pub scheme: ByteString,
        /// What proves it.
        pub auth: Option<Bytes>,
    }
}

record! {
    /// sasl, in both directions.
    pub struct SaslPacket {
        /// The mechanism's own bytes.
        pub token: Option<Bytes>,
    }
}

record! {
    /// reconfig.
    pub struct ReconfigRequest {
        /// Members to add or change, as in the configuration.
        pub joining: Option<ByteString>,
        /// Members to remove, by number.
        pub leaving: Option<ByteString>,
        /// All members, instead of the two above.
        pub members: Option<ByteString>,
        /// At which version of the configuration, -1 for any.
        pub config_version: i64,
    }
}
