//! Sockets: listening, and the options that decide how soon a dead connection is noticed.

use std::cell::Cell;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::Context;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::TcpStream;

use crate::address::{HostPort, UNSPECIFIED};
use crate::config::NodeConfig;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// How long a listener rests when the system has no more descriptors to give.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A connection between members that carries nothing is probed this often: the kernel knows seconds only.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// How long a name on which to listen may be without an address when the member starts.
const NAME_PATIENCE: Duration = Duration::from_secs(60);

/// Between two lines about the same thing.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Pause before such a name is looked up again.
const NAME_PAUSE: Duration = Duration::from_millis(100);

/// The sockets on which a member listens, bound before anything else is touched.
#[derive(Debug)]
pub struct Listeners {
    /// For clients.
    pub client: std::net::TcpListener,
    /// For clients with TLS, where they have a port of their own.
    pub secure: Option<std::net::TcpListener>,
    /// For learners and for votes; an ensemble of one has neither.
    pub peers: Option<PeerListeners>,
    /// For the admin server, where there is one.
    pub admin: Option<std::net::TcpListener>,
    /// For metrics, where they are served.
    pub metrics: Option<std::net::TcpListener>,
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
    /// When one is taken or the address is not ours; [`Nameless`] when a name has no address.
    pub fn bind(config: &NodeConfig) -> anyhow::Result<Self> {
        let client = listen_with(&config.client_addr, "clients", config.limits.backlog)?;
        let secure = config.security.secure_addr.as_ref();
        let secure = secure
            .map(|address| listen_with(address, "clients with TLS", config.limits.backlog))
            .transpose()?;
        let where_for_peers = |address: &HostPort| match config.listen_on_all {
            true => HostPort::new(UNSPECIFIED, address.port),
            false => address.clone(),
        };
        let peers = match config.servers.get(&config.id) {
            None => None,
            Some(own) => Some(PeerListeners {
                quorum: listen(&where_for_peers(&own.quorum), "learners")?,
                election: listen(&where_for_peers(&own.election), "votes")?,
            }),
        };
        let monitoring = &config.monitoring;
        let admin = monitoring.admin.as_ref().map(|admin| listen(&admin.address, "the admin server"));
        let metrics = monitoring.metrics.as_ref().map(|address| listen(address, "metrics"));
        Ok(Self { client, secure, peers, admin: admin.transpose()?, metrics: metrics.transpose()? })
    }

    /// The same, but a name of our own that has no address yet is waited for: where a service gives names to
    /// members that run, a member can be faster than its name. Nothing runs yet that this could hold up.
    ///
    /// # Errors
    /// As for [`Listeners::bind`], and when the name has none after a minute.
    pub(crate) fn bind_when_named(config: &NodeConfig) -> anyhow::Result<Self> {
        let patience = Instant::now() + NAME_PATIENCE;
        let mut told = false;
        loop {
            match Self::bind(config) {
                Err(error) if error.is::<Nameless>() && Instant::now() < patience => {
                    if !told {
                        tracing::warn!("{error:#}; trying again for {} s", NAME_PATIENCE.as_secs());
                        told = true;
                    }
                    std::thread::sleep(NAME_PAUSE);
                }
                result => return result,
            }
        }
    }
}

/// A name on which to listen has no address.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to listen for {whom} on {address}: the name has no address ({reason}); correct it or the name \
        service"
)]
pub struct Nameless {
    whom: &'static str,
    address: HostPort,
    reason: io::Error,
}

fn listen(address: &HostPort, whom: &'static str) -> anyhow::Result<std::net::TcpListener> {
    listen_with(address, whom, BACKLOG)
}

