//! Frames that a client gets.

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_wire::client::{
    ConnectResponse, Create2Response, CreateResponse, ErrorCode, EventType, GetDataResponse, KeeperState,
    MultiOp, MultiRequest, MultiResponse, MultiResult, OpCode, ReplyHeader, SaslPacket, SetAclResponse,
    SetDataResponse, SyncResponse, WatcherEvent, XID_WATCH, put_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{Reader, Writer};
use node_wire::password::session_password;

use crate::tree::Applied;

/// Room for a header and a Stat, which most replies are.
const USUAL_FRAME: usize = 4 + 16 + 68;

fn frame(room: usize, body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = BytesMut::with_capacity(USUAL_FRAME + room);
    put_frame(&mut buffer, body);
    buffer.freeze()
}

/// The header alone, which is all that a refusal has.
pub(super) fn plain(xid: i32, zxid: Zxid, error: ErrorCode) -> Bytes {
    frame(0, |w| ReplyHeader { xid, zxid, err: error.code() }.encode(w))
}

pub(super) fn with_body(xid: i32, zxid: Zxid, room: usize, body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    frame(room, |w| {
        ReplyHeader { xid, zxid, err: 0 }.encode(w);
        body(w);
    })
}

/// The answer to a connect request whose session stands. `read_only` is left out for a client that did not
/// send it: one of the older form reads as many bytes as it knows, and takes the next frame to begin there.
pub(super) fn connected(session: SessionId, timeout_ms: i32, read_only: Option<bool>) -> Bytes {
    let password = Bytes::copy_from_slice(&session_password(session));
    let response = ConnectResponse { protocol_version: 0, timeout_ms, session, password, read_only };
    frame(0, |w| response.encode(w))
}

/// The answer to a connect request whose session is over: a time-out of zero.
pub(super) fn expired(knows_read_only: bool) -> Bytes {
    let (session, password) = (SessionId::NONE, Bytes::from_static(&[0; 16]));
    let read_only = knows_read_only.then_some(false);
    let response = ConnectResponse { protocol_version: 0, timeout_ms: 0, session, password, read_only };
    frame(0, |w| response.encode(w))
}

/// The answer to a write whose transaction was applied; of a multi with what was asked.
pub(super) fn written(xid: i32, zxid: Zxid, op: OpCode, applied: &Applied, multi: Option<&Bytes>) -> Bytes {
    match applied {
        Applied::Created { path, stat } => with_body(xid, zxid, path.len(), |w| match op {
            OpCode::Create => CreateResponse { path: path.clone() }.encode(w),
            _ => Create2Response { path: path.clone(), stat: *stat }.encode(w),
        }),
        Applied::DataSet { stat } | Applied::Checked { stat } => {
            with_body(xid, zxid, 0, |w| SetDataResponse { stat: *stat }.encode(w))
        }
        Applied::Reconfigured { text, stat } => with_body(xid, zxid, text.len(), |w| {
            GetDataResponse { data: Some(text.clone()), stat: *stat }.encode(w);
        }),
        Applied::AclSet { stat } => with_body(xid, zxid, 0, |w| SetAclResponse { stat: *stat }.encode(w)),
        Applied::Several(parts) => several(xid, zxid, parts, multi),
        Applied::Deleted | Applied::SessionClosed | Applied::SessionCreated { .. } => {
            plain(xid, zxid, ErrorCode::Ok)
        }
        Applied::Refused(error) => plain(xid, zxid, *error),
    }
}

pub(super) fn synced(xid: i32, zxid: Zxid, path: &ByteString) -> Bytes {
    with_body(xid, zxid, path.len(), |w| SyncResponse { path: path.clone() }.encode(w))
}

/// The next token of a SASL exchange.
pub(super) fn token(xid: i32, zxid: Zxid, token: Option<&Bytes>) -> Bytes {
    let room = token.map_or(0, Bytes::len);
    with_body(xid, zxid, room, |w| SaslPacket { token: token.cloned() }.encode(w))
}

/// The end of a SASL exchange that failed. Alone among refusals it has a body, and Java's client reads it.
pub(super) fn no_token(xid: i32, error: ErrorCode) -> Bytes {
    frame(0, |w| {
        ReplyHeader { xid, zxid: Zxid::ZERO, err: error.code() }.encode(w);
        SaslPacket { token: None }.encode(w);
    })
}

/// Something that a watch saw.
pub(super) fn event(kind: EventType, path: &ByteString) -> Bytes {
    frame(path.len(), |w| {
        // -1 as a zxid: an event is told when it happens and has no other place in the order.
        ReplyHeader { xid: XID_WATCH, zxid: Zxid::from_wire(-1), err: 0 }.encode(w);
        let state = KeeperState::SyncConnected.code();
        WatcherEvent { kind: kind.code(), state, path: path.clone() }.encode(w);
    })
}

/// The answer to a multi. It is no refusal as a whole: its results say what became of each part.
///
/// Who asked for a create2 is answered with a Stat, as from ZooKeeper 3.8.2 on (ZOOKEEPER-4026), although its
/// transaction is a create's: an earlier member reads no other within a multi.
fn several(xid: i32, zxid: Zxid, parts: &[(i32, Applied)], asked: Option<&Bytes>) -> Bytes {
    let is_create = |kind: i32| kind == OpCode::Create.code();
    let asked = asked
        .filter(|_| parts.iter().any(|(kind, _)| is_create(*kind)))
        .and_then(|body| MultiRequest::decode(&mut Reader::new(body.clone())).ok());
    let without_stat = |index: usize| match &asked {
        Some(asked) => !matches!(asked.ops.get(index), Some(MultiOp::Create2(_))),
        None => true,
    };
    let results = parts.iter().enumerate().map(|(index, (kind, applied))| match applied {
        Applied::Created { path, .. } if is_create(*kind) && without_stat(index) => {
            MultiResult::Create { path: path.clone() }
        }
        Applied::Created { path, stat } => MultiResult::Create2 { path: path.clone(), stat: *stat },
        Applied::Deleted => MultiResult::Delete,
        Applied::DataSet { stat } => MultiResult::SetData { stat: *stat },
        Applied::Checked { .. } => MultiResult::Check,
        Applied::Refused(error) => MultiResult::Error { err: error.code() },
        // No part of any multi.
        Applied::AclSet { .. }
        | Applied::Reconfigured { .. }
        | Applied::Several(_)
        | Applied::SessionCreated { .. }
        | Applied::SessionClosed => MultiResult::Error { err: ErrorCode::SystemError.code() },
    });
    let response = MultiResponse { results: results.collect() };
    with_body(xid, zxid, 0, |w| response.encode(w))
}

#[cfg(test)]
mod tests {
    use node_wire::client::{Acl, CreateRequest, Stat};

    use super::*;

    #[test]
    fn of_a_multi_who_asked_for_a_stat_gets_it_and_nobody_else() {
        let create = |path: &'static str| CreateRequest {
            path: path.into(),
            data: None,
            acl: vec![Acl::world_anyone()],
            flags: 0,
        };
        let mut asked = BytesMut::new();
        let ops = vec![MultiOp::Create(create("/a")), MultiOp::Create2(create("/b"))];
        MultiRequest { ops }.encode(&mut Writer::new(&mut asked));
        let stat = Stat { czxid: Zxid(7), ..Stat::default() };
        let part = |path: &'static str| (OpCode::Create.code(), Applied::Created { path: path.into(), stat });
        let applied = Applied::Several(vec![part("/a"), part("/b")]);

        let results = |asked: Option<&Bytes>| {
            let frame = written(1, Zxid(7), OpCode::Multi, &applied, asked);
            let mut body = Reader::new(frame.slice(4..));
            ReplyHeader::decode(&mut body).expect("a header");
            MultiResponse::decode(&mut body).expect("results").results
        };
        let plain = |path: &'static str| MultiResult::Create { path: path.into() };
        let with_stat = MultiResult::Create2 { path: "/b".into(), stat };
        assert_eq!(results(Some(&asked.freeze())), [plain("/a"), with_stat]);
        assert_eq!(results(None), [plain("/a"), plain("/b")]);
    }
}
