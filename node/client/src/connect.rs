//! From an address to a session.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_wire::client::{ConnectRequest, ConnectResponse, put_frame, take_frame};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Reader;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};

use crate::client::Client;
use crate::error::ConnectError;
use crate::pipeline::{Driver, Pipeline};
use crate::session::{ConnectOptions, Session};

/// A connect response is 36 bytes and a password; nobody needs more than this.
const MAX_CONNECT_RESPONSE: usize = 4096;

/// The length of a session's password; zeros stand for none.
const PASSWORD_LENGTH: usize = 16;

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
    let mut stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let mut sending = BytesMut::new();
    let request = request(&options);
    put_frame(&mut sending, |w| request.encode(w));
    stream.write_all(&sending).await?;

    let mut received = BytesMut::new();
    let frame = loop {
        let frame = take_frame(&mut received, MAX_CONNECT_RESPONSE).map_err(ConnectError::Malformed)?;
        if let Some(frame) = frame {
            break frame;
        }
        if stream.read_buf(&mut received).await? == 0 {
            return Err(ConnectError::NotServing);
        }
    };
    let session = session(frame, request.last_zxid_seen)?;
    Ok(start(stream, received, session, options.max_outstanding))
}

fn request(options: &ConnectOptions) -> ConnectRequest {
    let (session, password, last_zxid_seen) = match &options.session {
        Some(session) => (session.id, session.password.clone(), session.last_zxid_seen),
        None => (SessionId::NONE, Bytes::from_static(&[0; PASSWORD_LENGTH]), Zxid::ZERO),
    };
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen,
        timeout_ms: i32::try_from(options.timeout.as_millis()).unwrap_or(i32::MAX),
        session,
        password,
        read_only: Some(false),
    }
}

fn session(frame: Bytes, last_zxid_seen: Zxid) -> Result<Session, ConnectError> {
    let response = ConnectResponse::decode(&mut Reader::new(frame)).map_err(ConnectError::Malformed)?;
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

fn start(stream: TcpStream, received: BytesMut, session: Session, max_outstanding: usize) -> Client {
    let pipeline = Arc::new(Pipeline::new(max_outstanding, session.last_zxid_seen));
    let timeout = session.timeout;
    let (reader, writer) = stream.into_split();
    let driver = Driver { pipeline: Arc::clone(&pipeline), reader, writer, received, timeout };
    tokio::spawn(driver.run());
    Client::new(pipeline, session)
}
