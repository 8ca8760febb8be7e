//! Clients by name: what each was told, and what its replies mean.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use node_core::io::ClientId;
use node_wire::client::{
    AllChildrenNumberResponse, Children2Response, ConnectRequest, ConnectResponse, Create2Response,
    EphemeralsResponse, EventType, ExistsResponse, GetAclResponse, GetDataResponse, MultiResponse, OpCode,
    ReplyHeader, Request, SetAclResponse, SetDataResponse, WatcherEvent, WhoAmIResponse, XID_WATCH,
    take_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{Reader, Writer, limits::MAX_FRAME};
use node_wire::membership::Membership;

use crate::history::dotted;
use crate::show;

/// What a client says when it connects.
pub(crate) struct ConnectOptions {
    pub(crate) timeout_ms: i32,
    /// Instead of what it has seen.
    pub(crate) seen: Option<Zxid>,
    /// A member that serves reads alone would do; none for a client of the older form, which does not say it.
    pub(crate) read_only: Option<bool>,
}

/// One connection of a client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) member: u64,
    pub(crate) open: bool,
    session: SessionId,
    password: Bytes,
    last_zxid: Zxid,
    next_xid: i32,
    connected: bool,
    /// What was asked, by xid.
    asked: BTreeMap<i32, (OpCode, String)>,
}

impl Client {
    /// A connection that will ask for a new session, or for the session of `of`.
    pub(crate) fn new(id: ClientId, member: u64, of: Option<&Client>) -> Self {
        Self {
            id,
            member,
            open: true,
            session: of.map_or(SessionId::NONE, |of| of.session),
            password: of.map_or_else(|| Bytes::from_static(&[0; 16]), |of| of.password.clone()),
            last_zxid: of.map_or(Zxid::ZERO, |of| of.last_zxid),
            // A client that moved counts anew: the worst case for whoever tells replies apart by xid.
            next_xid: 1,
            connected: false,
            asked: BTreeMap::new(),
        }
    }

    pub(crate) fn connect_request(&self, options: ConnectOptions) -> ConnectRequest {
        ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: options.seen.unwrap_or(self.last_zxid),
            timeout_ms: options.timeout_ms,
            session: self.session,
            password: self.password.clone(),
            read_only: options.read_only,
        }
    }

    pub(crate) fn forge_password(&mut self) {
        self.password = Bytes::from_static(b"not the password");
    }

    pub(crate) fn request(&mut self, op: OpCode, about: &str, body: impl FnOnce(&mut Writer<'_>)) -> Request {
        let mut buffer = BytesMut::new();
        body(&mut Writer::new(&mut buffer));
        let xid = self.next_xid;
        self.next_xid += 1;
        self.asked.insert(xid, (op, about.to_owned()));
        Request { xid, op: op.code(), body: buffer.freeze() }
    }

    /// Reads a reply.
    pub(crate) fn reply(&mut self, frame: Bytes) -> Result<String, Box<dyn std::error::Error>> {
        let body = take_frame(&mut BytesMut::from(&frame[..]), MAX_FRAME)?.ok_or("half a frame")?;
        let mut reader = Reader::new(body);
        if !self.connected {
            let response = ConnectResponse::decode(&mut reader)?;
            self.connected = true;
            let older = if response.read_only.is_none() { ", in the older form" } else { "" };
            if response.timeout_ms <= 0 {
                return Ok(format!("session expired{older}"));
            }
            self.session = response.session;
            self.password = response.password;
            let how = if response.read_only == Some(true) { ", read-only" } else { "" };
            return Ok(format!("session {} for {} ms{how}{older}", response.session, response.timeout_ms));
        }
        let header = ReplyHeader::decode(&mut reader)?;
        if header.xid == XID_WATCH {
            let event = WatcherEvent::decode(&mut reader)?;
            let kind = EventType::from_code(event.kind).ok_or("an unknown event")?;
            return Ok(format!("sees {kind:?} {}", event.path));
        }
        self.last_zxid = self.last_zxid.max(header.zxid);
        let (op, about) = self.asked.remove(&header.xid).ok_or("a reply that nobody asked for")?;
        let what = format!("{op:?} {about}").trim_end().to_owned();
        let at = dotted(header.zxid);
        if header.err != 0 {
            return Ok(format!("{what}: {} at {at}", show::error(header.err)));
        }
        let answer = answer(op, &mut reader)?;
        Ok(format!("{what}: {answer} at {at}"))
    }
}

/// What the body of a reply says.
fn answer(op: OpCode, reader: &mut Reader) -> Result<String, Box<dyn std::error::Error>> {
    Ok(match op {
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            let response = Create2Response::decode(reader)?;
            format!("{} {}", response.path, show::stat(&response.stat))
        }
        OpCode::SetData | OpCode::Check => show::stat(&SetDataResponse::decode(reader)?.stat),
        OpCode::SetAcl => {
            let stat = SetAclResponse::decode(reader)?.stat;
            format!("aversion={}", stat.aversion)
        }
        OpCode::GetAcl => {
            let response = GetAclResponse::decode(reader)?;
            let acl = response.acl.iter().map(|acl| format!("{}:{}:{}", acl.scheme, acl.id, acl.perms));
            format!("[{}] aversion={}", acl.collect::<Vec<_>>().join(" "), response.stat.aversion)
        }
        OpCode::Multi | OpCode::MultiRead => {
            let response = MultiResponse::decode(reader)?;
            let results: Vec<String> = response.results.iter().map(show::result).collect();
            format!("[{}]", results.join(", "))
        }
        OpCode::GetEphemerals => {
            let response = EphemeralsResponse::decode(reader)?;
            let paths: Vec<&str> = response.ephemerals.iter().map(AsRef::as_ref).collect();
            format!("[{}]", paths.join(" "))
        }
        OpCode::GetAllChildrenNumber => AllChildrenNumberResponse::decode(reader)?.total.to_string(),
        OpCode::WhoAmI => {
            let response = WhoAmIResponse::decode(reader)?;
            let clients = response.clients.iter().map(|info| format!("{}:{}", info.scheme, info.user));
            format!("[{}]", clients.collect::<Vec<_>>().join(" "))
        }
        OpCode::Exists => show::stat(&ExistsResponse::decode(reader)?.stat),
        OpCode::Reconfig => {
            let response = GetDataResponse::decode(reader)?;
            let membership = Membership::from_bytes(&response.data.unwrap_or_default())?;
            format!("{} {}", show::ensemble(&membership, &BTreeMap::new()), show::stat(&response.stat))
        }
        OpCode::GetData => {
            let response = GetDataResponse::decode(reader)?;
            format!("{:?} {}", show::text(response.data.as_deref()), show::stat(&response.stat))
        }
        OpCode::GetChildren2 => {
            let response = Children2Response::decode(reader)?;
            let names: Vec<&str> = response.children.iter().map(AsRef::as_ref).collect();
            format!("[{}]", names.join(" "))
        }
        _ => "ok".to_owned(),
    })
}
