//! Lists of servers, as ZooKeeper's clients write them.

use std::str::FromStr;

use bytestring::ByteString;
use node_wire::client::validate_path;

use crate::error::ServersError;

/// The port where none is said.
const PORT: u16 = 2181;

/// Servers, and the znode that the client takes for the root.
///
/// As text it is `host:port,host:port/chroot`. Ports may be left out for 2181, and so may the chroot. An
/// IPv6 address with a port stands in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerList {
    pub(crate) servers: Vec<ByteString>,
    /// Without a slash at the end; empty for the root itself.
    pub(crate) chroot: ByteString,
}

impl ServerList {
    /// Each as `host:port`.
    #[must_use]
    pub fn servers(&self) -> &[ByteString] {
        &self.servers
    }

    /// What the client takes for the root.
    #[must_use]
    pub fn chroot(&self) -> &str {
        if self.chroot.is_empty() { "/" } else { &self.chroot }
    }

    /// From servers that stand apart, each `host:port` or `host`.
    ///
    /// # Errors
    /// When there is none, or one can't be read.
    pub fn new(servers: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, ServersError> {
        let servers: Result<Vec<_>, _> =
            servers.into_iter().map(|server| read_server(server.as_ref())).collect();
        let servers = servers?;
        if servers.is_empty() {
            return Err(ServersError::Empty);
        }
        Ok(Self { servers, chroot: ByteString::new() })
    }
}

impl FromStr for ServerList {
    type Err = ServersError;

    fn from_str(text: &str) -> Result<Self, ServersError> {
        let (servers, chroot) = text.split_at(text.find('/').unwrap_or(text.len()));
        let servers = servers.split(',').map(str::trim).filter(|server| !server.is_empty());
        let mut list = Self::new(servers)?;
        if !matches!(chroot, "" | "/") {
            validate_path(chroot)
                .map_err(|source| ServersError::Chroot { path: chroot.to_owned(), source })?;
            list.chroot = chroot.into();
        }
        Ok(list)
    }
}

impl TryFrom<&str> for ServerList {
    type Error = ServersError;

    fn try_from(text: &str) -> Result<Self, ServersError> {
        text.parse()
    }
}

impl TryFrom<String> for ServerList {
    type Error = ServersError;

    fn try_from(text: String) -> Result<Self, ServersError> {
        text.parse()
    }
}

impl TryFrom<&String> for ServerList {
    type Error = ServersError;

    fn try_from(text: &String) -> Result<Self, ServersError> {
        text.parse()
    }
}

impl TryFrom<Vec<String>> for ServerList {
    type Error = ServersError;

    fn try_from(servers: Vec<String>) -> Result<Self, ServersError> {
        Self::new(servers)
    }
}

impl From<std::net::SocketAddr> for ServerList {
    fn from(server: std::net::SocketAddr) -> Self {
        Self { servers: vec![server.to_string().into()], chroot: ByteString::new() }
    }
}

fn read_server(text: &str) -> Result<ByteString, ServersError> {
    let wrong = || ServersError::Server(text.to_owned());
    if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or_else(wrong)?;
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None if port.is_empty() => PORT,
            None => return Err(wrong()),
        };
        let address: std::net::Ipv6Addr = address.parse().map_err(|_| wrong())?;
        return Ok(format!("[{address}]:{port}").into());
    }
    let (host, port) = match text.split_once(':') {
        // An IPv6 address without brackets, and so without a port.
        Some(_) if text.parse::<std::net::Ipv6Addr>().is_ok() => {
            return Ok(format!("[{text}]:{PORT}").into());
        }
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
        None => (text, PORT),
    };
    let is_host = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || "[]:/,".contains(c));
    if is_host { Ok(format!("{host}:{port}").into()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_ports_and_a_chroot_or_neither() {
        let list: ServerList = "a:1,b, [::1]:3,::2/some/where".parse().expect("a list");
        assert_eq!(list.servers(), ["a:1", "b:2181", "[::1]:3", "[::2]:2181"]);
        assert_eq!(list.chroot(), "/some/where");
        for text in ["a", "a/"] {
            assert_eq!(text.parse::<ServerList>().expect("a list").chroot(), "/");
        }
        assert_eq!(ServerList::try_from(vec!["a:1".to_owned()]).expect("a list").servers(), ["a:1"]);
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_reason() {
        for text in ["", ",", "/a"] {
            assert_eq!(text.parse::<ServerList>(), Err(ServersError::Empty), "{text:?}");
        }
        for text in ["a:b", "a:99999", ":1", "[::1]x", "[a]:1", "a b:1"] {
            assert_eq!(text.parse::<ServerList>(), Err(ServersError::Server(text.into())), "{text:?}");
        }
        let error = "a:1/b/".parse::<ServerList>().expect_err("no path");
        assert!(matches!(error, ServersError::Chroot { .. }), "{error:?}");
    }
}
