//! A virtual client: its session, its connection, what it waits for, and the frames in between.
//!
//! The same rules as for a real one: requests are pipelined and answered in order, nothing is sent twice, and
//! a session goes on elsewhere with its id and password. Everything passes through the codecs of the client
//! port. When a client acts, and what its answers mean, is decided elsewhere.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_wire::client::{
    Acl, ConnectRequest, ConnectResponse, CreateRequest, DeleteRequest, OpCode, PathWatch, ReplyHeader,
    Request, SetDataRequest, SyncRequest, XID_PING, put_frame, take_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::limits::MAX_FRAME;
use node_wire::jute::{Reader, Writer};
use workloads::Op;
use zookeeper_mapping::{Action, request};

use crate::network::HostIndex;
use crate::prober::Prober;
use crate::watcher::{Ask, Watcher};
use harness_world::dice::Dice;
use harness_world::pipe::Pipe;
use harness_world::time::Time;

/// A client's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Connect somewhere.
    Connect,
    /// Do the next thing.
    Act,
    /// Waited long enough.
    GiveUp,
    /// Keep the session of this connection alive.
    Ping { conn: usize },
    /// Ask for the rest of a batch on this connection.
    Rest { conn: usize },
}

/// What a reply will be the answer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The first half of a look.
    Sync,
    /// The second half of a read.
    Read,
    /// The second half of a listing.
    Children,
    /// The second half of a look at a name.
    Exists,
    /// A write or a compare-and-set.
    Write,
    /// The making of a node.
    Create,
    /// The deletion of a node.
    Delete,
    /// The second half of a look whose first half was refused.
    Nothing,
    /// The end of the session, as an operation.
    Close,
    /// The end of the session, when all is over.
    Goodbye,
    /// What a watcher asks.
    Ask,
    /// What a prober asks.
    Probe,
}

/// A session, as a client remembers it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) password: Bytes,
    pub(crate) timeout_ms: i32,
    /// The newest zxid that any reply showed.
    pub(crate) seen: Zxid,
}

/// A client's part in a workload of the world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Which of the world's workloads.
    pub(crate) load: usize,
    /// The client's number in its history.
    pub(crate) process: u64,
}

/// The operation that a client waits for.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    /// Which of its jobs it belongs to.
    pub(crate) job: usize,
    pub(crate) op: Op,
}

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// The workloads that it takes part in. Of those behind the regular ones it does no more than to prepare
    /// them and to read them last.
    pub(crate) jobs: Vec<Job>,
    pub(crate) regular_jobs: usize,
    pub(crate) open: Option<Open>,
    /// Operations that ended well since the world was healed.
    pub(crate) served: u64,
    /// When it last asked for a connection.
    pub(crate) asked_at: Time,
    pub(crate) session: Option<Session>,
    /// When its last connection was opened its session had been the ensemble's already, not one member's
    /// alone.
    pub(crate) known: bool,
    /// The newest zxid that it knows from a session which it let go: it tells that to the next member.
    pub(crate) remembered: Zxid,
    /// Its connection, if it has one.
    pub(crate) conn: Option<usize>,
    /// True when the session is established on the connection.
    pub(crate) ready: bool,
    /// Where it is connected, or was.
    pub(crate) member: HostIndex,
    pub(crate) xid: i32,
    /// What is to be answered, in order.
    pub(crate) awaited: VecDeque<(i32, Purpose)>,
    /// Counts plans: a timer of an earlier one is void.
    pub(crate) plan: u64,
    /// True when it has said goodbye and does nothing more.
    pub(crate) gone: bool,
    /// What it usually waits between two operations.
    pub(crate) think_us: u64,
    /// What it is as a watcher.
    pub(crate) watcher: Watcher,
    /// What it is as a prober.
    pub(crate) prober: Prober,
    /// Its own chance.
    pub(crate) dice: Dice,
}

impl Client {
    /// A client that was never connected.
    pub(crate) fn new(jobs: Vec<Job>, member: HostIndex, think_us: u64, dice: Dice) -> Self {
        Self {
            regular_jobs: jobs.len(),
            jobs,
            open: None,
            served: 0,
            asked_at: Time::default(),
            session: None,
            known: false,
            remembered: Zxid::ZERO,
            conn: None,
            ready: false,
            member,
            xid: 0,
            awaited: VecDeque::new(),
            plan: 0,
            gone: false,
            think_us,
            watcher: Watcher::default(),
            prober: Prober::default(),
            dice,
        }
    }

    /// True while an operation is open.
    pub(crate) fn is_busy(&self) -> bool {
        self.open.is_some() || !self.watcher.open.is_empty() || !self.prober.open.is_empty()
    }

    fn request(&mut self, op: OpCode, purpose: Purpose, body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
        self.xid += 1;
        let mut buffer = BytesMut::new();
        body(&mut Writer::new(&mut buffer));
        self.awaited.push_back((self.xid, purpose));
        framed_request(&Request { xid: self.xid, op: op.code(), body: buffer.freeze() })
    }

    /// The frames of an operation; none for one that sends nothing.
    pub(crate) fn frames_of(&mut self, op: &Op) -> Vec<Bytes> {
        match &request(op) {
            Action::Create { path, data, mode } => {
                let create = create_request(path, data.clone(), mode.flags());
                vec![self.request(OpCode::Create, Purpose::Create, |w| create.encode(w))]
            }
            Action::SyncRead { path } => self.look(path, OpCode::GetData, Purpose::Read),
            Action::SyncChildren { path } => self.look(path, OpCode::GetChildren, Purpose::Children),
            Action::SyncExists { path } => self.look(path, OpCode::Exists, Purpose::Exists),
            Action::Write { path, data } => vec![self.set_data(path, data, -1)],
            Action::CasWrite { path, data, expect } => vec![self.set_data(path, data, *expect)],
            Action::Delete { path } => {
                let delete = DeleteRequest { path: path.as_str().into(), version: -1 };
                vec![self.request(OpCode::Delete, Purpose::Delete, |w| delete.encode(w))]
            }
            Action::Close => vec![self.request(OpCode::CloseSession, Purpose::Close, |_| {})],
            Action::Abandon => Vec::new(),
        }
    }

