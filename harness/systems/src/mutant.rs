//! Bugs of clients, to see that a judge notices what a system that kept its promises would never show.
//!
//! They are in the client and so work with every system.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use checker::history::{EventKind, Function};
use workloads::{Op, Outcome};

use crate::Async;
use crate::client::{Client, Connected};

/// A bug of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMutant {
    /// Reads are answered from what the same client was told before.
    CachedReads,
    /// Applications write without a look at their clock, and the store does not look at tokens.
    CarelessHolder,
}

impl ClientMutant {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::CachedReads, Self::CarelessHolder];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CachedReads => "cached-reads",
            Self::CarelessHolder => "careless-holder",
        }
    }

    /// One line about it.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::CachedReads => "the client answers some reads of a key from what it was told of it before",
            Self::CarelessHolder => {
                "applications write without a look at their clock, to a store that does not look at tokens"
            }
        }
    }

    /// The mutant called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }

    /// Whether it is a bug of applications, which only some workloads have.
    #[must_use]
    pub const fn is_of_applications(self) -> bool {
        matches!(self, Self::CarelessHolder)
    }

    /// A client with this bug.
    #[must_use]
    pub fn planted_in(self, client: Box<dyn Client>) -> Box<dyn Client> {
        match self {
            Self::CachedReads => Box::new(CachedReads { client, told: BTreeMap::new(), reads: 0 }),
            // It is in the application, and in its store.
            Self::CarelessHolder => client,
        }
    }
}

/// Of so many reads one is answered from memory: enough to be seen, and seldom enough to be a bug that lives.
const ONE_IN: u64 = 4;

/// A client with a cache that nothing invalidates.
struct CachedReads {
    client: Box<dyn Client>,
    told: BTreeMap<u64, Outcome>,
    reads: u64,
}

impl CachedReads {
    async fn answer(&mut self, op: &Op, patience: Duration) -> Outcome {
        let is_read = op.function() == Function::Read;
        if is_read {
            self.reads += 1;
            if self.reads.is_multiple_of(ONE_IN)
                && let Some(told) = self.told.get(&op.key)
            {
                return told.clone();
            }
        }
        let outcome = self.client.perform(op, patience).await;
        if is_read && outcome.kind == EventKind::Ok {
            self.told.insert(op.key, outcome.clone());
        }
        outcome
    }
}

impl Client for CachedReads {
    fn connect(&mut self, member: SocketAddr, patience: Duration) -> Async<'_, Connected> {
        self.client.connect(member, patience)
    }

    fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    fn broken(&self) -> Async<'_, ()> {
        self.client.broken()
    }

    fn session(&self) -> Option<u64> {
        self.client.session()
    }

    fn perform<'a>(&'a mut self, op: &'a Op, patience: Duration) -> Async<'a, Outcome> {
        Box::pin(self.answer(op, patience))
    }

    fn leave(&mut self) {
        self.client.leave();
    }

    fn forget(&mut self) {
        self.client.forget();
    }
}
