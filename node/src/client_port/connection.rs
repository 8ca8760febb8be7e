//! One client's connection as the port sees it, and what is counted of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use node_wire::client::{EventType, OpCode, Request};
use node_wire::ids::SessionId;

use crate::outbox::Outbox;
use crate::sasl::Exchange;
use crate::view::ConnectionView;

/// A request that is not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) since: Instant,
    pub(super) op: i32,
    pub(super) xid: i32,
    /// The path that its body begins with; empty where it begins with none.
    path: Bytes,
}

impl Open {
    /// The connect request, which has neither code nor number.
    pub(super) fn connect(since: Instant) -> Self {
        Self { since, op: OpCode::CreateSession.code(), xid: -1, path: Bytes::new() }
    }

    /// A request. Of one that is about a path the path is kept, for whoever counts by namespaces.
    pub(super) fn request(since: Instant, request: &Request) -> Self {
        let is_about_a_path = matches!(
            OpCode::from_code(request.op),
            Some(
                OpCode::Exists
                    | OpCode::GetData
                    | OpCode::GetChildren
                    | OpCode::GetChildren2
                    | OpCode::Create
                    | OpCode::Create2
                    | OpCode::CreateContainer
                    | OpCode::CreateTtl
                    | OpCode::SetData
            )
        );
        let path = is_about_a_path.then(|| first_string(&request.body)).flatten().unwrap_or_default();
        Self { since, op: request.op, xid: request.xid, path }
    }

    /// The path that it was about.
    pub(super) fn path(&self) -> &str {
        std::str::from_utf8(&self.path).unwrap_or_default()
    }

    /// Bytes that this answer lets its client read, as ZooKeeper counts them; none where it is no read of a
    /// node, or was refused.
    pub(super) fn bytes_read(&self, frame: &Bytes) -> Option<usize> {
        const HEADER: usize = 4 + 16;
        const STAT: usize = 68;
        if error(frame) != Some(0) {
            return None;
        }
        let body = frame.len().saturating_sub(HEADER);
        // Each name with its length, behind their number.
        let names = |body: usize| {
            let count = int(frame, HEADER).and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
            body.saturating_sub(4 + 4 * count)
        };
        let data = match OpCode::from_code(self.op)? {
            OpCode::Exists => 0,
            OpCode::GetData => body.saturating_sub(4 + STAT),
            OpCode::GetChildren => names(body),
            OpCode::GetChildren2 => names(body.saturating_sub(STAT)),
            _ => return None,
        };
        Some(self.path.len() + data + STAT)
    }

    /// True for what is answered when its transaction is applied, and not from this member's tree.
    pub(super) fn is_update(&self) -> bool {
        OpCode::from_code(self.op).is_some_and(|op| op.class().makes_transaction())
    }
}

/// One client as the port sees it.
pub(super) struct Connection {
    pub(super) outbox: Outbox,
    /// The open requests in their order, the connect request first.
    pub(super) open: RefCell<VecDeque<Open>>,
    /// What this batch answered.
    pub(super) answered: RefCell<Vec<Open>>,
    /// The connect request was answered.
    pub(super) welcomed: Cell<bool>,
    pub(super) sasl: RefCell<Exchange>,
    remote: SocketAddr,
    established_ms: i64,
    session: Cell<SessionId>,
    timeout_ms: Cell<i32>,
    counted: RefCell<Counted>,
}

/// What `crst` forgets.
#[derive(Clone, Debug, Default)]
struct Counted {
    received: u64,
    sent: u64,
    /// The operation and the number of the last request that was answered.
    last: Option<(i32, i32)>,
    last_zxid: i64,
    last_response: Option<Instant>,
    last_latency: Duration,
    min_latency: Option<Duration>,
    max_latency: Duration,
    latency_sum: Duration,
    answered: u32,
}

impl Connection {
    pub(super) fn new(outbox: Outbox, remote: SocketAddr, established_ms: i64) -> Self {
        Self {
            outbox,
            open: RefCell::default(),
            answered: RefCell::default(),
            welcomed: Cell::new(false),
            sasl: RefCell::default(),
            remote,
            established_ms,
            session: Cell::new(SessionId::NONE),
            timeout_ms: Cell::new(0),
            counted: RefCell::default(),
        }
    }

    fn count(&self, change: impl FnOnce(&mut Counted)) {
        change(&mut self.counted.borrow_mut());
    }

    pub(super) fn received(&self) {
        self.count(|counted| counted.received += 1);
    }

    /// The answer to the connect request says which session this is.
    pub(super) fn welcome(&self, frame: &Bytes) {
        self.count(|counted| counted.sent += 1);
        if let (Some(timeout_ms), Some(session)) = (int(frame, 8), long(frame, 12)) {
            self.timeout_ms.set(timeout_ms);
            self.session.set(SessionId(session));
        }
    }

