//! Sessions and how to ask for one.

use std::time::Duration;

use bytes::Bytes;
use node_wire::ids::{SessionId, Zxid};

/// A session, as it is carried from one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// What proves that it is ours.
    pub password: Bytes,
    /// Silence after which the ensemble ends it, as negotiated.
    pub timeout: Duration,
    /// The newest state seen through it. A member that is behind this refuses the session, which is what
    /// keeps a client from travelling back in time when it changes members.
    pub last_zxid_seen: Zxid,
}

/// How to connect.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The session time-out asked for; the server clamps it to 2 to 20 of its ticks.
    pub timeout: Duration,
    /// A session to resume; a new one when there is none.
    pub session: Option<Session>,
    /// How long dialling and the server's answer together may take.
    pub deadline: Duration,
    /// Operations that may be open at once. One more is refused at once as not sent.
    pub max_outstanding: usize,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            session: None,
            deadline: Duration::from_secs(5),
            max_outstanding: 4096,
        }
    }
}
