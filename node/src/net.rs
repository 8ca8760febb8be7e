//! Sockets: listening, dialling, and the options that decide how soon a dead connection is noticed.

use std::io;
use std::net::ToSocketAddrs;
use std::time::Duration;

use anyhow::Context;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::TcpStream;

use crate::address::HostPort;
use crate::config::NodeConfig;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// How long a listener rests when the system has no more descriptors to give.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A connection between members that carries nothing is probed this often: the kernel knows seconds only.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// The sockets on which a member listens, bound before anything else is touched.
#[derive(Debug)]
pub struct Listeners {
    /// For clients.
    pub client: std::net::TcpListener,
    /// For learners and for votes; an ensemble of one has neither.
    pub peers: Option<PeerListeners>,
}

/// The two ports that peers use.
#[derive(Debug)]
pub struct PeerListeners {
    /// For learners.
    pub quorum: std::net::TcpListener,
    /// For votes.
    pub election: std::net::TcpListener,
}

impl Listeners {
    /// Binds every port of a configuration.
    ///
    /// # Errors
    /// When one is taken or the address is not ours.
    pub fn bind(config: &NodeConfig) -> anyhow::Result<Self> {
        let client = listen(&config.client_addr, "clients")?;
        let peers = match config.servers.get(&config.id) {
            None => None,
            Some(own) => Some(PeerListeners {
                quorum: listen(&own.quorum, "learners")?,
                election: listen(&own.election, "votes")?,
            }),
        };
        Ok(Self { client, peers })
    }
}

fn listen(address: &HostPort, whom: &str) -> anyhow::Result<std::net::TcpListener> {
    try_listen(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "failed to listen for {whom} on {address}: the port is in use; stop the other process or \
             choose another port"
        ),
        io::ErrorKind::AddrNotAvailable => anyhow::anyhow!(
            "failed to listen for {whom} on {address}: this machine does not have the address; correct it"
        ),
        _ => anyhow::Error::new(error).context(format!("failed to listen for {whom} on {address}")),
    })
}

fn try_listen(address: &HostPort) -> io::Result<std::net::TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for resolved in (address.host.as_str(), address.port).to_socket_addrs()? {
        let attempt = (|| {
            let socket = Socket::new(Domain::for_address(resolved), Type::STREAM, Some(Protocol::TCP))?;
            // A member that restarts must not wait for old connections to leave TIME_WAIT.
            socket.set_reuse_address(true)?;
            socket.bind(&resolved.into())?;
            socket.listen(BACKLOG)?;
            Ok(socket.into())
        })();
        match attempt {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Hands a bound listener to the runtime.
pub(crate) fn adopt(listener: std::net::TcpListener) -> anyhow::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true).context("failed to set up a listening socket")?;
    tokio::net::TcpListener::from_std(listener).context("failed to register a listening socket")
}

/// Connects within a deadline. The kernel repeats a lost SYN only after a second, so a short deadline and a
/// new attempt find a healed network sooner than patience would.
pub(crate) async fn dial(target: &HostPort, deadline: Duration) -> io::Result<TcpStream> {
    let connect = TcpStream::connect((target.host.as_str(), target.port));
    match tokio::time::timeout(deadline, connect).await {
        Ok(result) => result,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Options of a connection between members.
///
/// With the user time-out the kernel ends a connection whose bytes are not acknowledged for so long, and one
/// whose peer keeps its window shut. Its own patience would be a quarter of an hour.
pub(crate) fn tune_peer(stream: &TcpStream, silence: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_user_timeout(Some(silence))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(PROBE_EVERY).with_interval(PROBE_EVERY))
}

/// How long bytes to a peer may stay unacknowledged. Twice the peer time-out: the kernel's first
/// retransmission comes after 200 ms, and one lost packet must not cost a connection.
pub(crate) fn user_timeout(peer_timeout: Duration) -> Duration {
    peer_timeout * 2
}
