//! Frames of the client protocol over anything that carries bytes, for tests that look at what a client
//! hides.

use std::io::{Read, Write};

use bytes::{Bytes, BytesMut};
use node_wire::client::{OpCode, Request, put_frame, take_frame};
use node_wire::jute::Writer;

/// More than any answer takes, and less than the first bytes of TLS read as a length.
const LARGEST: usize = 64 << 20;

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Frames<S> {
    stream: S,
    received: BytesMut,
}

impl<S: Read + Write> Frames<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, received: BytesMut::new() }
    }

    /// `None` when the connection is lost.
    pub(crate) fn send(&mut self, body: impl FnOnce(&mut Writer<'_>)) -> Option<()> {
        let mut buffer = BytesMut::new();
        put_frame(&mut buffer, body);
        self.stream.write_all(&buffer).and_then(|()| self.stream.flush()).ok()
    }

    /// A request, whose body is written by `body`.
    pub(crate) fn request(&mut self, xid: i32, op: OpCode, body: impl FnOnce(&mut Writer<'_>)) -> Option<()> {
        let mut payload = BytesMut::new();
        body(&mut Writer::new(&mut payload));
        let request = Request { xid, op: op.code(), body: payload.freeze() };
        self.send(|w| request.encode(w))
    }

    /// The next frame. `None` when the connection ends; what is no frame is the end too: an alert of TLS,
    /// say, where this side has none.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(frame) = take_frame(&mut self.received, LARGEST).ok()? {
                return Some(frame);
            }
            match self.stream.read(&mut chunk).ok()? {
                0 => return None,
                count => self.received.extend_from_slice(&chunk[..count]),
            }
        }
    }
}
