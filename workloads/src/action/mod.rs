//! Requests, answers, and what an answer means.
//!
//! The one question that matters after a failure is whether the operation may have happened. It is answered in
//! `mapping` and nowhere else. An error that came as a reply from a member is definite when that member refuses
//! before anything is proposed, or when the refusal itself was ordered; everything else that is not a success may
//! have happened. Looks have no effect, so a failed look is simply over.

mod mapping;
mod values;

use bytes::Bytes;
use bytestring::ByteString;
use checker::history::{Event, EventKind, Function, Value};
use node_wire::client::{
    CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT, CREATE_PERSISTENT_SEQUENTIAL, ErrorCode,
};
use node_wire::ids::Zxid;

pub use mapping::{SESSION_EXPIRED, UNREADABLE, completion, error_name, is_definite};
pub use values::{decode, decode_list, encode, encode_list, encode_name};

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

    pub(super) fn is_sequential(self) -> bool {
        matches!(self, Self::Sequential | Self::EphemeralSequential)
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

impl Action {
    /// Whether the client's session is over for it afterwards, however it ends.
    #[must_use]
    pub fn ends_session(&self) -> bool {
        matches!(self, Self::Close | Self::Abandon)
    }

    /// Whether it may change something: then a lost answer leaves it open for ever.
    #[must_use]
    pub fn is_change(&self) -> bool {
        match self {
            Self::SyncRead { .. } | Self::SyncChildren { .. } | Self::SyncExists { .. } | Self::Abandon => {
                false
            }
            Self::Create { .. }
            | Self::Write { .. }
            | Self::CasWrite { .. }
            | Self::Delete { .. }
            | Self::Close => true,
        }
    }
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

/// How the values of a workload stand in nodes' names and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Data is one integer.
    Integer,
    /// Data is a list of integers.
    Integers,
    /// A child's name is an integer behind a letter.
    Names,
    /// A child's name ends in the number that it got.
    Numbers,
}

/// An operation that a process is to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The function, as the history names it.
    pub f: Function,
    /// The key.
    pub key: u64,
    /// The value, as the invocation's line has it.
    pub value: Value,
    /// The version that a compare-and-set asks for.
    pub expect: Option<i32>,
    /// The request.
    pub action: Action,
    /// How what comes back is read.
    pub reading: Reading,
}

impl Invocation {
    /// The invocation's line; the caller adds where the client is connected and when the operation was due.
    #[must_use]
    pub fn event(&self, process: u64, time_ns: u64) -> Event {
        let mut event = Event::new(process, EventKind::Invoke, self.f, self.key, self.value.clone(), time_ns);
        event.expect = self.expect.map(i64::from);
        event
    }

    /// The opening of a session, which whoever drives the client does by itself; it is only written down.
    #[must_use]
    pub fn open() -> Self {
        Self::of_session(Function::Open, Action::Close)
    }

    /// The closing of the session.
    #[must_use]
    pub fn close() -> Self {
        Self::of_session(Function::Close, Action::Close)
    }

    /// The abandonment of the session.
    #[must_use]
    pub fn abandon() -> Self {
        Self::of_session(Function::Abandon, Action::Abandon)
    }

    fn of_session(f: Function, action: Action) -> Self {
        Self { f, key: 0, value: Value::Null, expect: None, action, reading: Reading::Integer }
    }
}

/// An answer as the history has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Ok, fail or info.
    pub kind: EventKind,
    /// The value of the completion's line.
    pub value: Value,
    /// The version that the reply showed.
    pub version: Option<i64>,
    /// The mzxid that the reply showed.
    pub mzxid: Option<Zxid>,
    /// The zxid in the reply's header.
    pub zxid: Option<Zxid>,
    /// The error's name.
    pub error: Option<String>,
}

impl Completion {
    /// Whether the process must never be used again: its operation may take effect at any later moment.
    #[must_use]
    pub fn retires(&self) -> bool {
        self.kind == EventKind::Info
    }

    /// The completion's line; the caller adds member and session.
    #[must_use]
    pub fn event(&self, invocation: &Invocation, process: u64, time_ns: u64) -> Event {
        let value = self.value.clone();
        let mut event = Event::new(process, self.kind, invocation.f, invocation.key, value, time_ns);
        event.version = self.version;
        event.mzxid = self.mzxid.map(|zxid| zxid.0);
        event.zxid = self.zxid.map(|zxid| zxid.0);
        event.error.clone_from(&self.error);
        event
    }

    pub(super) fn without_result(kind: EventKind, invocation: &Invocation, error: String) -> Self {
        let value = if invocation.f == Function::Read { Value::Null } else { invocation.value.clone() };
        Self { kind, value, version: None, mzxid: None, zxid: None, error: Some(error) }
    }

    pub(super) fn told(value: Value, zxid: Option<Zxid>) -> Self {
        Self { kind: EventKind::Ok, value, version: None, mzxid: None, zxid, error: None }
    }
}
