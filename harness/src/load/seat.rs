//! A client's connection: one session that moves between members and comes home again.
//!
//! The session keeps its id, its password and what it has seen wherever it goes; a client that opened a fresh
//! one after each failure would make every check of a session's order empty. Attempts are short and bounded,
//! one member after the other, home first.

use std::time::Duration;

use node_client::{Client, ConnectError, ConnectOptions, Session, connect};
use runs::member::MemberId;
use tokio::time::Instant;

use super::Shared;
use crate::clock::RunNs;

/// How long one member may take to answer a connect: a paused one accepts and says nothing.
const CONNECT_PATIENCE: Duration = Duration::from_millis(200);
/// The pause after the first failed attempt, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
/// How often a client that is away tries to go home.
const HOMESICK: Duration = Duration::from_secs(1);

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
    fn is_seated(&self) -> bool {
        matches!(self, Self::Resumed | Self::Opened { .. })
    }
}

/// Where a client sits.
pub struct Seat {
    home: MemberId,
    /// The members in the order in which they are tried.
    order: Vec<MemberId>,
    next: usize,
    backoff: Duration,
    session: Option<Session>,
    connection: Option<(MemberId, Client)>,
    go_home_at: Instant,
}

impl Seat {
    /// A seat at `home`, among `members`.
    pub fn new(home: MemberId, members: &[MemberId]) -> Self {
        let at = members.iter().position(|member| *member == home).unwrap_or(0);
        let order = members[at..].iter().chain(&members[..at]).copied().collect();
        Self {
            home,
            order,
            next: 0,
            backoff: BACKOFF.0,
            session: None,
            connection: None,
            go_home_at: Instant::now() + HOMESICK,
        }
    }

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

    /// When to try to go home; for ever away when it is home.
    pub async fn homesick(&self) {
        match &self.connection {
            Some((member, _)) if *member != self.home => tokio::time::sleep_until(self.go_home_at).await,
            _ => std::future::pending().await,
        }
    }

    /// Gives the connection up; the session stays.
    pub fn leave(&mut self) {
        if let Some((_, client)) = self.connection.take() {
            self.session = Some(client.session());
            self.next = 0;
            self.backoff = BACKOFF.0;
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

    /// Makes one attempt to connect, and pauses when it fails.
    pub async fn attempt(&mut self, shared: &Shared) -> Seated {
        self.leave();
        let member = self.order[self.next % self.order.len()];
        self.next = (self.next + 1) % self.order.len();
        let seated = self.sit(member, shared).await;
        if !seated.is_seated() {
            tokio::time::sleep(self.backoff).await;
            self.backoff = (self.backoff * 3 / 2).min(BACKOFF.1);
        }
        seated
    }

    /// Tries to move the session home; stays where it is when home does not take it.
    pub async fn go_home(&mut self, shared: &Shared) -> Seated {
        self.go_home_at = Instant::now() + HOMESICK;
        let Some((away, client)) = self.connection.take() else { return Seated::Nowhere };
        self.session = Some(client.session());
        let seated = self.sit(self.home, shared).await;
        if !seated.is_seated() {
            self.connection = Some((away, client));
        }
        seated
    }

    async fn sit(&mut self, member: MemberId, shared: &Shared) -> Seated {
        let asked_at = shared.clock.now();
        let had = self.session.clone();
        let options = ConnectOptions {
            timeout: shared.session_timeout,
            session: self.session.clone(),
            deadline: CONNECT_PATIENCE,
            ..ConnectOptions::default()
        };
        match connect(shared.cluster.client_address(member), options).await {
            Ok(client) => {
                let session = client.session();
                self.session = Some(session.clone());
                self.connection = Some((member, client));
                self.go_home_at = Instant::now() + HOMESICK;
                self.backoff = BACKOFF.0;
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
