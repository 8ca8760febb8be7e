//! Addresses as they are written on the command line and in zoo.cfg.
//!
//! Names stay names here. They are resolved when somebody dials or binds, because a peer's address may
//! change while this member runs.

use std::fmt;
use std::str::FromStr;

use node_wire::ids::ServerId;

/// Why an address was refused: a fragment that says what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not `HOST:PORT`.
    #[error("`{0}` is not HOST:PORT (write an IPv6 host in brackets)")]
    HostPort(String),
    /// Not a port number.
    #[error("`{0}` is not a port number")]
    Port(String),
    /// Not `ID=...`.
    #[error("`{0}` does not begin with ID= where ID is a positive number")]
    Id(String),
    /// Not a server line.
    #[error("`{0}` is not HOST:QUORUMPORT:ELECTIONPORT[:participant|:observer][;[HOST:]CLIENTPORT]")]
    Server(String),
    /// No role of a server.
    #[error("`{0}` is not a role of a server: it is a participant or an observer")]
    Role(String),
    /// Not a dial line.
    #[error("`{0}` is not QUORUMHOST:PORT,ELECTIONHOST:PORT")]
    Dial(String),
}

/// A host, by name or number, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Without brackets.
    pub host: String,
    /// 0 lets the system choose, where that makes sense.
    pub port: u16,
}

impl HostPort {
    /// From its parts.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for HostPort {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let bad = || AddressError::HostPort(text.to_owned());
        let (host, rest) = split_host(text).ok_or_else(bad)?;
        if rest.contains(':') {
            return Err(bad());
        }
        Ok(Self::new(host, port(rest)?))
    }
}

/// Whether a server has a vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerRole {
    /// It votes, and what is committed is on the disks of more than half of its kind.
    #[default]
    Participant,
    /// It follows without a vote.
    Observer,
}

impl ServerRole {
    /// As it stands in a server's line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Participant => "participant",
            Self::Observer => "observer",
        }
    }
}

/// What the ensemble's configuration says about one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLine {
    /// Where learners connect when it leads.
    pub quorum: HostPort,
    /// Where votes go.
    pub election: HostPort,
    /// Whether it votes.
    pub role: ServerRole,
    /// Where clients connect, when the line says so.
    pub client: Option<HostPort>,
}

impl FromStr for ServerLine {
    type Err = AddressError;

    /// The value of ZooKeeper's `server.N` key.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let bad = || AddressError::Server(text.to_owned());
        let (peers, client) = match text.split_once(';') {
            Some((peers, client)) => (peers, Some(client.trim())),
            None => (text, None),
        };
        let (host, rest) = split_host(peers.trim()).ok_or_else(bad)?;
        let mut parts = rest.split(':');
        let (Some(quorum), Some(election)) = (parts.next(), parts.next()) else { return Err(bad()) };
        let role = match parts.next() {
            None => ServerRole::Participant,
            Some(role) if role.eq_ignore_ascii_case("participant") => ServerRole::Participant,
            Some(role) if role.eq_ignore_ascii_case("observer") => ServerRole::Observer,
            Some(role) => return Err(AddressError::Role(role.to_owned())),
        };
        if parts.next().is_some() {
            return Err(bad());
        }
        let client = match client {
            None => None,
            Some(text) if text.contains(':') => Some(text.parse()?),
            Some(text) => Some(HostPort::new(UNSPECIFIED, port(text)?)),
        };
        Ok(Self {
            quorum: HostPort::new(host, port(quorum)?),
            election: HostPort::new(host, port(election)?),
            role,
            client,
        })
    }
}

/// Every interface, as ZooKeeper listens when only a port is given.
pub const UNSPECIFIED: &str = "0.0.0.0";

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

impl<T: FromStr<Err = AddressError>> FromStr for ById<T> {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (id, line) = text.split_once('=').ok_or_else(|| AddressError::Id(text.to_owned()))?;
        Ok(Self { id: server_id(id).ok_or_else(|| AddressError::Id(text.to_owned()))?, line: line.parse()? })
    }
}

/// A server's number. It crosses the wire as a signed long, and 0 is kept free.
pub(crate) fn server_id(text: &str) -> Option<ServerId> {
    let id: i64 = text.trim().parse().ok()?;
    u64::try_from(id).ok().filter(|&id| id > 0).map(ServerId)
}

/// Splits `HOST:REST`, where an IPv6 host stands in brackets.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once("]:")?,
        None => text.split_once(':')?,
    };
    (!host.is_empty()).then_some((host, rest))
}

fn port(text: &str) -> Result<u16, AddressError> {
    text.trim().parse().map_err(|_| AddressError::Port(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_lines_are_zookeepers() {
        let line = |quorum: &str, election: &str, client: Option<&str>| {
            let parse = |text: &str| text.parse::<HostPort>().expect("an address");
            let (quorum, election, client) = (parse(quorum), parse(election), client.map(parse));
            ServerLine { quorum, election, role: ServerRole::Participant, client }
        };
        let observer = ServerLine { role: ServerRole::Observer, ..line("h:1", "h:2", Some("0.0.0.0:3")) };
        let table = [
            ("zoo1:2888:3888", line("zoo1:2888", "zoo1:3888", None)),
            ("zoo1:2888:3888:participant", line("zoo1:2888", "zoo1:3888", None)),
            (
                "10.0.0.1:2888:3888:PARTICIPANT;2181",
                line("10.0.0.1:2888", "10.0.0.1:3888", Some("0.0.0.0:2181")),
            ),
            ("h:1:2;127.0.0.1:2181", line("h:1", "h:2", Some("127.0.0.1:2181"))),
            ("h:1:2:observer;3", observer),
            ("[::1]:2888:3888;[::]:2181", line("[::1]:2888", "[::1]:3888", Some("[::]:2181"))),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<ServerLine>(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_server_line_is_refused_with_the_part_that_is_wrong() {
        let table = [
            ("zoo1", AddressError::Server("zoo1".into())),
            ("zoo1:2888", AddressError::Server("zoo1:2888".into())),
            (":2888:3888", AddressError::Server(":2888:3888".into())),
            ("zoo1:2888:70000", AddressError::Port("70000".into())),
            ("zoo1:2888:3888:learner", AddressError::Role("learner".into())),
            ("zoo1:2888:3888;client", AddressError::Port("client".into())),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<ServerLine>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn flags_name_the_server_first() {
        let dial: ById<DialLine> = "3=127.0.0.1:1,127.0.0.1:2".parse().expect("a dial line");
        assert_eq!((dial.id, dial.line.election.port), (ServerId(3), 2));
        for text in ["127.0.0.1:1,127.0.0.1:2", "0=a:1,a:2", "-1=a:1,a:2", "x=a:1,a:2"] {
            assert!(matches!(text.parse::<ById<DialLine>>(), Err(AddressError::Id(_))), "{text}");
        }
        assert!(matches!("3=a:1".parse::<ById<DialLine>>(), Err(AddressError::Dial(_))));
    }
}
