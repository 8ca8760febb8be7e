//! What the members of a cluster are started with, whatever they run in.

use std::path::PathBuf;
use std::time::Duration;

use node_core::Bug;
use runs::member::MemberId;

use crate::targets::java::Java;

/// What members are started with.
#[derive(Clone, Debug)]
pub struct MemberSettings {
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
    /// Apache ZooKeeper, when members run as it.
    pub java: Option<JavaMembers>,
}

/// What only members of Apache ZooKeeper are told.
#[derive(Clone, Debug)]
pub struct JavaMembers {
    /// Where it is.
    pub java: Java,
    /// Who begins as it.
    pub members: Vec<MemberId>,
    /// ZooKeeper's tickTime, for members of both kinds.
    pub tick: Duration,
    /// The shortest and the longest session that members of both kinds grant.
    pub sessions: (Duration, Duration),
}
