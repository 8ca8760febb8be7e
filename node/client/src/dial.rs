//! From the name of a server to a connection that serves a session.

use std::time::Duration;

use bytes::BytesMut;
use bytestring::ByteString;
use node_session::{Credentials, Moment};
use node_wire::client::ConnectResponse;
use node_wire::ids::Zxid;
use tokio::net::{TcpStream, lookup_host};

use crate::error::ConnectError;
use crate::handshake::{greet, request};
use crate::sasl::Sasl;
use crate::stream::Stream;
use crate::tls::Tls;

/// No answer to a word that is asked here is longer.
const MAX_WORD: usize = 64;

/// How servers are talked to.
#[derive(Clone, Debug, Default)]
pub(crate) struct How {
    pub(crate) tls: Option<Tls>,
    pub(crate) sasl: Option<Sasl>,
}

/// What is dialled, and for what.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    /// `host:port`.
    pub(crate) server: ByteString,
    pub(crate) resume: Option<Credentials>,
    pub(crate) timeout: Duration,
    pub(crate) read_only: bool,
    /// How long it may take, the resolution of the name included.
    pub(crate) within: Duration,
    /// Which of a name's addresses to take: each dial takes another.
    pub(crate) turn: usize,
}

/// A connection that serves a session.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) stream: Stream,
    /// What came behind the connect response.
    pub(crate) received: BytesMut,
    pub(crate) response: ConnectResponse,
    pub(crate) timeout: Duration,
    /// When the session was asked for.
    pub(crate) sent: Moment,
    /// Xids that were used up.
    pub(crate) last_xid: i32,
}

/// Dials, and opens a session or goes on with one. `now` tells the time.
pub(crate) async fn dial(how: How, what: Dial, now: impl Fn() -> Moment) -> Result<Dialled, ConnectError> {
    let within = what.within;
    match tokio::time::timeout(within, open(how, what, now)).await {
        Ok(result) => result,
        Err(_) => Err(ConnectError::TimedOut),
    }
}

async fn open(how: How, what: Dial, now: impl Fn() -> Moment) -> Result<Dialled, ConnectError> {
    let mut stream = reach(how.tls.as_ref(), &what.server, what.turn).await?;
    let seen = what.resume.as_ref().map_or(Zxid::ZERO, |resume| resume.seen);
    let resume = what.resume.map(|resume| (resume.id, resume.password));
    let request = request(resume, seen, what.timeout, what.read_only);
    let mut received = BytesMut::new();
    let sent = now();
    let response = greet(&mut stream, &request, &mut received).await?;
    let timeout = match u64::try_from(response.timeout_ms) {
        Ok(timeout_ms) if timeout_ms > 0 => Duration::from_millis(timeout_ms),
        _ => return Err(ConnectError::Expired),
    };
    if response.read_only == Some(true) && !what.read_only {
        return Err(ConnectError::ReadOnly);
    }
    let last_xid = match &how.sasl {
        Some(sasl) => sasl.prove(&mut stream, &mut received).await?,
        None => 0,
    };
    Ok(Dialled { stream, received, response, timeout, sent, last_xid })
}

/// A connection to one of the addresses of a name.
async fn reach(tls: Option<&Tls>, server: &str, turn: usize) -> Result<Stream, ConnectError> {
    let addresses: Vec<_> = lookup_host(server).await?.collect();
    let Some(address) = addresses.get(turn % addresses.len().max(1)) else {
        return Err(ConnectError::Io(std::io::ErrorKind::AddrNotAvailable.into()));
    };
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match tls {
        None => Ok(Stream::Plain(stream)),
        Some(tls) => Ok(tls.seal(stream, server).await?),
    }
}

/// Whether one of these servers says that it serves with a quorum.
pub(crate) async fn is_one_writable(tls: Option<Tls>, servers: Vec<ByteString>, within: Duration) -> bool {
    for server in servers {
        let asked = tokio::time::timeout(within, is_writable(tls.as_ref(), &server));
        if matches!(asked.await, Ok(Ok(true))) {
            return true;
        }
    }
    false
}

async fn is_writable(tls: Option<&Tls>, server: &str) -> Result<bool, ConnectError> {
    let mut stream = reach(tls, server, 0).await?;
    stream.send(&mut BytesMut::from(&b"isro"[..])).await?;
    let mut answer = BytesMut::new();
    while answer.len() <= MAX_WORD && stream.read(&mut answer).await? > 0 {}
    Ok(&answer[..] == b"rw")
}
