//! Addresses as they are written on the command line and in zoo.cfg.
//!
//! Names stay names here. They are resolved when somebody dials or binds, because a peer's address may
//! change while this member runs.

use std::str::FromStr;

use node_wire::ids::ServerId;

pub(crate) use node_wire::membership::server_id;
pub use node_wire::membership::{HostPort, ServerLine, ServerLineError, ServerRole, UNSPECIFIED};

/// Why an address was refused: a fragment that says what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address, or not a server line.
    #[error(transparent)]
    Line(#[from] ServerLineError),
    /// Not `ID=...`.
    #[error("`{0}` does not begin with ID= where ID is a number, 0 or more")]
    Id(String),
    /// Not a dial line.
    #[error("`{0}` is not QUORUMHOST:PORT,ELECTIONHOST:PORT")]
    Dial(String),
}

/// Where to dial a peer instead of where its server line says: through a link that can be cut, say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialLine {
    /// Instead of its quorum address.
    pub quorum: HostPort,
    /// Instead of its election address.
    pub election: HostPort,
}

impl FromStr for DialLine {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (quorum, election) = text.split_once(',').ok_or_else(|| AddressError::Dial(text.to_owned()))?;
        Ok(Self { quorum: quorum.parse()?, election: election.parse()? })
    }
}

/// A line about one server, as flags write it: `ID=LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ById<T> {
    /// About whom.
    pub id: ServerId,
    /// What.
    pub line: T,
}

impl<T: FromStr> FromStr for ById<T>
where
    AddressError: From<T::Err>,
{
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (id, line) = text.split_once('=').ok_or_else(|| AddressError::Id(text.to_owned()))?;
        Ok(Self { id: server_id(id).ok_or_else(|| AddressError::Id(text.to_owned()))?, line: line.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_the_server_first() {
        let dial: ById<DialLine> = "3=127.0.0.1:1,127.0.0.1:2".parse().expect("a dial line");
        assert_eq!((dial.id, dial.line.election.port), (ServerId(3), 2));
        for text in ["127.0.0.1:1,127.0.0.1:2", "-1=a:1,a:2", "x=a:1,a:2"] {
            assert!(matches!(text.parse::<ById<DialLine>>(), Err(AddressError::Id(_))), "{text}");
        }
        assert!(matches!("3=a:1".parse::<ById<DialLine>>(), Err(AddressError::Dial(_))));
    }
}
