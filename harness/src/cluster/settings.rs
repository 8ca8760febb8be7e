//! What the members of a cluster are started with, whatever they run in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_systems::System;
use node_core::Bug;

/// What members are started with.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// What they are.
    pub system: Arc<dyn System>,
    /// How many.
    pub nodes: u32,
    /// Silence between members after which one gives up on another.
    pub peer_timeout: Duration,
    /// The planted bug.
    pub plant: Option<Bug>,
    /// The run's folder; members live below it.
    pub folder: PathBuf,
    /// What names the run in the environment of its processes.
    pub token: String,
}
