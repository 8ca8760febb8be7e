//! A mutant: of the bundled members, or of the clients.

use harness_systems::mutant::ClientMutant;
use lab_mutants::Mutant;

/// Who has a bug on purpose, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// In every member; the bundled node's alone.
    Members(Mutant),
    /// In every client.
    Clients(ClientMutant),
}

impl Planted {
    /// The mutant of that name.
    pub fn named(name: &str) -> Option<Self> {
        let of_clients = || ClientMutant::named(name).map(Self::Clients);
        Mutant::named(name).map(Self::Members).or_else(of_clients)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Members(bug) => bug.name(),
            Self::Clients(bug) => bug.name(),
        }
    }

    /// The members' bug, if it is one.
    pub fn of_members(self) -> Option<Mutant> {
        match self {
            Self::Members(bug) => Some(bug),
            Self::Clients(_) => None,
        }
    }

    /// The clients' bug, if it is one.
    pub fn of_clients(self) -> Option<ClientMutant> {
        match self {
            Self::Clients(bug) => Some(bug),
            Self::Members(_) => None,
        }
    }
}
