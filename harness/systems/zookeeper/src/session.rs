//! The client of ZooKeeper's protocol: one session that moves between members and comes home again.
//!
//! The session keeps its id, its password and what it has seen wherever it goes; a client that opened a fresh
//! one after each failure would make every check of a session's order empty.

use std::net::SocketAddr;
use std::time::Duration;

use bytestring::ByteString;
use node_client::{
    Client as Connection, ConnectError, ConnectOptions, ErrorCode, OpError, Reply, Session, Stat,
};
use workloads::{Op, Outcome};
use zookeeper_mapping::{Action, Answer, outcome, request};

use harness_systems::Async;
use harness_systems::client::{Client, Connected};

/// A session, and where it is.
pub(super) struct SessionClient {
    timeout: Duration,
    session: Option<Session>,
    connection: Option<Connection>,
}

impl SessionClient {
    /// One whose sessions outlive its silence for so long.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, session: None, connection: None }
    }

    /// The connection, if it stands.
    fn standing(&self) -> Option<&Connection> {
        self.connection.as_ref().filter(|connection| !connection.is_closed())
    }

    fn current(&self) -> Option<Session> {
        self.connection.as_ref().map(Connection::session).or_else(|| self.session.clone())
    }

    async fn connect_to(&mut self, member: SocketAddr, patience: Duration) -> Connected {
        if self.standing().is_none() {
            self.leave();
        }
        let had = self.current();
        let options = ConnectOptions {
            timeout: self.timeout,
            session: had.clone(),
            deadline: patience,
            ..ConnectOptions::default()
        };
        match node_client::connect(member, options).await {
            Ok(connection) => {
                let session = connection.session();
                let opened =
                    Connected::Opened { session: session.id.0.cast_unsigned(), timeout: session.timeout };
                self.session = Some(session);
                self.connection = Some(connection);
                if had.is_some() { Connected::Resumed } else { opened }
            }
            Err(ConnectError::Expired) => {
                self.session = None;
                match had {
                    Some(session) => Connected::Expired { session: session.id.0.cast_unsigned() },
                    None => Connected::Refused(ConnectError::Expired.to_string()),
                }
            }
            Err(error) => Connected::Refused(error.to_string()),
        }
    }

    async fn send(&mut self, op: &Op, patience: Duration) -> Outcome {
        let Some(connection) = &self.connection else {
            return Outcome::not_sent(op, "not connected");
        };
        let answer = match tokio::time::timeout(patience, dispatch(connection, &request(op))).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => failed(error),
            Err(_) => Answer::Lost { reason: "no answer in time".to_owned() },
        };
        if must_leave(&answer) {
            self.leave();
        }
        outcome(op, &answer)
    }
}

impl Client for SessionClient {
    fn connect(&mut self, member: SocketAddr, patience: Duration) -> Async<'_, Connected> {
        Box::pin(self.connect_to(member, patience))
    }

    fn is_connected(&self) -> bool {
        self.standing().is_some()
    }

    fn broken(&self) -> Async<'_, ()> {
        Box::pin(async {
            match &self.connection {
                Some(connection) => {
                    connection.closed().await;
                }
                None => std::future::pending().await,
            }
        })
    }

    fn session(&self) -> Option<u64> {
        self.current().map(|session| session.id.0.cast_unsigned())
    }

    fn perform<'a>(&'a mut self, op: &'a Op, patience: Duration) -> Async<'a, Outcome> {
        Box::pin(self.send(op, patience))
    }

    fn leave(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.session = Some(connection.session());
        }
    }

    fn forget(&mut self) {
        self.leave();
        self.session = None;
    }
}

/// Whether the server said that this connection is no longer the session's.
fn must_leave(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused { code: ErrorCode::SessionMoved | ErrorCode::SessionExpired, .. })
}

/// Sends a request once and waits for its answer.
async fn dispatch(connection: &Connection, action: &Action) -> Result<Answer, OpError> {
    let written = |reply: Reply<Stat>| Answer::Written {
        version: reply.value.version,
        mzxid: reply.value.mzxid,
        zxid: reply.zxid,
    };
    match action {
        Action::Create { path, data, mode } => {
            let reply =
                connection.create(ByteString::from(path.as_str()), data.clone(), mode.flags()).await?;
            Ok(Answer::Created { path: reply.value, zxid: reply.zxid })
        }
        Action::SyncChildren { path } => {
            let reply = connection.sync_then_children(ByteString::from(path.as_str())).await?;
            Ok(Answer::Children { names: reply.value, zxid: reply.zxid })
        }
        Action::SyncExists { path } => {
            let reply = connection.sync_then_exists(ByteString::from(path.as_str())).await?;
            Ok(Answer::Exists { present: reply.value, zxid: reply.zxid })
        }
        Action::Delete { path } => {
            let reply = connection.delete(ByteString::from(path.as_str()), -1).await?;
            Ok(Answer::Deleted { zxid: reply.zxid })
        }
        Action::Close => connection.close_session().await.map(|reply| Answer::Closed { zxid: reply.zxid }),
        Action::Abandon => Ok(Answer::Abandoned),
        Action::SyncRead { path } => {
            let reply = connection.sync_then_get(ByteString::from(path.as_str())).await?;
            Ok(Answer::Read {
                version: reply.value.stat.version,
                mzxid: reply.value.stat.mzxid,
                data: reply.value.data,
                zxid: reply.zxid,
            })
        }
        Action::Write { path, data } => {
            connection.set_data(ByteString::from(path.as_str()), data.clone(), -1).await.map(written)
        }
        Action::CasWrite { path, data, expect } => {
            connection.set_data(ByteString::from(path.as_str()), data.clone(), *expect).await.map(written)
        }
    }
}

fn failed(error: OpError) -> Answer {
    match error {
        OpError::Refused { code, zxid } => Answer::Refused { code, zxid: Some(zxid) },
        OpError::NotSent(reason) => Answer::NotSent { reason: reason.to_string() },
        OpError::Unknown { doubt } => Answer::Lost { reason: doubt.to_string() },
    }
}
