//! What a transition did, in the words of the protocol: one function for each kind of value, each of which
//! gives a piece of the trace's line. Members are `s1`, `s2`, ..., clients `c1`, `c2`, ..., as in scripts.

use checker::history::{Function, Value};
use node_core::Role;
use node_core::io::{Event, Input, StoreOp};
use node_wire::client::{
    ConnectResponse, CreateRequest, ErrorCode, EventType, OpCode, PathWatch, ReplyHeader, SetDataRequest,
    WatcherEvent, XID_PING, XID_WATCH,
};
use node_wire::election::Notification;
use node_wire::ids::Zxid;
use node_wire::jute::Reader;
use node_wire::membership::Membership;
use node_wire::quorum::{ForwardedRequest, PacketType, QuorumPacket};
use node_wire::txn::{Entry, Txn};
use workloads::{Op, Outcome};

use crate::client;
use crate::world::World;
use crate::world::ensemble::membership::show_membership;

impl World {
    /// How each member stands.
    pub(crate) fn standings(&self) -> Vec<String> {
        let one = |(index, host): (usize, &crate::host::Host)| {
            let durable = self.oracle.invariants.durable(index);
            match host.process.as_ref().map(|process| process.member().status()) {
                None => format!("s{} is down; its disk holds the log up to {durable}", index + 1),
                Some(status) => format!(
                    "s{} {}{}: epoch {} (accepted {}), logged {}, on disk {durable}, applied {}",
                    index + 1,
                    role(status.role),
                    if status.established { ", established" } else { "" },
                    status.current_epoch.0,
                    status.accepted_epoch.0,
                    status.last_logged,
                    status.last_applied
                ),
            }
        };
        self.ensemble.hosts.iter().enumerate().map(one).collect()
    }
}

/// What a member does in its role: `follows s2`.
fn role(role: Role) -> String {
    match role {
        Role::Looking => "looks".to_owned(),
        Role::Following(leader) => format!("follows s{}", leader.0),
        Role::Leading => "leads".to_owned(),
    }
}

/// A vote as a member sends it: `LOOKING for s3 with 0x100000004 of epoch 1, round 2`.
pub(in crate::world) fn vote(vote: &Notification) -> String {
    format!(
        "{} for s{} with {} of epoch {}, round {}",
        format!("{:?}", vote.state).to_uppercase(),
        vote.leader.0,
        vote.zxid,
        vote.peer_epoch.0,
        vote.round.0
    )
}

/// An operation of a client and its outcome: `c1: write 3 7 ok at version 2`.
pub(in crate::world) fn completion(client: usize, op: &Op, outcome: &Outcome) -> String {
    let mut line = format!("c{}: {} {}", client + 1, op.function(), op.key);
    line += &match &outcome.value {
        Value::Null => String::new(),
        Value::Pair(Some(from), to) if op.function() == Function::CAS => format!(" {from} to {to}"),
        value => format!(" {value}"),
    };
    line += &format!(" {:?}", outcome.kind).to_lowercase();
    if let Some(version) = outcome.claims.version {
        line += &format!(" at version {version}");
    }
    if let Some(error) = &outcome.error {
        line += &format!(" ({error})");
    }
    line
}

/// What a member asks its store to write: `logs 0x100000004`.
pub(in crate::world) fn store_op(op: &StoreOp) -> String {
    match op {
        StoreOp::Append(entry) => format!("logs {}", entry.zxid()),
        StoreOp::Truncate(zxid) => format!("truncates its log behind {zxid}"),
        StoreOp::Install(image) => format!("installs the tree of {}", image.zxid),
        StoreOp::AcceptedEpoch(epoch) => format!("writes acceptedEpoch {}", epoch.0),
        StoreOp::CurrentEpoch(epoch) => format!("writes currentEpoch {}", epoch.0),
        StoreOp::Membership(membership) => format!("writes the membership of {}", membership.version),
    }
}

/// What a member reports of itself: `elects s3 in round 2`.
pub(in crate::world) fn event(event: &Event) -> String {
    match event {
        Event::Looking { round, left: None, reason } => format!("looks in round {}: {reason}", round.0),
        Event::Looking { round, left: Some(left), reason } => {
            format!("leaves s{} and looks in round {}: {reason}", left.0, round.0)
        }
        Event::Elected { leader, round } => format!("elects s{} in round {}", leader.0, round.0),
        Event::Established { leader, epoch } => {
            format!("holds epoch {} of s{} as established", epoch.0, leader.0)
        }
        Event::ReadOnly => "serves reads without a leader".to_owned(),
        Event::Synchronizing { learner, how } => {
            format!("synchronizes s{} by {}", learner.0, format!("{how:?}").to_uppercase())
        }
        Event::Diverged { zxid, told, computed } => {
            format!("has digest {computed:x} after {zxid}, and its leader {told:x}")
        }
    }
}

/// A packet of the quorum port: its kind, and the zxid, transaction or request in it.
pub(in crate::world) fn packet(packet: &QuorumPacket) -> String {
    let kind = format!("{:?}", packet.kind).to_uppercase();
    let zxid = Zxid::from_wire(packet.zxid);
    let data = packet.data.clone().unwrap_or_default();
    match packet.kind {
        PacketType::Proposal => {
            let entry = Entry::decode(data).map_or_else(|error| error.to_string(), |entry| txn(&entry));
            format!("{kind} {zxid} {entry}")
        }
        PacketType::Request => {
            let forwarded = ForwardedRequest::decode(data, Vec::new());
            let asked =
                forwarded.map_or_else(|error| error.to_string(), |asked| request(asked.op, &asked.payload));
            format!("{kind} {asked}")
        }
        PacketType::Ping | PacketType::Revalidate | PacketType::Sync => kind,
        _ => format!("{kind} {zxid}"),
    }
}