    fn look(&mut self, path: &str, op: OpCode, purpose: Purpose) -> Vec<Bytes> {
        let path = ByteString::from(path);
        let sync = SyncRequest { path: path.clone() };
        let read = PathWatch { path, watch: false };
        vec![
            self.request(OpCode::Sync, Purpose::Sync, |w| sync.encode(w)),
            self.request(op, purpose, |w| read.encode(w)),
        ]
    }

    fn set_data(&mut self, path: &str, data: &Bytes, version: i32) -> Bytes {
        let set = SetDataRequest { path: path.into(), data: Some(data.clone()), version };
        self.request(OpCode::SetData, Purpose::Write, |w| set.encode(w))
    }

    /// The frame of a ask.
    pub(crate) fn ask(&mut self, ask: Ask) -> Bytes {
        let seen = self.session.as_ref().map_or(Zxid::ZERO, |session| session.seen);
        let watching = self.watcher.watching.clone();
        let (op, body) = ask.request(seen, &watching);
        let frame = self.request(op, Purpose::Ask, &*body);
        drop(body);
        self.watcher.open.push_back(ask);
        frame
    }

    /// The frame of a probe.
    pub(crate) fn probe(&mut self, op: OpCode, body: &Bytes) -> Bytes {
        self.request(op, Purpose::Probe, |w| w.raw(body))
    }

    /// The frame that ends the session.
    pub(crate) fn goodbye(&mut self) -> Bytes {
        self.request(OpCode::CloseSession, Purpose::Goodbye, |_| {})
    }

    /// The frame that opens a session, or asks for the old one. A watcher may be content to read.
    /// It may ask for another time-out than it has.
    pub(crate) fn connect(&self, timeout_ms: i32, asks_ms: Option<i32>, read_only: bool) -> Bytes {
        let fresh = Session {
            id: SessionId::NONE,
            password: Bytes::from_static(&[0; 16]),
            timeout_ms,
            seen: self.remembered,
        };
        let session = self.session.as_ref().unwrap_or(&fresh);
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: session.seen,
            timeout_ms: asks_ms.unwrap_or(session.timeout_ms),
            session: session.id,
            password: session.password.clone(),
            read_only: Some(read_only),
        };
        framed(|w| request.encode(w))
    }
}

fn create_request(path: &str, data: Bytes, flags: i32) -> CreateRequest {
    CreateRequest { path: path.into(), data: Some(data), acl: vec![Acl::world_anyone()], flags }
}

fn framed(body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = BytesMut::new();
    put_frame(&mut buffer, body);
    buffer.freeze()
}

fn framed_request(request: &Request) -> Bytes {
    framed(|w| request.encode(w))
}

/// The frame that keeps a session alive.
pub(crate) fn ping() -> Bytes {
    framed_request(&Request { xid: XID_PING, op: OpCode::Ping.code(), body: Bytes::new() })
}

/// What is in a frame.
///
/// # Panics
/// When it is not one whole frame: both ends are ours.
pub(crate) fn unframed(frame: Bytes) -> Bytes {
    let mut buffer = BytesMut::from(frame);
    let body = take_frame(&mut buffer, MAX_FRAME).expect("a frame of ours is well formed");
    assert!(buffer.is_empty(), "one frame at a time");
    body.expect("a frame of ours is whole")
}

/// A member's answer to a connect request; nothing when it is no such answer.
pub(crate) fn connect_response(frame: Bytes) -> Option<ConnectResponse> {
    ConnectResponse::decode(&mut Reader::new(unframed(frame))).ok()
}

/// A member's answer to a request: its header, and the body behind it.
pub(crate) fn reply(frame: Bytes) -> (ReplyHeader, Reader) {
    let mut reader = Reader::new(unframed(frame));
    let header = ReplyHeader::decode(&mut reader).expect("a member's answer is well formed");
    (header, reader)
}

/// What travels between a client and a member.
#[derive(Clone, Debug)]
pub(crate) enum Flow {
    /// A frame.
    Frame(Bytes),
    /// The sender closed, or the connection broke.
    Fin,
}

/// A client's connection.
#[derive(Clone, Debug)]
pub(crate) struct ClientConn {
    pub(crate) client: usize,
    pub(crate) host: HostIndex,
    /// The process that accepted it.
    pub(crate) life: u64,
    /// False once the member closed it or knows of its loss.
    pub(crate) member_open: bool,
    /// False once the client closed it or knows of its loss.
    pub(crate) client_open: bool,
    /// True when the connect request was read.
    pub(crate) greeted: bool,
    pub(crate) to_member: Pipe<Flow>,
    pub(crate) to_client: Pipe<Flow>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use workloads::op::{Body, Object};

    #[test]
    fn a_read_is_a_sync_and_a_get_on_one_connection() {
        let mut client = Client::new(Vec::new(), 0, 1, Dice::new(1));
        let frames = client.frames_of(&Op::new(Object::REGISTER, 0, Body::Read));
        let ops: Vec<i32> = frames
            .into_iter()
            .map(|frame| Request::decode(unframed(frame)).expect("a request of ours").op)
            .collect();
        assert_eq!(ops, [OpCode::Sync.code(), OpCode::GetData.code()]);
        assert_eq!(client.awaited, [(1, Purpose::Sync), (2, Purpose::Read)]);
    }
}
