//! Bugs of clients, to see that a judge notices what a system that kept its promises would never show.
//!
//! They are in the client and so work with every system.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use checker::history::{EventKind, Function};
use workloads::{Applications, Op, Outcome};

use crate::Async;
use crate::client::{Client, Connected};

/// A bug of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMutant {
    /// Reads are answered from what the same client was told before.
    CachedReads,
    /// Applications write without a look at their clock, and the store does not look at tokens.
    CarelessHolder,
    /// Each candidate watches the whole line.
    Herd,
    /// Applications work on elements of queues that they did not claim.
    UnclaimedElements,
    /// An application enters a barrier when one is missing.
    EarlyEntry,
}

impl ClientMutant {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::CachedReads, Self::CarelessHolder, Self::Herd, Self::UnclaimedElements, Self::EarlyEntry];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CachedReads => "cached-reads",
            Self::CarelessHolder => "careless-holder",
            Self::Herd => "herd",
            Self::UnclaimedElements => "unclaimed-elements",
            Self::EarlyEntry => "early-entry",
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
            Self::Herd => "applications watch the whole line that they stand in",
            Self::UnclaimedElements => "applications work on elements of queues that they did not claim",
            Self::EarlyEntry => "applications enter a barrier when one of them is missing",
        }
    }

    /// The mutant called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }

    /// The applications that can have it. None where it is a bug of other clients.
    #[must_use]
    pub const fn applications(self) -> &'static [Applications] {
        match self {
            Self::CachedReads => &[],
            Self::CarelessHolder => &[Applications::Lock, Applications::Election, Applications::Standby],
            Self::Herd => &[Applications::Lock, Applications::Election],
            Self::UnclaimedElements => &[Applications::Queue],
            Self::EarlyEntry => &[Applications::Barrier],
        }
    }

    /// A client with this bug.
    #[must_use]
    pub fn planted_in(self, client: Box<dyn Client>) -> Box<dyn Client> {
        match self {
            Self::CachedReads => Box::new(CachedReads { client, told: BTreeMap::new(), reads: 0 }),
            // They are in the application, and in its store.
            Self::CarelessHolder | Self::Herd | Self::UnclaimedElements | Self::EarlyEntry => client,
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
        let is_read = op.function() == Function::READ;
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
