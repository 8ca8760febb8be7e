//! A mutant: of the bundled members, of a protocol's, or of the clients.

use harness_systems::mutant::ClientMutant;
use lab_mutants::Mutant;

use crate::protocols::PROTOCOLS;

/// Who has a bug on purpose, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// In every member; the bundled node's alone.
    Members(Mutant),
    /// In every member of a protocol, by its name there.
    Protocol(&'static str),
    /// In every client.
    Clients(ClientMutant),
}

impl Planted {
    /// The mutant of that name.
    pub fn named(name: &str) -> Option<Self> {
        let of_clients = || ClientMutant::named(name).map(Self::Clients);
        let of_protocols =
            || PROTOCOLS.iter().flat_map(|protocol| protocol.mutants).find(|bug| bug.name == name);
        let of_members = Mutant::named(name).map(Self::Members);
        of_members.or_else(of_clients).or_else(|| of_protocols().map(|bug| Self::Protocol(bug.name)))
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Members(bug) => bug.name(),
            Self::Protocol(name) => name,
            Self::Clients(bug) => bug.name(),
        }
    }

    /// The bundled members' bug, if it is one.
    pub fn of_bundled(self) -> Option<Mutant> {
        match self {
            Self::Members(bug) => Some(bug),
            Self::Clients(_) | Self::Protocol(_) => None,
        }
    }

    /// The members' bug by its name, if it is one.
    pub fn of_members(self) -> Option<&'static str> {
        match self {
            Self::Members(_) | Self::Protocol(_) => Some(self.name()),
            Self::Clients(_) => None,
        }
    }

    /// The clients' bug, if it is one.
    pub fn of_clients(self) -> Option<ClientMutant> {
        match self {
            Self::Clients(bug) => Some(bug),
            Self::Members(_) | Self::Protocol(_) => None,
        }
    }
}
