//! What the members of a cluster are started with, whatever they run in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_systems::System;
use lab_mutants::Mutant;
use runs::member::MemberId;

/// What members are started with.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// What they are.
    pub system: Arc<dyn System>,
    /// How many vote.
    pub nodes: u32,
    /// How many observe.
    pub observers: u32,
    /// Silence between members after which one gives up on another.
    pub peer_timeout: Duration,
    /// The planted bug.
    pub mutant: Option<Mutant>,
    /// The run's folder; members live below it.
    pub folder: PathBuf,
    /// What names the run in the environment of its processes.
    pub token: String,
}

impl MemberSettings {
    /// Every member: voters first, observers behind them.
    pub fn members(&self) -> Vec<MemberId> {
        (1..=u64::from(self.nodes) + u64::from(self.observers)).map(MemberId).collect()
    }

    /// How many of them vote.
    pub fn voters(&self) -> usize {
        crate::num::index(u64::from(self.nodes))
    }
}
