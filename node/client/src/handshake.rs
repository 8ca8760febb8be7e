//! The first message in each direction.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_wire::client::{ConnectRequest, ConnectResponse, put_frame, take_frame};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Reader;

use crate::error::ConnectError;
use crate::stream::Stream;

/// A connect response is 36 bytes and a password, and a token of SASL at most 4096: nobody needs more.
pub(crate) const MAX_FIRST_FRAME: usize = 8192;

/// The length of a session's password; zeros stand for none.
const PASSWORD_LENGTH: usize = 16;

/// A wish for a session: for a new one, or for one that exists.
pub(crate) fn request(
    resume: Option<(SessionId, Bytes)>,
    last_zxid_seen: Zxid,
    timeout: Duration,
    read_only: bool,
) -> ConnectRequest {
    let none = || (SessionId::NONE, Bytes::from_static(&[0; PASSWORD_LENGTH]));
    let (session, password) = resume.unwrap_or_else(none);
    ConnectRequest {
        protocol_version: 0,
        last_zxid_seen,
        timeout_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
        session,
        password,
        read_only: Some(read_only),
    }
}

/// Sends the wish and waits for the answer. What came behind it is in `received`.
pub(crate) async fn greet(
    stream: &mut Stream,
    request: &ConnectRequest,
    received: &mut BytesMut,
) -> Result<ConnectResponse, ConnectError> {
    let mut sending = BytesMut::new();
    put_frame(&mut sending, |w| request.encode(w));
    stream.send(&mut sending).await?;
    let frame = next_frame(stream, received).await?;
    ConnectResponse::decode(&mut Reader::new(frame)).map_err(ConnectError::Malformed)
}

/// The next frame, whole.
pub(crate) async fn next_frame(stream: &mut Stream, received: &mut BytesMut) -> Result<Bytes, ConnectError> {
    loop {
        let frame = take_frame(received, MAX_FIRST_FRAME).map_err(ConnectError::Malformed)?;
        if let Some(frame) = frame {
            return Ok(frame);
        }
        if stream.read(received).await? == 0 {
            return Err(ConnectError::NotServing);
        }
    }
}
