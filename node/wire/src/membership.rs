//! Who is in the ensemble: the text that votes, NEWLEADER, `/zookeeper/config` and dynamic configuration
//! files share.
//!
//! ```text
//! server.1=zoo1:2888:3888:participant;0.0.0.0:2181
//! server.4=zoo4:2888:3888:observer;0.0.0.0:2181
//! version=100000003
//! ```
//!
//! The version is the zxid of the transaction that made it so, in hexadecimal; 0 stands for what a member was
//! started with, and the lower half is 0 where an epoch's leader gave the first version. Of two memberships
//! the one with the larger version is the later one.
//!
//! The text is what Java reads as properties: comments and empty lines are skipped, keys and values trimmed.
//! Groups and weights (hierarchical quorums) are refused by name: to count them as a plain majority would be
//! to lose data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::ids::{ServerId, Zxid};

/// Members of an ensemble at most; more stand in no text that anybody wrote on purpose.
pub const MAX_SERVERS: usize = 1024;

/// Every interface, as ZooKeeper listens when only a port is given.
pub const UNSPECIFIED: &str = "0.0.0.0";

/// Why an address or a server's line was refused: a fragment that says what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerLineError {
    /// Not `HOST:PORT`.
    #[error("`{0}` is not HOST:PORT (write an IPv6 host in brackets)")]
    HostPort(String),
    /// Not a port number.
    #[error("`{0}` is not a port number")]
    Port(String),
    /// Not a server line.
    #[error("`{0}` is not HOST:QUORUMPORT:ELECTIONPORT[:participant|:observer][;[HOST:]CLIENTPORT]")]
    Server(String),
    /// No role of a server.
    #[error("`{0}` is not a role of a server: it is a participant or an observer")]
    Role(String),
}

/// Why a text is no membership.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// Neither `server.N=...` nor `version=...`.
    #[error("`{0}` is neither a server line nor a version")]
    Line(String),
    /// Not the number of a server.
    #[error("`{0}` does not name a server by a number, 0 or more")]
    Id(String),
    /// A server's line can't be read.
    #[error("the line of server {id} can't be read: {source}")]
    Server {
        /// Whose.
        id: ServerId,
        /// What is wrong with it.
        source: ServerLineError,
    },
    /// A server is named twice.
    #[error("server {0} stands there twice")]
    Twice(ServerId),
    /// Not a hexadecimal number.
    #[error("`{0}` is not a version in hexadecimal")]
    Version(String),
    /// Groups and weights.
    #[error("hierarchical quorums ({0}) are not supported: leave groups and weights out")]
    Hierarchical(String),
    /// More servers than anybody has.
    #[error("more than {MAX_SERVERS} servers")]
    TooMany,
    /// Two ports where one is needed twice.
    #[error("{address} twice, for server {first} and for server {second}")]
    Address {
        /// Which.
        address: HostPort,
        /// Whose it is.
        first: ServerId,
        /// Who wants it too.
        second: ServerId,
    },
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
    type Err = ServerLineError;

    fn from_str(text: &str) -> Result<Self, ServerLineError> {
        let bad = || ServerLineError::HostPort(text.to_owned());
        let (host, rest) = split_host(text).ok_or_else(bad)?;
        if rest.contains(':') {
            return Err(bad());
        }
        Ok(Self::new(host, port(rest)?))
    }
}

/// Whether a server has a vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ServerRole {
    /// It votes, and what is committed is on the disks of more than half of its kind.
    #[default]
    Participant,
    /// It follows without a vote.
    Observer,
}

impl ServerRole {
    /// As it stands in a server's line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Participant => "participant",
            Self::Observer => "observer",
        }
    }
}

/// What the ensemble's configuration says about one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    type Err = ServerLineError;

    /// The value of ZooKeeper's `server.N` key.
    fn from_str(text: &str) -> Result<Self, ServerLineError> {
        let bad = || ServerLineError::Server(text.to_owned());
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
            Some(role) => return Err(ServerLineError::Role(role.to_owned())),
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

impl fmt::Display for ServerLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quorum, election, role, client } = self;
        write!(f, "{quorum}:{}:{}", election.port, role.name())?;
        match client {
            Some(client) => write!(f, ";{client}"),
            None => Ok(()),
        }
    }
}

/// A server's number. It crosses the wire as a signed long, and -1 stands for nobody. ZooKeeper's
/// documentation begins with 1, and its code takes 0, from which StatefulSets count.
#[must_use]
pub fn server_id(text: &str) -> Option<ServerId> {
    let id: i64 = text.trim().parse().ok()?;
    u64::try_from(id).ok().map(ServerId)
}

/// Splits `HOST:REST`, where an IPv6 host stands in brackets.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once("]:")?,
        None => text.split_once(':')?,
    };
    (!host.is_empty()).then_some((host, rest))
}

fn port(text: &str) -> Result<u16, ServerLineError> {
    text.trim().parse().map_err(|_| ServerLineError::Port(text.to_owned()))
}

/// The members of an ensemble at one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Membership {
    /// Who, and where.
    pub servers: BTreeMap<ServerId, ServerLine>,
    /// Since which transaction.
    pub version: Zxid,
}

impl Membership {
    /// Those that vote.
    #[must_use]
    pub fn voters(&self) -> BTreeSet<ServerId> {
        self.with_role(ServerRole::Participant)
    }

    /// Those that follow without a vote.
    #[must_use]
    pub fn observers(&self) -> BTreeSet<ServerId> {
        self.with_role(ServerRole::Observer)
    }

