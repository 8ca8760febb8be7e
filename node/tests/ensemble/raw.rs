//! A client that shows everything that comes, in the order in which it comes: events too, which the client
//! crate has no use for.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use bytes::Bytes;
use node_wire::client::{ConnectRequest, ConnectResponse, OpCode, ReplyHeader, WatcherEvent, XID_WATCH};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{Reader, Writer};

use crate::frames::Frames;
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
    frames: Frames<TcpStream>,
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
        let mut client = Self { frames: Frames::new(stream), moving, xid: 0, events: VecDeque::new() };
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: client.moving.seen,
            timeout_ms: 30_000,
            session: client.moving.session,
            password: client.moving.password.clone(),
            read_only: None,
        };
        client.frames.send(|w| request.encode(w))?;
        let response = ConnectResponse::decode(&mut Reader::new(client.frames.next()?)).ok()?;
        assert!(response.timeout_ms > 0, "the session is over");
        client.moving.session = response.session;
        client.moving.password = response.password;
        Some(client)
    }

    /// Asks and waits for the answer: its error and the rest of it. `None` when the connection is lost.
    pub(crate) fn ask(&mut self, op: OpCode, body: impl FnOnce(&mut Writer<'_>)) -> Option<(i32, Reader)> {
        self.xid += 1;
        self.frames.request(self.xid, op, body)?;
        loop {
            let mut r = Reader::new(self.frames.next()?);
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
