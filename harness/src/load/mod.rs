//! Clients: an open loop of operations over sessions that move, and the history as it is written.
//!
//! Operations fall due at moments drawn from the seed, whether or not anybody is free ([`pacer`]); whoever is
//! connected and free takes the next one ([`queue`]). A client ([`client`]) sends each once, waits as long as
//! it was told, and writes down what it saw ([`recorder`]); what an answer means is the workload's business.
//! A client whose connection breaks resumes its session elsewhere, and tries to come home about once a
//! second, so that there are clients on every member again soon after a fault.
//!
//! What is deliberately absent: retries. An operation is sent once; what became of it is in the history.

pub mod client;
pub mod pacer;
pub mod queue;
pub mod recorder;
pub mod seat;

mod ends;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use workloads::Register;

use crate::clock::RunClock;
use crate::cluster::Cluster;

pub(crate) use ends::agree;
pub use ends::{final_reads, set_up};
pub use queue::Queue;
pub use recorder::Recorder;

/// What all clients share.
#[derive(Clone)]
pub struct Shared {
    /// Where the members are.
    pub cluster: Arc<dyn Cluster>,
    /// What to do next, and what was learnt.
    pub workload: Arc<Mutex<Register>>,
    /// The history.
    pub recorder: Recorder,
    /// The run's clock.
    pub clock: RunClock,
    /// How many clients there are: the step from a retired process to its successor.
    pub concurrency: u32,
    /// How long a client waits for an answer.
    pub op_timeout: Duration,
    /// How long a session outlives its client's silence.
    pub session_timeout: Duration,
}

impl Shared {
    /// The workload, for a moment.
    pub fn workload(&self) -> MutexGuard<'_, Register> {
        self.workload.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
