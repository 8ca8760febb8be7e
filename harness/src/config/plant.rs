//! A planted bug: of the bundled members, or of the clients.

use harness_systems::planted::ClientBug;
use node_core::Bug;

/// A bug that is there on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// In every member; the bundled node's alone.
    Members(Bug),
    /// In every client.
    Clients(ClientBug),
}

impl Plant {
    /// The bug of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let of_clients = || ClientBug::from_name(name).map(Self::Clients);
        Bug::from_name(name).map(Self::Members).or_else(of_clients)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Members(bug) => bug.name(),
            Self::Clients(bug) => bug.name(),
        }
    }

    /// The members' bug, if it is one.
    pub fn of_members(self) -> Option<Bug> {
        match self {
            Self::Members(bug) => Some(bug),
            Self::Clients(_) => None,
        }
    }

    /// The clients' bug, if it is one.
    pub fn of_clients(self) -> Option<ClientBug> {
        match self {
            Self::Clients(bug) => Some(bug),
            Self::Members(_) => None,
        }
    }
}
