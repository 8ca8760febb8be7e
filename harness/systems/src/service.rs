//! What a file says of containers: members of images of their own, and auxiliary services beside them.
//!
//! An auxiliary service is what a system needs and what is not tested: a store of configuration, a proxy, a
//! job that makes a schema. It is on the members' network, under its own name, and no fault hits it.

use std::path::PathBuf;
use std::time::Duration;

/// A container of an image of its own, as a file describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// What it is called in its file.
    pub name: String,
    /// Its image.
    pub image: String,
    /// What the image runs; empty where that is the image's word.
    pub entrypoint: Vec<String>,
    /// What that is told; empty where it is the image's word.
    pub command: Vec<String>,
    /// `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Who runs it.
    pub user: Option<String>,
    /// Where it runs.
    pub working_dir: Option<String>,
    /// What it calls itself; its name where nobody says.
    pub hostname: Option<String>,
    /// What others call it.
    pub aliases: Vec<String>,
    /// What is mounted.
    pub volumes: Vec<Volume>,
    /// Names, soft and hard limits.
    pub ulimits: Vec<(String, i64, i64)>,
    /// Rights that it has beside the usual ones.
    pub cap_add: Vec<String>,
    /// Whether its standard input stays open, without anything in it.
    pub stdin_open: bool,
    /// Whether the engine's own init is its process 1, and starts its program.
    pub init: bool,
    /// Of a member: whether its program is process 1 of a namespace of its own, because it insists on that.
    pub process_1: bool,
}

impl Service {
    /// Where the volumes of the run's own are mounted.
    #[must_use]
    pub fn own_volumes(&self) -> Vec<String> {
        let own = |volume: &Volume| match volume {
            Volume::Own { target, .. } => Some(target.clone()),
            Volume::Bound { .. } => None,
        };
        self.volumes.iter().filter_map(own).collect()
    }
}

/// What is mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A volume of the run's own.
    Own {
        /// What its file calls it.
        name: String,
        /// Where it is mounted.
        target: String,
    },
    /// A file or folder of this machine.
    Bound {
        /// Which.
        from: PathBuf,
        /// Where it is mounted.
        target: String,
        /// Whether nobody may write there.
        read_only: bool,
    },
}

/// The services that stand beside the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auxiliaries {
    /// Those that start before any member, in this order.
    pub before: Vec<Auxiliary>,
    /// What must be so of them before a member starts.
    pub members_after: Vec<Dependency>,
    /// Those that start when all members serve, in this order: they depend on one.
    pub behind: Vec<Auxiliary>,
    /// The one in whose container the processes of the client run.
    pub client: Option<String>,
}

impl Auxiliaries {
    /// None at all.
    pub const NONE: Self =
        Self { before: Vec::new(), members_after: Vec::new(), behind: Vec::new(), client: None };

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = &Auxiliary> {
        self.before.iter().chain(&self.behind)
    }
}

/// A service beside the members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auxiliary {
    /// What it is made of.
    pub service: Service,
    /// What must be so of other auxiliary services before it starts.
    pub after: Vec<Dependency>,
    /// How the engine finds out whether it is healthy, where that is not the image's word.
    pub health: Option<HealthCheck>,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The service, by its name.
    pub on: String,
    /// What must be so of it.
    pub condition: Condition,
}

/// What must be so of a service, in Compose's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `service_started`.
    Started,
    /// `service_healthy`: its health check says so.
    Healthy,
    /// `service_completed_successfully`: it ended with exit status 0.
    Completed,
}

/// A health check, in Compose's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthCheck {
    /// `["CMD", ...]`, `["CMD-SHELL", LINE]` or `["NONE"]`; empty where that is the image's word.
    pub test: Vec<String>,
    /// From one look to the next.
    pub interval: Option<Duration>,
    /// How long a look may take.
    pub timeout: Option<Duration>,
    /// For how long after the start a look that fails does not count.
    pub start_period: Option<Duration>,
    /// How many looks in a row must fail.
    pub retries: Option<u32>,
}
