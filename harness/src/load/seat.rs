//! A client's connection: one session that moves between members and comes home again.
//!
//! The session keeps its id, its password and what it has seen wherever it goes; a client that opened a fresh
//! one after each failure would make every check of a session's order empty.

use std::time::Duration;

use harness_core::load::CONNECT_PATIENCE_NS;
use node_client::{Client, ConnectError, ConnectOptions, Session, connect};
use runs::member::MemberId;

use super::Shared;
use crate::clock::RunNs;

/// How long one member may take to answer a connect.
const CONNECT_PATIENCE: Duration = Duration::from_nanos(CONNECT_PATIENCE_NS);

/// What came of an attempt to connect.
#[derive(Debug)]
pub enum Seated {
    /// The session goes on.
    Resumed,
    /// A new session began.
    Opened {
        /// It.
        session: Session,
        /// Where.
        member: MemberId,
        /// When it was asked for.
        asked_at: RunNs,
    },
    /// A member said that the session had expired.
    Expired {
        /// It.
        session: Session,
        /// Who said so.
        member: MemberId,
    },
    /// Nobody took the client.
    Nowhere,
}

impl Seated {
    /// Whether the client is connected to where it went.
    pub fn is_seated(&self) -> bool {
        matches!(self, Self::Resumed | Self::Opened { .. })
    }
}

/// Where a client sits.
#[derive(Default)]
pub struct Seat {
    session: Option<Session>,
    connection: Option<(MemberId, Client)>,
}

impl Seat {
    /// The connection, if it stands.
    pub fn connection(&self) -> Option<(MemberId, &Client)> {
        let (member, client) = self.connection.as_ref()?;
        (!client.is_closed()).then_some((*member, client))
    }

    /// Waits until the connection breaks; for ever when there is none.
    pub async fn broken(&self) {
        match &self.connection {
            Some((_, client)) => {
                client.closed().await;
            }
            None => std::future::pending().await,
        }
    }

    /// Gives the connection up; the session stays.
    pub fn leave(&mut self) {
        if let Some((_, client)) = self.connection.take() {
            self.session = Some(client.session());
        }
    }

    /// Gives the session up together with its connection: the next one is a new one.
    pub fn forget(&mut self) {
        self.leave();
        self.session = None;
    }

    /// The session, wherever it is.
    pub fn session(&self) -> Option<Session> {
        self.connection.as_ref().map(|(_, client)| client.session()).or_else(|| self.session.clone())
    }

    /// Takes the session to a member. A connection that stands is kept until the new one does.
    pub async fn sit(&mut self, member: MemberId, shared: &Shared) -> Seated {
        if self.connection().is_none() {
            self.leave();
        }
        let asked_at = shared.clock.now();
        let had = self.session();
        let options = ConnectOptions {
            timeout: shared.session_timeout,
            session: had.clone(),
            deadline: CONNECT_PATIENCE,
            ..ConnectOptions::default()
        };
        match connect(shared.cluster.client_address(member), options).await {
            Ok(client) => {
                let session = client.session();
                self.session = Some(session.clone());
                self.connection = Some((member, client));
                match had {
                    Some(_) => Seated::Resumed,
                    None => Seated::Opened { session, member, asked_at },
                }
            }
            Err(ConnectError::Expired) => {
                self.session = None;
                had.map_or(Seated::Nowhere, |session| Seated::Expired { session, member })
            }
            Err(_) => Seated::Nowhere,
        }
    }
}