    pub(super) fn sent(&self, frame: &Bytes) {
        self.count(|counted| {
            counted.sent += 1;
            counted.last_zxid = long(frame, 8).unwrap_or(counted.last_zxid);
        });
    }

    /// A request was answered.
    pub(super) fn settled(&self, request: &Open, now: Instant) -> Duration {
        let latency = now.saturating_duration_since(request.since);
        self.count(|counted| {
            counted.last = Some((request.op, request.xid));
            counted.last_response = Some(now);
            counted.last_latency = latency;
            counted.min_latency = Some(counted.min_latency.map_or(latency, |min| min.min(latency)));
            counted.max_latency = counted.max_latency.max(latency);
            counted.latency_sum += latency;
            counted.answered += 1;
        });
        latency
    }

    pub(super) fn reset(&self) {
        *self.counted.borrow_mut() = Counted::default();
    }

    pub(super) fn view(&self, start: Instant) -> ConnectionView {
        let counted = self.counted.borrow().clone();
        let session = self.session.get();
        let since_start = |at: Instant| at.saturating_duration_since(start).as_millis();
        ConnectionView {
            remote: self.remote.to_string(),
            is_read: !self.outbox.is_unread(),
            outstanding: self.open.borrow().len(),
            received: counted.received,
            sent: counted.sent,
            session: (session != SessionId::NONE).then_some(session),
            timeout_ms: self.timeout_ms.get(),
            established_ms: self.established_ms,
            last_operation: counted.last.map_or("NA", |(op, _)| operation(op)),
            last_cxid: counted.last.map(|(_, xid)| xid),
            last_zxid: counted.last_zxid,
            last_response_ms: counted.last_response.map_or(0, since_start).try_into().unwrap_or(u64::MAX),
            last_latency: counted.last_latency,
            min_latency: counted.min_latency.unwrap_or_default(),
            avg_latency: counted.latency_sum.checked_div(counted.answered).unwrap_or_default(),
            max_latency: counted.max_latency,
        }
    }
}

fn int(frame: &Bytes, at: usize) -> Option<i32> {
    frame.get(at..at + 4)?.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}

fn long(frame: &Bytes, at: usize) -> Option<i64> {
    frame.get(at..at + 8)?.first_chunk::<8>().map(|bytes| i64::from_be_bytes(*bytes))
}

/// The error of a framed reply.
pub(super) fn error(frame: &Bytes) -> Option<i32> {
    int(frame, 16)
}

/// The kind of a framed event.
pub(super) fn event_kind(frame: &Bytes) -> Option<EventType> {
    EventType::from_code(int(frame, 20)?)
}

/// The string that a body begins with.
fn first_string(body: &Bytes) -> Option<Bytes> {
    let len = usize::try_from(int(body, 0)?).ok()?;
    let end = len.checked_add(4).filter(|end| *end <= body.len())?;
    Some(body.slice(4..end))
}

/// The xid of a framed reply.
pub(super) fn xid(frame: &Bytes) -> Option<i32> {
    int(frame, 4)
}

/// ZooKeeper's four letters for an operation, as `cons` tells the last one.
fn operation(op: i32) -> &'static str {
    match OpCode::from_code(op) {
        Some(OpCode::Create) => "CREA",
        Some(OpCode::Create2) => "CRE2",
        Some(OpCode::CreateContainer) => "CREC",
        Some(OpCode::CreateTtl) => "CRET",
        Some(OpCode::Delete) => "DELE",
        Some(OpCode::DeleteContainer) => "DELC",
        Some(OpCode::Exists) => "EXIS",
        Some(OpCode::GetData) => "GETD",
        Some(OpCode::SetData) => "SETD",
        Some(OpCode::GetAcl) => "GETA",
        Some(OpCode::SetAcl) => "SETA",
        Some(OpCode::GetChildren | OpCode::GetChildren2) => "GETC",
        Some(OpCode::GetAllChildrenNumber) => "GETACN",
        Some(OpCode::GetEphemerals) => "GETE",
        Some(OpCode::Sync) => "SYNC",
        Some(OpCode::Ping) => "PING",
        Some(OpCode::Check) => "CHEC",
        Some(OpCode::Multi) => "MULT",
        Some(OpCode::MultiRead) => "MLTR",
        Some(OpCode::Reconfig) => "RECO",
        Some(OpCode::SetWatches | OpCode::SetWatches2) => "SETW",
        Some(OpCode::AddWatch) => "ADDW",
        Some(OpCode::CheckWatches) => "CHKW",
        Some(OpCode::RemoveWatches) => "REMW",
        Some(OpCode::WhoAmI) => "HOMI",
        Some(OpCode::CreateSession) => "SESS",
        Some(OpCode::CloseSession) => "CLOS",
        Some(OpCode::Auth) => "AUTH",
        Some(OpCode::Sasl) => "SASL",
        Some(OpCode::Error) | None => "NA",
    }
}
