//! A connection of an application: what it asked over it, in order, and what each answer is for.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use node_recipes::recipe::Ask;
use node_session::Moment;
use node_session::session::Credentials;
use node_wire::client::{ConnectRequest, OpCode, ReplyHeader, Request as Frame, put_frame};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Writer;

/// What an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A recipe asked this, in the candidacy of this number.
    Recipe(u64, Ask),
    /// The leader is to see the session.
    Heartbeat,
    /// Watches are left again.
    Watches,
    /// The resource is made, if it is not there.
    Ground,
    /// What somebody does to the znodes of others.
    Outrage,
    /// The session ends.
    Close,
}

/// A request that was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    xid: i32,
    pub(super) purpose: Purpose,
    /// The request, but for watches that are left again.
    pub(super) request: Option<node_session::Request>,
    /// When it was sent.
    pub(super) at: Moment,
}

/// An attempt to connect.
#[derive(Clone, Debug)]
pub(super) struct Dial {
    /// The session that is to go on.
    pub(super) resume: Option<Credentials>,
    /// The time-out to ask for.
    pub(super) timeout: Moment,
    /// When it has failed.
    pub(super) until: Moment,
    /// When the session was asked for.
    pub(super) sent: Moment,
    /// The connection, if somebody took it.
    pub(super) conn: Option<usize>,
}

impl Dial {
    /// The frame that opens a session, or asks for the old one.
    pub(super) fn frame(&self) -> Bytes {
        let none =
            || Credentials { id: SessionId::NONE, password: Bytes::from_static(&[0; 16]), seen: Zxid::ZERO };
        let Credentials { id, password, seen } = self.resume.clone().unwrap_or_else(none);
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: seen,
            timeout_ms: i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX),
            session: id,
            password,
            read_only: Some(false),
        };
        let mut buffer = BytesMut::new();
        put_frame(&mut buffer, |w| request.encode(w));
        buffer.freeze()
    }
}

/// A connection on which a session is served.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// Which of the world's.
    pub(super) conn: usize,
    /// When something was heard on it last.
    pub(super) heard: Moment,
    /// When the last ping was sent.
    pub(super) pinged: Moment,
    awaited: VecDeque<Sent>,
}

impl Connection {
    /// One that was just opened.
    pub(super) fn new(conn: usize, now: Moment) -> Self {
        Self { conn, heard: now, pinged: now, awaited: VecDeque::new() }
    }

    /// The frame of a request, which is awaited from now on.
    pub(super) fn ask(
        &mut self,
        (xid, op): (i32, OpCode),
        purpose: Purpose,
        request: Option<node_session::Request>,
        at: Moment,
        body: impl FnOnce(&mut Writer<'_>),
    ) -> Bytes {
        let mut buffer = BytesMut::new();
        body(&mut Writer::new(&mut buffer));
        self.awaited.push_back(Sent { xid, purpose, request, at });
        let frame = Frame { xid, op: op.code(), body: buffer.freeze() };
        let mut buffer = BytesMut::new();
        put_frame(&mut buffer, |w| frame.encode(w));
        buffer.freeze()
    }

    /// What an answer is for. The error is a sentence about the member's mistake.
    pub(super) fn answered(&mut self, header: ReplyHeader) -> Result<Sent, String> {
        match self.awaited.pop_front() {
            Some(sent) if sent.xid == header.xid => Ok(sent),
            Some(sent) => Err(format!("got reply {} before {}", header.xid, sent.xid)),
            None => Err(format!("got a reply {} to nothing", header.xid)),
        }
    }

    /// True while an answer is awaited for this.
    pub(super) fn awaits(&self, purpose: Purpose) -> bool {
        self.awaited.iter().any(|sent| sent.purpose == purpose)
    }

    /// It is over: what was asked and not answered, in order.
    pub(super) fn into_open(self) -> impl Iterator<Item = Sent> {
        self.awaited.into_iter()
    }
}
