//! A client of the load: what a system gives to whoever drives it.
//!
//! A client is on one connection at a time and goes where it is told. It sends each operation once and never
//! again: what became of it is the outcome, and whoever drives the client writes that down. Stamps are the
//! driver's: a client neither waits before it sends nor after the answer came.

use std::net::SocketAddr;
use std::time::Duration;

use runs::member::MemberId;
use workloads::{Op, Outcome};

use crate::Async;

/// What a client is told once.
#[derive(Clone, Copy, Debug)]
pub struct ClientSettings {
    /// A number that no other client of the run has, from 1.
    pub number: u64,
    /// How long its session is to outlive its silence, where the system has sessions.
    pub session_timeout: Duration,
}

/// What came of an attempt to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connected {
    /// What was begun goes on: the session, where there are sessions.
    Resumed,
    /// A new session began.
    Opened {
        /// Which.
        session: u64,
        /// Its time-out, as granted.
        timeout: Duration,
    },
    /// The member said that the session had expired.
    Expired {
        /// Which.
        session: u64,
    },
    /// Nobody took the client; why.
    Refused(String),
    /// The client itself was not there, because what it runs in is being replaced: no member was asked for
    /// anything.
    Replaced,
}

/// Why a client could not set out that is a process of its own: none was ready. That is not the member's
/// doing.
pub const NO_PROCESS: &str = "no process of the client was ready in time";

impl Connected {
    /// Whether the client is now connected to where it went.
    #[must_use]
    pub fn stands(&self) -> bool {
        matches!(self, Self::Resumed | Self::Opened { .. })
    }
}

/// What the history calls the session of a client whose system has none: the client itself, until it forgets
/// all that it takes along.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Itself {
    number: u64,
    /// How often it has begun anew.
    anew: u64,
    has_begun: bool,
}

/// The client's number is in the low half, how often it began anew in the high one.
const ANEW_BITS: u32 = 32;

impl Itself {
    /// The client of that number, before its first connection.
    pub(crate) fn of(number: u64) -> Self {
        Self { number, anew: 0, has_begun: false }
    }

    fn id(self) -> u64 {
        self.number | (self.anew << ANEW_BITS)
    }

    /// It is connected. What begins has no time-out.
    pub(crate) fn is_connected(&mut self) -> Connected {
        if std::mem::replace(&mut self.has_begun, true) {
            Connected::Resumed
        } else {
            Connected::Opened { session: self.id(), timeout: Duration::ZERO }
        }
    }

    /// What the history calls its session.
    pub(crate) fn session(self) -> Option<u64> {
        self.has_begun.then(|| self.id())
    }

    /// What comes next is another one.
    pub(crate) fn forgets(&mut self) {
        self.anew += u64::from(std::mem::take(&mut self.has_begun));
    }
}

/// An attempt to connect that may take so long.
pub(crate) async fn within(patience: Duration, attempt: impl Future<Output = Connected>) -> Connected {
    match tokio::time::timeout(patience, attempt).await {
        Ok(connected) => connected,
        Err(_) => Connected::Refused("no answer in time".to_owned()),
    }
}

/// A client.
pub trait Client: Send {
    /// Goes to a member, with all that it takes along. A connection that stands is kept until the new one
    /// does.
    fn connect(&mut self, member: SocketAddr, patience: Duration) -> Async<'_, Connected>;

    /// Whether its connection stands, as far as it knows.
    fn is_connected(&self) -> bool;

    /// Completes when its connection breaks; never where there is none.
    fn broken(&self) -> Async<'_, ()>;

    /// What the history calls its session: within it the client is shown a system that does not go back. None
    /// before the first connection.
    fn session(&self) -> Option<u64>;

    /// The member that it is at, where it goes by itself and not where it is told.
    fn member(&self) -> Option<MemberId> {
        None
    }

    /// Does an operation: sends it once, and waits so long for its answer. An answer that comes later is
    /// dropped. Called while connected; an operation of a session's own (open, abandon) is not sent.
    fn perform<'a>(&'a mut self, op: &'a Op, patience: Duration) -> Async<'a, Outcome>;

    /// Gives the connection up; what it takes along stays.
    fn leave(&mut self);

    /// Gives up the connection and all that it takes along: the next connection begins anew.
    fn forget(&mut self);
}

/// In the place of a client where a system has none of its own: nobody takes it anywhere.
pub(crate) struct NoClient;

/// Why.
const NOWHERE: &str = "the system has clients in virtual time alone";

impl Client for NoClient {
    fn connect(&mut self, _: SocketAddr, _: Duration) -> Async<'_, Connected> {
        Box::pin(async { Connected::Refused(NOWHERE.to_owned()) })
    }

    fn is_connected(&self) -> bool {
        false
    }

    fn broken(&self) -> Async<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn session(&self) -> Option<u64> {
        None
    }

    fn perform<'a>(&'a mut self, op: &'a Op, _: Duration) -> Async<'a, Outcome> {
        Box::pin(async { Outcome::not_sent(op, NOWHERE) })
    }

    fn leave(&mut self) {}

    fn forget(&mut self) {}
}
