//! The kinds of cluster that a run can be made on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where the members of a run live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterKind {
    /// Containers where a Docker engine answers, local processes elsewhere; decided before anything starts.
    #[default]
    Auto,
    /// Containers of a Docker engine.
    Docker,
    /// Local processes.
    Process,
    /// The virtual world of the simulator.
    Sim,
}

impl ClusterKind {
    /// All of them, as help shows them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Docker, Self::Process, Self::Sim];

    /// As it is typed, and written into `run.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Docker => "docker",
            Self::Process => "process",
            Self::Sim => "sim",
        }
    }

    /// Where members are, in a sentence.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Auto => "wherever there was room",
            Self::Docker => "in Docker",
            Self::Process => "as local processes",
            Self::Sim => "in the simulator",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ClusterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
