//! Effects as lines that a reader of the protocol understands.

use std::collections::BTreeMap;

use node_core::Role;
use node_core::Status;
use node_core::io::Event;
use node_wire::client::{CreateRequest, DeleteRequest, ErrorCode, MultiResult, OpCode, SetDataRequest, Stat};
use node_wire::election::Notification;
use node_wire::ids::{ServerId, Zxid};
use node_wire::jute::Reader;
use node_wire::membership::{Membership, ServerLine};
use node_wire::quorum::{
    ForwardedRequest, LearnerInfo, PacketType, PingTouches, QuorumPacket, Revalidate, Revalidated,
};
use node_wire::txn::{Entry, Txn, TxnHeader};

use crate::history::dotted;

fn list(ids: &mut dyn Iterator<Item = ServerId>) -> String {
    ids.map(|id| id.to_string()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn notification(vote: &Notification) -> String {
    let proposed = vote.proposed.as_ref().and_then(|text| Membership::from_bytes(text).ok());
    let proposed = proposed.map(|proposed| {
        format!(
            " proposing {} votes=[{}]",
            dotted(proposed.version),
            list(&mut proposed.voters().into_iter())
        )
    });
    format!(
        "vote {} for {} zxid={} epoch={} round={}{}",
        format!("{:?}", vote.state).to_uppercase(),
        vote.leader,
        dotted(vote.zxid),
        vote.peer_epoch,
        vote.round,
        proposed.unwrap_or_default()
    )
}

pub(crate) fn event(event: &Event) -> String {
    match event {
        Event::Looking { round, left: Some(left), reason } => {
            format!("looking in round {round}, left {left}: {reason}")
        }
        Event::Looking { round, left: None, reason } => format!("looking in round {round}: {reason}"),
        Event::Elected { leader, round } => format!("elected {leader} in round {round}"),
        Event::Established { leader, epoch } => format!("established epoch {epoch} of {leader}"),
        Event::ReadOnly => "serves reads without a leader".to_owned(),
        Event::Synchronizing { learner, how } => {
            format!("synchronizes {learner} by {}", format!("{how:?}").to_uppercase())
        }
        Event::Diverged { zxid, told, computed } => {
            format!("diverged at {}: {computed:x} instead of {told:x}", dotted(*zxid))
        }
    }
}

pub(crate) fn role(role: Role) -> String {
    match role {
        Role::Looking => "looking".to_owned(),
        Role::Following(leader) => format!("following {leader}"),
        Role::Leading => "leading".to_owned(),
    }
}

pub(crate) fn status(status: &Status) -> String {
    format!(
        "{}{} accepted={} current={} logged={} applied={}",
        match status.role {
            Role::Following(leader) if status.observes => format!("observing {leader}"),
            other => role(other),
        },
        if status.established { ", serving" } else { "" },
        status.accepted_epoch,
        status.current_epoch,
        dotted(status.last_logged),
        dotted(status.last_applied)
    )
}

/// A packet; `from_leader` tells the two meanings of REVALIDATE apart.
pub(crate) fn packet(packet: &QuorumPacket, from_leader: bool) -> String {
    let kind = format!("{:?}", packet.kind).to_uppercase();
    let zxid = Zxid::from_wire(packet.zxid);
    let data = packet.data.clone().unwrap_or_default();
    let mut reader = Reader::new(data.clone());
    match packet.kind {
        PacketType::FollowerInfo => {
            let server = LearnerInfo::decode(&mut reader).map(|info| info.server.0).unwrap_or_default();
            format!("{kind} of {server} accepted={}", zxid.epoch())
        }
        PacketType::NewLeader if !data.is_empty() => {
            let offer = Membership::from_bytes(&data).map(|offer| ensemble(&offer, &BTreeMap::new()));
            format!("{kind} epoch={} {}", zxid.epoch(), offer.unwrap_or_else(|error| error.to_string()))
        }
        PacketType::LeaderInfo | PacketType::NewLeader => format!("{kind} epoch={}", zxid.epoch()),
        PacketType::CommitAndActivate | PacketType::InformAndActivate => {
            format!("{kind} {} leader={}", dotted(zxid), reader.long().unwrap_or(-1))
        }
        PacketType::AckEpoch => {
            let current = reader.int().unwrap_or(i32::MIN);
            format!("{kind} current={current} last={}", dotted(zxid))
        }
        PacketType::Proposal => match Entry::decode(data) {
            Ok(entry) => format!("{kind} {} {}", dotted(zxid), txn(&entry)),
            Err(error) => format!("{kind} {} {error}", dotted(zxid)),
        },
        PacketType::Ping => {
            let touched = PingTouches::decode(data).unwrap_or_default().0;
            let touched: Vec<String> = touched.iter().map(|(session, _)| session.to_string()).collect();
            format!("{kind} round={} [{}]", packet.zxid, touched.join(" "))
        }
        PacketType::Request => match ForwardedRequest::decode(data, packet.auth.clone()) {
            Ok(request) => format!("{kind} {}", forwarded(&request)),
            Err(error) => format!("{kind} {error}"),
        },
        PacketType::Revalidate if from_leader => match Revalidated::decode(&mut reader) {
            Ok(answer) if packet.zxid == 1 => format!("{kind} {} moved away", answer.session),
            Ok(answer) => format!("{kind} {} valid={}", answer.session, answer.valid),
            Err(error) => format!("{kind} {error}"),
        },
        PacketType::Revalidate => match Revalidate::decode(&mut reader) {
            Ok(ask) => format!("{kind} {}", ask.session),
            Err(error) => format!("{kind} {error}"),
        },
        PacketType::Sync => kind,
        _ => format!("{kind} {}", dotted(zxid)),
    }
}

fn forwarded(request: &ForwardedRequest) -> String {
    let op = OpCode::from_code(request.op);
    let mut reader = Reader::new(request.payload.clone());
    let body = match op {
        Some(OpCode::Create | OpCode::Create2) => {
            CreateRequest::decode(&mut reader).map(|body| body.path.to_string())
        }
        Some(OpCode::SetData) => SetDataRequest::decode(&mut reader).map(|body| body.path.to_string()),
        Some(OpCode::Delete) => DeleteRequest::decode(&mut reader).map(|body| body.path.to_string()),
        _ => Ok(String::new()),
    };
    let op = op.map_or_else(|| request.op.to_string(), |op| format!("{op:?}"));
    let body = body.unwrap_or_else(|error| error.to_string());
    format!("{op} {body}").trim_end().to_owned() + &format!(" of {}", request.session)
}

/// What a transaction does.
pub(crate) fn txn(entry: &Entry) -> String {
    match &entry.txn {
        Txn::Create { path, data, ephemeral, .. } => {
            let kind = if *ephemeral { "create ephemeral" } else { "create" };
            format!("{kind} {path} {:?}", text(data.as_deref()))
        }
        Txn::SetData { data: Some(data), .. } if entry.header.kind == OpCode::Reconfig.code() => {
            let next = Membership::from_bytes(data).map(|next| ensemble(&next, &BTreeMap::new()));
            next.unwrap_or_else(|error| error.to_string())
        }
        Txn::SetData { path, data, version } => {
            format!("set {path} {:?} version={version}", text(data.as_deref()))
        }
        Txn::Delete { path } => format!("delete {path}"),
        Txn::CreateSession { timeout_ms } => {
            format!("createSession {} for {timeout_ms} ms", entry.header.session)
        }
        Txn::CloseSession { paths } => {
            let paths: Vec<&str> = paths.iter().flatten().map(AsRef::as_ref).collect();
            format!("closeSession {} [{}]", entry.header.session, paths.join(" "))
        }
        Txn::CreateContainer { path, .. } => format!("create container {path}"),
        Txn::CreateTtl { path, ttl_ms, .. } => format!("create {path} for {ttl_ms} ms"),
        Txn::SetAcl { path, acl, version } => {
            let acl = acl.iter().map(|acl| format!("{}:{}:{}", acl.scheme, acl.id, acl.perms));
            format!("set the list of {path} [{}] aversion={version}", acl.collect::<Vec<_>>().join(" "))
        }
        Txn::Check { path, version } => format!("check {path} version={version}"),
        Txn::Multi { txns } => {
            let parts = txns.iter().map(|(kind, body)| {
                let header = TxnHeader { kind: *kind, ..entry.header };
                Txn::decode(*kind, &mut Reader::new(body.clone()))
                    .map_or_else(|error| error.to_string(), |part| txn(&Entry::new(header, part, None)))
            });
            format!("multi [{}]", parts.collect::<Vec<_>>().join(", "))
        }
        Txn::Error { code } => format!("error {}", error(*code)),
    }
}

/// The result of a part of a multi.
pub(crate) fn result(result: &MultiResult) -> String {
    match result {
        MultiResult::Create { path } | MultiResult::Create2 { path, .. } => format!("created {path}"),
        MultiResult::Delete => "deleted".to_owned(),
        MultiResult::SetData { stat } => format!("set version={}", stat.version),
        MultiResult::Check => "checked".to_owned(),
        MultiResult::GetData { data, .. } => format!("{:?}", text(data.as_deref())),
        MultiResult::GetChildren { children } => {
            let names: Vec<&str> = children.iter().map(AsRef::as_ref).collect();
            format!("[{}]", names.join(" "))
        }
        MultiResult::Error { err } => error(*err),
    }
}

pub(crate) fn error(code: i32) -> String {
    ErrorCode::from_code(code).map_or_else(|| code.to_string(), |code| format!("{code:?}"))
}

pub(crate) fn text(data: Option<&[u8]>) -> String {
    data.map_or_else(|| "null".to_owned(), |data| String::from_utf8_lossy(data).into_owned())
}

pub(crate) fn stat(stat: &Stat) -> String {
    let mut line = format!(
        "version={} czxid={} mzxid={} cversion={} children={}",
        stat.version,
        dotted(stat.czxid),
        dotted(stat.mzxid),
        stat.cversion,
        stat.num_children
    );
    if stat.ephemeral_owner.0 != 0 {
        line += &format!(" owner={}", stat.ephemeral_owner);
    }
    line
}

/// Who is in the ensemble.
pub(crate) fn ensemble(active: &Membership, joining: &BTreeMap<ServerId, ServerLine>) -> String {
    let mut line =
        format!("ensemble {} votes=[{}]", dotted(active.version), list(&mut active.voters().into_iter()));
    if !active.observers().is_empty() {
        line += &format!(" observes=[{}]", list(&mut active.observers().into_iter()));
    }
    if !joining.is_empty() {
        line += &format!(" joining=[{}]", list(&mut joining.keys().copied()));
    }
    line
}
