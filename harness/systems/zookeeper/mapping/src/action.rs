//! ZooKeeper's requests and answers, described: whoever drives a client sends a request exactly once.

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT, CREATE_PERSISTENT_SEQUENTIAL, ErrorCode,
};
use node_wire::ids::Zxid;

/// How a node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// For ever.
    Persistent,
    /// As long as the session.
    Ephemeral,
    /// For ever, with a number behind its name.
    Sequential,
    /// As long as the session, with a number behind its name.
    EphemeralSequential,
}

impl CreateMode {
    /// As the protocol has it.
    #[must_use]
    pub fn flags(self) -> i32 {
        match self {
            Self::Persistent => CREATE_PERSISTENT,
            Self::Ephemeral => CREATE_EPHEMERAL,
            Self::Sequential => CREATE_PERSISTENT_SEQUENTIAL,
            Self::EphemeralSequential => CREATE_EPHEMERAL_SEQUENTIAL,
        }
    }
}

/// A request, described. Whoever drives a client sends it exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create a node.
    Create {
        /// Where; without its number.
        path: String,
        /// With what.
        data: Bytes,
        /// For how long, and whether it is numbered.
        mode: CreateMode,
    },
    /// `sync`, then `getData`, on one connection: one operation, void when the connection breaks in between.
    SyncRead {
        /// Of which node.
        path: String,
    },
    /// `sync`, then `getChildren`, as one operation.
    SyncChildren {
        /// Of which node.
        path: String,
    },
    /// `sync`, then `exists`, as one operation.
    SyncExists {
        /// Which node.
        path: String,
    },
    /// `setData` with version -1.
    Write {
        /// Where.
        path: String,
        /// What.
        data: Bytes,
    },
    /// `setData` with an expected version.
    CasWrite {
        /// Where.
        path: String,
        /// What.
        data: Bytes,
        /// The version that the node must have.
        expect: i32,
    },
    /// `delete` with version -1.
    Delete {
        /// Which node.
        path: String,
    },
    /// `closeSession`. Whatever comes of it, the client goes on with a new session.
    Close,
    /// Nothing: the client drops its connection, and goes on with a new session.
    Abandon,
}

/// What came of an [`Action`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node was created; its version is 0.
    Created {
        /// The path in the reply, with the number that a sequential one got.
        path: ByteString,
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The read was answered.
    Read {
        /// The node's data.
        data: Option<Bytes>,
        /// The version in its Stat.
        version: i32,
        /// The mzxid in its Stat.
        mzxid: Zxid,
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The children were listed.
    Children {
        /// Their names.
        names: Vec<ByteString>,
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The look was answered.
    Exists {
        /// Whether the node is there.
        present: bool,
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The write was acknowledged.
    Written {
        /// The version in the Stat of the reply.
        version: i32,
        /// The mzxid in the Stat of the reply.
        mzxid: Zxid,
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The node was deleted.
    Deleted {
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The session was closed.
    Closed {
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The session was left to expire.
    Abandoned,
    /// A member said that the session had expired.
    Expired,
    /// A session was opened.
    Opened {
        /// Its time-out, as granted.
        timeout_ms: i32,
    },
    /// A member replied with an error.
    Refused {
        /// Which.
        code: ErrorCode,
        /// The zxid in the reply's header.
        zxid: Option<Zxid>,
    },
    /// The request never left the client.
    NotSent {
        /// Why.
        reason: String,
    },
    /// The request left and no reply came: a broken connection, a time-out, an expired session.
    Lost {
        /// Why.
        reason: String,
    },
}
