//! From an address to a session.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use node_wire::client::ConnectResponse;
use node_wire::ids::Zxid;
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::client::Client;
use crate::error::ConnectError;
use crate::handshake::{greet, request};
use crate::pipeline::{Driver, Pipeline};
use crate::session::{ConnectOptions, Session};
use crate::stream::Stream;

/// Dials a member and opens a session there, or resumes the one in `options`.
///
/// # Errors
/// See [`ConnectError`]. Nothing is tried twice.
pub async fn connect(addr: impl ToSocketAddrs, options: ConnectOptions) -> Result<Client, ConnectError> {
    let deadline = options.deadline;
    match tokio::time::timeout(deadline, shake_hands(addr, options)).await {
        Ok(result) => result,
        Err(_) => Err(ConnectError::TimedOut),
    }
}

async fn shake_hands(addr: impl ToSocketAddrs, options: ConnectOptions) -> Result<Client, ConnectError> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let mut stream = Stream::Plain(stream);
    let last_zxid_seen = options.session.as_ref().map_or(Zxid::ZERO, |session| session.last_zxid_seen);
    let resume = options.session.map(|session| (session.id, session.password));
    let request = request(resume, last_zxid_seen, options.timeout, false);
    let mut received = BytesMut::new();
    let response = greet(&mut stream, &request, &mut received).await?;
    let session = session(response, last_zxid_seen)?;
    Ok(start(stream, received, session, options.max_outstanding))
}

fn session(response: ConnectResponse, last_zxid_seen: Zxid) -> Result<Session, ConnectError> {
    match u64::try_from(response.timeout_ms) {
        Ok(timeout_ms) if timeout_ms > 0 => Ok(Session {
            id: response.session,
            password: response.password,
            timeout: Duration::from_millis(timeout_ms),
            last_zxid_seen,
        }),
        _ => Err(ConnectError::Expired),
    }
}

fn start(stream: Stream, received: BytesMut, session: Session, max_outstanding: usize) -> Client {
    let pipeline = Arc::new(Pipeline::new(max_outstanding, session.last_zxid_seen));
    let timeout = session.timeout;
    let driver = Driver { pipeline: Arc::clone(&pipeline), stream, received, timeout };
    tokio::spawn(driver.run());
    Client::new(pipeline, session)
}
