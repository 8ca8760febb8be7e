//! A client that shows everything that comes, in the order in which it comes: events too, which the client crate has
//! no use for.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use node_wire::client::{
    ConnectRequest, ConnectResponse, OpCode, ReplyHeader, Request, WatcherEvent, XID_WATCH, put_frame,
    take_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::limits::MAX_FRAME;
use node_wire::jute::{Reader, Writer};

use crate::members::PATIENCE;

/// A session, as it moves.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    pub(crate) session: SessionId,
    pub(crate) password: Bytes,
    pub(crate) seen: Zxid,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct RawClient {
    stream: TcpStream,
    received: BytesMut,
    pub(crate) moving: Moving,
    xid: i32,
    /// The events that came so far.
    pub(crate) events: VecDeque<WatcherEvent>,
}

impl RawClient {
    /// Connects until a member serves, with a session of its own or an older one.
    pub(crate) fn connect(addr: SocketAddr, older: Option<&Moving>) -> Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(client) = Self::try_connect(addr, older) {
                return client;
            }
            assert!(Instant::now() < deadline, "{addr} does not serve");
            std::thread::yield_now();
        }
    }

    /// The same once. `None` when the member does not serve.
    pub(crate) fn try_connect(addr: SocketAddr, older: Option<&Moving>) -> Option<Self> {
        let stream = TcpStream::connect(addr).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let moving = older.cloned().unwrap_or(Moving {
            session: SessionId::NONE,
            password: Bytes::from_static(&[0; 16]),
            seen: Zxid::ZERO,
        });
        let mut client = Self { stream, received: BytesMut::new(), moving, xid: 0, events: VecDeque::new() };
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: client.moving.seen,
            timeout_ms: 30_000,
            session: client.moving.session,
            password: client.moving.password.clone(),
            read_only: None,
        };
        client.send(|w| request.encode(w))?;
        let response = ConnectResponse::decode(&mut Reader::new(client.frame()?)).ok()?;
        assert!(response.timeout_ms > 0, "the session is over");
        client.moving.session = response.session;
        client.moving.password = response.password;
        Some(client)
    }

    fn send(&mut self, body: impl FnOnce(&mut Writer<'_>)) -> Option<()> {
        let mut buffer = BytesMut::new();
        put_frame(&mut buffer, body);
        self.stream.write_all(&buffer).ok()
    }

    fn frame(&mut self) -> Option<Bytes> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(frame) = take_frame(&mut self.received, MAX_FRAME).expect("a frame") {
                return Some(frame);
            }
            match self.stream.read(&mut chunk).ok()? {
                0 => return None,
                count => self.received.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// Asks and waits for the answer: its error and the rest of it. `None` when the connection is lost.
    pub(crate) fn ask(&mut self, op: OpCode, body: impl FnOnce(&mut Writer<'_>)) -> Option<(i32, Reader)> {
        self.xid += 1;
        let mut payload = BytesMut::new();
        body(&mut Writer::new(&mut payload));
        let request = Request { xid: self.xid, op: op.code(), body: payload.freeze() };
        self.send(|w| request.encode(w))?;
        loop {
            let mut r = Reader::new(self.frame()?);
            let header = ReplyHeader::decode(&mut r).expect("a header");
            if header.xid == XID_WATCH {
                self.events.push_back(WatcherEvent::decode(&mut r).expect("an event"));
                continue;
            }
            assert_eq!(header.xid, self.xid, "replies come in order");
            self.moving.seen = self.moving.seen.max(header.zxid);
            return Some((header.err, r));
        }
    }
}