/// A transaction of the log: `create /a "1"`.
fn txn(entry: &Entry) -> String {
    match &entry.txn {
        Txn::Create { path, data, .. } => format!("create {path} {}", text(data.as_deref())),
        Txn::SetData { data: Some(data), .. } if entry.header.kind == OpCode::Reconfig.code() => {
            let membership = Membership::from_bytes(data).map(|membership| show_membership(&membership));
            format!("the ensemble of {}", membership.unwrap_or_else(|error| error.to_string()))
        }
        Txn::SetData { path, data, version } => {
            format!("set {path} {} to version {version}", text(data.as_deref()))
        }
        Txn::Delete { path } => format!("delete {path}"),
        Txn::CreateSession { .. } => "createSession".to_owned(),
        Txn::CloseSession { .. } => "closeSession".to_owned(),
        Txn::Error { code } => format!("error {}", error(*code)),
        other => format!("{other:?}"),
    }
}

/// A request by its operation code and body: `setData /a "1" at version 2`.
fn request(op: i32, body: &bytes::Bytes) -> String {
    let mut reader = Reader::new(body.clone());
    let op = OpCode::from_code(op).map_or_else(|| format!("operation {op}"), |op| op.name());
    let what = match op.as_str() {
        "create" | "create2" => CreateRequest::decode(&mut reader)
            .map(|body| format!(" {} {}", body.path, text(body.data.as_deref()))),
        "setData" => SetDataRequest::decode(&mut reader).map(|body| match body.version {
            -1 => format!(" {} {}", body.path, text(body.data.as_deref())),
            version => format!(" {} {} at version {version}", body.path, text(body.data.as_deref())),
        }),
        "getData" | "exists" => PathWatch::decode(&mut reader).map(|body| format!(" {}", body.path)),
        _ => Ok(String::new()),
    };
    op + &what.unwrap_or_else(|error| format!(" ({error})"))
}

/// What a packet is about, where that is a place in the history.
pub(in crate::world) fn zxid_of(input: &Input) -> Option<Zxid> {
    match input {
        Input::Packet { packet, .. } => match packet.kind {
            PacketType::Ping | PacketType::Request | PacketType::Revalidate | PacketType::Sync => None,
            _ => Some(Zxid::from_wire(packet.zxid)),
        },
        Input::Image { image, .. } => Some(image.zxid),
        _ => None,
    }
}

/// What arrived, where the line itself does not say it.
pub(super) fn arrival(input: &Input, several: bool) -> String {
    match input {
        Input::Packet { packet: arrived, .. } if several && arrived.kind != PacketType::Ping => {
            format!("gets {}", packet(arrived))
        }
        Input::Packet { packet: arrived, .. }
            if matches!(arrived.kind, PacketType::Proposal | PacketType::Request) =>
        {
            packet(arrived)
        }
        Input::ClientConnect { request, .. } if request.session.0 == 0 => "a new session".to_owned(),
        Input::ClientConnect { request, .. } => format!("session {}", request.session),
        Input::ClientRequest { request: asked, .. } => request(asked.op, &asked.body),
        _ => String::new(),
    }
}

/// Operations by ZooKeeper's names.
trait Named {
    fn name(self) -> String;
}

impl Named for OpCode {
    fn name(self) -> String {
        let name = format!("{self:?}");
        let (first, rest) = name.split_at(1);
        first.to_lowercase() + rest
    }
}

/// A frame that a client gets: a reply, a watch event, or the session where it was not `greeted` yet. Empty
/// for the answer to a ping.
pub(in crate::world) fn reply(client: usize, frame: bytes::Bytes, greeted: bool) -> String {
    let client = client + 1;
    let mut reader = Reader::new(client::unframed(frame));
    if !greeted {
        return match ConnectResponse::decode(&mut reader) {
            Ok(response) if response.timeout_ms > 0 => {
                format!("c{client} is told: session {}", response.session)
            }
            Ok(_) => format!("c{client} is told: session expired"),
            Err(failure) => format!("c{client} is told: {failure}"),
        };
    }
    match ReplyHeader::decode(&mut reader) {
        Ok(header) if header.xid == XID_PING => String::new(),
        Ok(header) if header.xid == XID_WATCH => match WatcherEvent::decode(&mut reader) {
            Ok(event) => {
                let kind = EventType::from_code(event.kind).unwrap_or(EventType::None);
                format!("c{client} sees {kind:?} of {}", event.path)
            }
            Err(failure) => format!("c{client} sees: {failure}"),
        },
        Ok(header) if header.err == 0 => format!("c{client} is answered at {}", header.zxid),
        Ok(header) => format!("c{client} is refused at {}: {}", header.zxid, error(header.err)),
        Err(failure) => format!("c{client} is answered: {failure}"),
    }
}

/// An error code by its name.
fn error(code: i32) -> String {
    ErrorCode::from_code(code).map_or_else(|| code.to_string(), |code| format!("{code:?}"))
}

/// A znode's data in quotes, or `null`.
fn text(data: Option<&[u8]>) -> String {
    data.map_or_else(|| "null".to_owned(), |data| format!("\"{}\"", String::from_utf8_lossy(data)))
}