    /// What a server is, if it is in.
    #[must_use]
    pub fn role(&self, server: ServerId) -> Option<ServerRole> {
        self.servers.get(&server).map(|line| line.role)
    }

    fn with_role(&self, role: ServerRole) -> BTreeSet<ServerId> {
        self.servers.iter().filter(|(_, line)| line.role == role).map(|(id, _)| *id).collect()
    }

    /// The text, as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        Bytes::from(self.to_string())
    }

    /// Reads a text that came from elsewhere.
    ///
    /// # Errors
    /// When it is no membership.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MembershipError> {
        let text = std::str::from_utf8(bytes);
        text.map_err(|_| MembershipError::Line(String::from_utf8_lossy(bytes).into_owned()))?.parse()
    }

    /// Adds a line of the text.
    ///
    /// # Errors
    /// When it is none.
    pub fn add_line(&mut self, line: &str) -> Result<(), MembershipError> {
        let bad = || MembershipError::Line(line.to_owned());
        let (key, value) = line.split_once('=').ok_or_else(bad)?;
        let (key, value) = (key.trim(), value.trim());
        if key == "version" {
            let version =
                u64::from_str_radix(value, 16).ok().filter(|version| i64::try_from(*version).is_ok());
            self.version = Zxid(version.ok_or_else(|| MembershipError::Version(value.to_owned()))?);
            return Ok(());
        }
        if key.starts_with("group") || key.starts_with("weight") {
            return Err(MembershipError::Hierarchical(key.to_owned()));
        }
        let id = key.strip_prefix("server.").ok_or_else(bad)?;
        let id = server_id(id).ok_or_else(|| MembershipError::Id(key.to_owned()))?;
        let server = value.parse().map_err(|source| MembershipError::Server { id, source })?;
        if self.servers.len() >= MAX_SERVERS {
            return Err(MembershipError::TooMany);
        }
        match self.servers.insert(id, server) {
            None => Ok(()),
            Some(_) => Err(MembershipError::Twice(id)),
        }
    }

    /// Each port of a member belongs to it alone.
    ///
    /// # Errors
    /// When two want the same.
    pub fn check_addresses(&self) -> Result<(), MembershipError> {
        let mut seen: BTreeMap<&HostPort, ServerId> = BTreeMap::new();
        for (&id, line) in &self.servers {
            let client = line.client.iter().filter(|client| !matches!(&*client.host, "0.0.0.0" | "::"));
            for address in [&line.quorum, &line.election].into_iter().chain(client) {
                if let Some(first) = seen.insert(address, id) {
                    return Err(MembershipError::Address { address: address.clone(), first, second: id });
                }
            }
        }
        Ok(())
    }
}

impl FromStr for Membership {
    type Err = MembershipError;

    fn from_str(text: &str) -> Result<Self, MembershipError> {
        let mut membership = Self::default();
        for line in text.lines() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with(['#', '!']) {
                membership.add_line(line)?;
            }
        }
        Ok(membership)
    }
}

impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, line) in &self.servers {
            writeln!(f, "server.{id}={line}")?;
        }
        write!(f, "version={:x}", self.version.0)
    }
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
            ("zoo1", ServerLineError::Server("zoo1".into())),
            ("zoo1:2888", ServerLineError::Server("zoo1:2888".into())),
            (":2888:3888", ServerLineError::Server(":2888:3888".into())),
            ("zoo1:2888:70000", ServerLineError::Port("70000".into())),
            ("zoo1:2888:3888:learner", ServerLineError::Role("learner".into())),
            ("zoo1:2888:3888;client", ServerLineError::Port("client".into())),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<ServerLine>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_membership_is_written_as_clients_read_it_and_read_again() {
        let text = "server.1=zoo1:2888:3888:participant\n\
                    server.2=[::1]:2888:3888:participant;0.0.0.0:2181\n\
                    server.3=zoo3:2888:3888:observer\n\
                    version=100000003";
        let membership: Membership = text.parse().expect("a membership");
        assert_eq!(membership.version, Zxid(0x1_0000_0003));
        assert_eq!(membership.voters(), [ServerId(1), ServerId(2)].into());
        assert_eq!(membership.observers(), [ServerId(3)].into());
        assert_eq!(membership.to_string(), text);
        let spaced = "# by hand\n\n server.1 = zoo1:2888:3888 \r\nversion=0\n";
        assert_eq!(spaced.parse::<Membership>().map(|read| read.servers.len()), Ok(1));
    }

    #[test]
    fn what_is_no_membership_is_refused() {
        let table = [
            ("tickTime=2000", MembershipError::Line("tickTime=2000".into())),
            ("server", MembershipError::Line("server".into())),
            ("server.x=a:1:2", MembershipError::Id("server.x".into())),
            ("server.1=a:1:2\nserver.1=a:3:4", MembershipError::Twice(ServerId(1))),
            ("version=x", MembershipError::Version("x".into())),
            ("version=ffffffffffffffff", MembershipError::Version("ffffffffffffffff".into())),
            ("group.1=1:2", MembershipError::Hierarchical("group.1".into())),
        ];
        for (text, expected) in table {
            assert_eq!(text.parse::<Membership>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn two_members_never_share_a_port() {
        let shared: Membership = "server.1=h:1:2;9\nserver.2=h:3:2;9".parse().expect("a membership");
        assert!(matches!(shared.check_addresses(), Err(MembershipError::Address { .. })));
        let apart: Membership = "server.1=h:1:2;9\nserver.2=h:3:4;9".parse().expect("a membership");
        assert_eq!(apart.check_addresses(), Ok(()));
    }
}
