//! The first message in each direction.
//!
//! Both records once ended before `read_only`, and some clients still leave it out, so that it is optional in
//! both: a client that did not send it does not expect it either.

use bytes::Bytes;

use crate::ids::{SessionId, Zxid};
use crate::jute::{DecodeError, Reader, Writer};

/// A client's wish for a session, new or resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Always 0.
    pub protocol_version: i32,
    /// What the client has seen. A member that is behind it must not take the client.
    pub last_zxid_seen: Zxid,
    /// The session timeout the client wants.
    pub timeout_ms: i32,
    /// The session to resume, or [`SessionId::NONE`].
    pub session: SessionId,
    /// Proves the session; a new one comes with zeros or nothing.
    pub password: Bytes,
    /// Whether a read-only member would do; `None` when the client does not know the field.
    pub read_only: Option<bool>,
}

/// The answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectResponse {
    /// Always 0.
    pub protocol_version: i32,
    /// The session timeout that was granted. 0 means that the session is over.
    pub timeout_ms: i32,
    /// The session.
    pub session: SessionId,
    /// Proves the session when it is resumed.
    pub password: Bytes,
    /// Whether the member is read-only; `None` when the client does not know the field.
    pub read_only: Option<bool>,
}

impl ConnectRequest {
    /// Appends the record.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.int(self.protocol_version);
        w.write(&self.last_zxid_seen);
        w.int(self.timeout_ms);
        w.write(&self.session);
        w.buffer(&self.password);
        encode_read_only(self.read_only, w);
    }

    /// Reads the record from a frame of its own.
    ///
    /// # Errors
    /// When the bytes are not such a record, or not a whole one.
    pub fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            protocol_version: r.int()?,
            last_zxid_seen: r.read()?,
            timeout_ms: r.int()?,
            session: r.read()?,
            password: r.buffer()?.unwrap_or_default(),
            read_only: decode_read_only(r)?,
        })
    }
}

impl ConnectResponse {
    /// Appends the record.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.int(self.protocol_version);
        w.int(self.timeout_ms);
        w.write(&self.session);
        w.buffer(&self.password);
        encode_read_only(self.read_only, w);
    }

    /// Reads the record from a frame of its own.
    ///
    /// # Errors
    /// When the bytes are not such a record, or not a whole one.
    pub fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            protocol_version: r.int()?,
            timeout_ms: r.int()?,
            session: r.read()?,
            password: r.buffer()?.unwrap_or_default(),
            read_only: decode_read_only(r)?,
        })
    }
}

fn encode_read_only(read_only: Option<bool>, w: &mut Writer<'_>) {
    if let Some(read_only) = read_only {
        w.bool(read_only);
    }
}

fn decode_read_only(r: &mut Reader) -> Result<Option<bool>, DecodeError> {
    if r.remaining() == 0 { Ok(None) } else { r.bool().map(Some) }
}
