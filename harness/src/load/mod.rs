//! Clients: an open loop of operations over sessions that move, and the history as it is written.
//!
//! What clients do and when is the load's word ([`harness_core::load`]); here it is carried out. Operations
//! fall due on a thread of their own ([`pacer`]); whoever is connected and free waits in a line for the next
//! one ([`queue`]). A client ([`client`]) has the system's own client send each once, waits as long as it was
//! told, and writes down what it saw ([`recorder`]); what an answer means is the system's business.
//!
//! What is deliberately absent: retries. An operation is sent once; what became of it is in the history.

pub mod client;
pub(crate) mod life;
pub mod pacer;
pub mod queue;
pub mod recorder;

mod ends;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness_systems::mutant::ClientMutant;
use harness_systems::{Client, ClientSettings, System};

use crate::applications::Applications;
use crate::applications::client::ApplicationClient;
use crate::clock::RunClock;
use crate::cluster::Cluster;

pub use ends::{Readers, set_up};
pub use queue::Queue;
pub use recorder::Recorder;

/// What all clients share.
#[derive(Clone)]
pub struct Shared {
    /// What the members are.
    pub system: Arc<dyn System>,
    /// A bug that all clients have.
    pub bug: Option<ClientMutant>,
    /// The applications, where those are what clients are.
    pub applications: Option<Arc<Applications>>,
    /// How many clients there were.
    pub clients: Arc<AtomicU64>,
    /// Where the members are.
    pub cluster: Arc<dyn Cluster>,
    /// What to do next, and what was learnt.
    pub load: Arc<Queue>,
    /// The history.
    pub recorder: Recorder,
    /// The run's clock.
    pub clock: RunClock,
    /// How long a client waits for an answer.
    pub op_timeout: Duration,
    /// How long a session outlives its client's silence.
    pub session_timeout: Duration,
}

impl Shared {
    /// A client of the load that was nowhere yet: an application, where those are what clients are.
    pub fn client_of_the_load(&self) -> Box<dyn Client> {
        match &self.applications {
            Some(applications) => Box::new(ApplicationClient::new(Arc::clone(applications))),
            None => self.client(),
        }
    }

    /// A client that was nowhere yet.
    pub fn client(&self) -> Box<dyn Client> {
        let number = self.clients.fetch_add(1, Ordering::Relaxed) + 1;
        let client = self.system.client(ClientSettings { number, session_timeout: self.session_timeout });
        match self.bug {
            Some(bug) => bug.planted_in(client),
            None => client,
        }
    }
}
