//! What can go wrong, and what each failure proves.

use std::fmt;
use std::io;
use std::sync::Arc;

use node_session::Failure;
use node_wire::client::{ErrorCode, PathError};
use node_wire::ids::Zxid;
use node_wire::jute::DecodeError;

/// Why a connection ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CloseReason {
    /// The server closed it.
    #[error("closed by the server")]
    ByServer,
    /// The socket failed.
    #[error("socket error: {0}")]
    Io(Arc<io::Error>),
    /// Nothing was heard for two thirds of the session's time-out, pings notwithstanding.
    #[error("nothing heard from the server for too long")]
    Silent,
    /// The server sent something that is not the protocol, or an answer to another question.
    #[error("bad answer from the server: {0}")]
    Malformed(String),
    /// The session was closed at the caller's wish.
    #[error("session closed")]
    SessionClosed,
    /// Every handle was dropped.
    #[error("client dropped")]
    Dropped,
    /// The session was taken to another server.
    #[error("moved to another server")]
    Moved,
    /// The server did not accept an identity that was shown.
    #[error("authentication failed")]
    AuthFailed,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens there.
    #[error("connection refused")]
    Refused,
    /// The server accepted and hung up without an answer, as one does that has no leader.
    #[error("the server is not serving")]
    NotServing,
    /// The session given is no more. The server answered, so this is its word and no guess.
    #[error("session expired")]
    Expired,
    /// The deadline passed first. A new session may exist on the server; it expires there by itself.
    #[error("timed out")]
    TimedOut,
    /// The socket failed.
    #[error("socket error: {0}")]
    Io(#[source] io::Error),
    /// The answer is not the protocol.
    #[error("bad answer from the server: {0}")]
    Malformed(#[source] DecodeError),
    /// The server has no quorum and lets only read, and that was not asked for.
    #[error("the server is read-only")]
    ReadOnly,
    /// The server did not accept who we say we are, or could not prove that it knows our password.
    #[error("authentication failed: {0}")]
    AuthFailed(String),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::NotServing,
            io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Io(error),
        }
    }
}

/// Why an operation was never handed to the network.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotSent {
    /// The connection ended before the whole request was written.
    #[error("not sent: {0}")]
    Closed(CloseReason),
    /// As many operations as [`ConnectOptions::max_outstanding`](crate::ConnectOptions) allows are open.
    #[error("not sent: too many outstanding operations")]
    Overloaded,
    /// There was no connection, and none came in time.
    #[error("not sent: no server serves the session")]
    NoConnection,
    /// The path does not begin with `/`.
    #[error("not sent: use a path that begins with /, and not {0:?}")]
    Path(String),
    /// The request is longer than a frame may be.
    #[error("not sent: request of {0} bytes is too long")]
    TooLong(usize),
}

/// Why the outcome of an operation is not known.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Doubt {
    /// The request was written and the connection ended before its answer.
    #[error("no answer: {0}")]
    Unanswered(CloseReason),
    /// The server answered with a code that leaves it open, such as an operation time-out.
    #[error("the server does not say whether it happened ({0:?})")]
    Code(ErrorCode),
    /// The server answered with a code that the protocol does not list.
    #[error("unlisted error code {0}")]
    UnlistedCode(i32),
    /// An operation of a multi failed with a code that the protocol does not list.
    #[error("unlisted error code in a multi")]
    UnlistedResult,
    /// The server claims success in words that can't be read.
    #[error("unreadable answer: {0}")]
    Unreadable(#[source] DecodeError),
}

/// How an operation failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpError {
    /// The server refused it. Definite: it did not happen.
    #[error("refused: {code:?}")]
    Refused {
        /// Why.
        code: ErrorCode,
        /// The header's zxid: for a refused update its own place in the order of updates.
        zxid: Zxid,
    },
    /// It was never sent. Definite: it did not happen and will not.
    #[error(transparent)]
    NotSent(#[from] NotSent),
    /// Indefinite: it may have happened, may not have, and may happen later.
    #[error("unknown outcome: {doubt}")]
    Unknown {
        /// What is missing.
        #[source]
        doubt: Doubt,
    },
}

impl OpError {
    /// True when the operation certainly did not happen.
    pub fn is_definite(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NotSent(_) => true,
            Self::Unknown { .. } => false,
        }
    }

    /// The server's reason, when it refused.
    pub fn refusal(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::NotSent(_) | Self::Unknown { .. } => None,
        }
    }

    /// The error behind a reply header whose `err` is not zero.
    pub(crate) fn from_header(err: i32, zxid: Zxid) -> Self {
        match ErrorCode::from_code(err) {
            None => Self::Unknown { doubt: Doubt::UnlistedCode(err) },
            Some(code) if leaves_it_open(code) => Self::Unknown { doubt: Doubt::Code(code) },
            Some(code) => Self::Refused { code, zxid },
        }
    }
}

impl From<&OpError> for Failure {
    fn from(error: &OpError) -> Self {
        match error {
            OpError::Refused { code, .. } => Self::refused(*code),
            OpError::NotSent(_) => Self::NotSent,
            OpError::Unknown { .. } => Self::Unknown,
        }
    }
}

/// How a multi failed.
#[derive(Clone, Debug)]
pub struct MultiError {
    /// How it failed as a whole.
    pub error: OpError,
    /// Which of its operations was refused, counted from 0. None where the server does not say, or did not
    /// refuse.
    pub at: Option<usize>,
}

impl fmt::Display for MultiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "operation {at} of the multi: {}", self.error),
            None => self.error.fmt(f),
        }
    }
}

impl std::error::Error for MultiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl From<OpError> for MultiError {
    fn from(error: OpError) -> Self {
        Self { error, at: None }
    }
}

impl From<&MultiError> for Failure {
    fn from(failed: &MultiError) -> Self {
        match &failed.error {
            OpError::Refused { code, .. } => Self::Refused { code: *code, at: failed.at },
            other => other.into(),
        }
    }
}

/// Why there is no [`Keeper`](crate::Keeper).
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The list of servers can't be read.
    #[error(transparent)]
    Servers(#[from] ServersError),
    /// No server opened a session in time.
    #[error("no server opened a session in time{}", said(.last.as_ref()))]
    NotConnected {
        /// What the server that was tried last said.
        #[source]
        last: Option<Arc<ConnectError>>,
    },
    /// A server did not accept an identity.
    #[error("authentication failed")]
    AuthFailed,
}

fn said(last: Option<&Arc<ConnectError>>) -> String {
    last.map_or_else(String::new, |error| format!(": {error}"))
}

/// Why a list of servers can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServersError {
    /// It has no server in it.
    #[error("name at least one server, as in host:2181,other:2181/chroot")]
    Empty,
    /// A server is no `host` and no `host:port`.
    #[error("write host:port, or host alone for port 2181, and not {0:?}")]
    Server(String),
    /// What stands behind the servers is no path.
    #[error("{path:?} is no chroot: a session can't {source}")]
    Chroot {
        /// What stands there.
        path: String,
        /// What is wrong with it; it fits after "can't".
        source: PathError,
    },
}

impl From<std::convert::Infallible> for ServersError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// Codes that a server sends when it lost sight of an operation, or of itself, rather than refusing.
pub(crate) fn leaves_it_open(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::SystemError
            | ErrorCode::RuntimeInconsistency
            | ErrorCode::DataInconsistency
            | ErrorCode::ConnectionLoss
            | ErrorCode::OperationTimeout
            | ErrorCode::RequestTimeout
    )
}