pub(crate) fn listen_with(
    address: &HostPort,
    whom: &'static str,
    backlog: i32,
) -> anyhow::Result<std::net::TcpListener> {
    let resolved = (address.host.as_str(), address.port).to_socket_addrs().map_err(|reason| Nameless {
        whom,
        address: address.clone(),
        reason,
    })?;
    try_listen(resolved, backlog).map_err(|error| match error.kind() {
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

fn try_listen(
    addresses: impl Iterator<Item = SocketAddr>,
    backlog: i32,
) -> io::Result<std::net::TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for resolved in addresses {
        match listen_at(resolved, backlog) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Every interface is those of both families, as in Java: `localhost` is `::1` to many a client. Where the
/// kernel has no IPv6, it is those of IPv4.
fn listen_at(address: SocketAddr, backlog: i32) -> io::Result<std::net::TcpListener> {
    let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port()));
    if address.ip().is_unspecified()
        && address.is_ipv4()
        && let Ok(listener) = bind(everywhere, backlog)
    {
        return Ok(listener);
    }
    bind(address, backlog)
}

fn bind(address: SocketAddr, backlog: i32) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.ip().is_unspecified() && address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A member that restarts must not wait for old connections to leave TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// The next connection, and where it comes from: an address of IPv4 as such, whichever way it came.
pub(crate) async fn accept(listener: &tokio::net::TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, from) = listener.accept().await?;
    Ok((stream, SocketAddr::new(from.ip().to_canonical(), from.port())))
}

/// Logs something once a second at most, however often it happens: a flood of connections must not become a
/// flood of lines.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    said: Cell<Option<Instant>>,
    kept: Cell<u64>,
}

impl Seldom {
    /// How often it happened unsaid since it was said last, when it may be said again.
    pub(crate) fn say(&self) -> Option<u64> {
        let now = Instant::now();
        if self.said.get().is_some_and(|said| now - said < SAY_EVERY) {
            self.kept.set(self.kept.get() + 1);
            return None;
        }
        self.said.set(Some(now));
        Some(self.kept.take())
    }
}

/// Hands a bound listener to the runtime.
pub(crate) fn adopt(listener: std::net::TcpListener) -> anyhow::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true).context("failed to set up a listening socket")?;
    tokio::net::TcpListener::from_std(listener).context("failed to register a listening socket")
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

/// Lets the kernel find out that a client's host is gone. Where it can't be set, the session's time-out does.
pub(crate) fn keep_client_alive(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_keepalive(true);
}

/// The same where silence ends a connection much earlier: it need not be the kernel that notices, and must
/// not be while the other end works on something long with its window shut.
pub(crate) fn patient_user_timeout(peer_timeout: Duration, step_limit: Duration) -> Duration {
    user_timeout(peer_timeout) + step_limit
}

/// How long bytes to a peer may stay unacknowledged. Twice the peer time-out: the kernel's first
/// retransmission comes after 200 ms, and one lost packet must not cost a connection.
pub(crate) fn user_timeout(peer_timeout: Duration) -> Duration {
    peer_timeout * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_said_seldom() {
        let seldom = Seldom::default();
        assert_eq!(seldom.say(), Some(0));
        assert_eq!((seldom.say(), seldom.say()), (None, None));
        seldom.said.set(Instant::now().checked_sub(SAY_EVERY));
        assert_eq!(seldom.say(), Some(2));
    }

    #[tokio::test]
    async fn every_interface_is_those_of_both_families() {
        let listener = listen(&HostPort::new(UNSPECIFIED, 0), "anybody").expect("a free port");
        let listener = adopt(listener).expect("a runtime");
        let port = listener.local_addr().expect("bound").port();
        // A machine without IPv6 is served by IPv4.
        let reached = ["127.0.0.1", "::1"].map(|host| std::net::TcpStream::connect((host, port)));
        assert!(reached[0].is_ok(), "{reached:?}");
        let has_v6 = std::net::TcpListener::bind("[::1]:0").is_ok();
        assert_eq!(reached[1].is_ok(), has_v6, "{reached:?}");
        for (own, reached) in
            ["127.0.0.1", "::1"].into_iter().zip(&reached).filter(|(_, reached)| reached.is_ok())
        {
            let (_, from) = accept(&listener).await.expect("a connection");
            assert_eq!(from.ip().to_string(), own, "{reached:?}");
        }
    }

    #[test]
    fn a_name_without_an_address_is_told_apart_from_an_address_that_is_not_ours() {
        // No label of a name may be as long as this, so nobody is asked.
        let mut config = crate::testing::config(1, &[]);
        config.client_addr = HostPort::new("n".repeat(64), 0);
        let error = Listeners::bind(&config).expect_err("no such name");
        assert!(error.is::<Nameless>(), "{error}");
        assert!(error.to_string().contains("the name has no address"), "{error}");
        // Set aside for documentation.
        config.client_addr = HostPort::new("192.0.2.1", 0);
        let error = Listeners::bind(&config).expect_err("not ours");
        assert!(!error.is::<Nameless>(), "{error}");
    }
}
