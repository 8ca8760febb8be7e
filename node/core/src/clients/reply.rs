//! Frames that a client gets.

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_wire::client::{
    Children2Response, ChildrenResponse, ConnectResponse, Create2Response, CreateResponse, ErrorCode,
    ExistsResponse, GetDataResponse, OpCode, ReplyHeader, SetDataResponse, Stat, SyncResponse, put_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Writer;
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

fn with_body(xid: i32, zxid: Zxid, room: usize, body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    frame(room, |w| {
        ReplyHeader { xid, zxid, err: 0 }.encode(w);
        body(w);
    })
}

/// The answer to a connect request whose session stands.
pub(super) fn connected(session: SessionId, timeout_ms: i32) -> Bytes {
    let password = Bytes::copy_from_slice(&session_password(session));
    frame(0, |w| connect_response(timeout_ms, session, password).encode(w))
}

/// The answer to a connect request whose session is over: a time-out of zero.
pub(super) fn expired() -> Bytes {
    frame(0, |w| connect_response(0, SessionId::NONE, Bytes::from_static(&[0; 16])).encode(w))
}

fn connect_response(timeout_ms: i32, session: SessionId, password: Bytes) -> ConnectResponse {
    ConnectResponse { protocol_version: 0, timeout_ms, session, password, read_only: Some(false) }
}

/// The answer to a write whose transaction was applied.
pub(super) fn written(xid: i32, zxid: Zxid, op: OpCode, applied: &Applied) -> Bytes {
    match applied {
        Applied::Created { path, stat } => with_body(xid, zxid, path.len(), |w| match op {
            OpCode::Create2 => Create2Response { path: path.clone(), stat: *stat }.encode(w),
            _ => CreateResponse { path: path.clone() }.encode(w),
        }),
        Applied::DataSet { stat } => with_body(xid, zxid, 0, |w| SetDataResponse { stat: *stat }.encode(w)),
        Applied::Deleted | Applied::SessionClosed | Applied::SessionCreated { .. } => {
            plain(xid, zxid, ErrorCode::Ok)
        }
        Applied::Refused(error) => plain(xid, zxid, *error),
    }
}

pub(super) fn synced(xid: i32, zxid: Zxid, path: &ByteString) -> Bytes {
    with_body(xid, zxid, path.len(), |w| SyncResponse { path: path.clone() }.encode(w))
}

pub(super) fn exists(xid: i32, zxid: Zxid, found: Result<Stat, ErrorCode>) -> Bytes {
    match found {
        Ok(stat) => with_body(xid, zxid, 0, |w| ExistsResponse { stat }.encode(w)),
        Err(error) => plain(xid, zxid, error),
    }
}

pub(super) fn data(xid: i32, zxid: Zxid, found: Result<(Option<Bytes>, Stat), ErrorCode>) -> Bytes {
    match found {
        Ok((data, stat)) => {
            let room = data.as_ref().map_or(0, Bytes::len);
            with_body(xid, zxid, room, |w| GetDataResponse { data, stat }.encode(w))
        }
        Err(error) => plain(xid, zxid, error),
    }
}

pub(super) fn children(xid: i32, zxid: Zxid, found: Result<(Vec<ByteString>, Stat), ErrorCode>) -> Bytes {
    match found {
        Ok((children, _)) => with_body(xid, zxid, 0, |w| ChildrenResponse { children }.encode(w)),
        Err(error) => plain(xid, zxid, error),
    }
}

pub(super) fn children2(xid: i32, zxid: Zxid, found: Result<(Vec<ByteString>, Stat), ErrorCode>) -> Bytes {
    match found {
        Ok((children, stat)) => with_body(xid, zxid, 0, |w| Children2Response { children, stat }.encode(w)),
        Err(error) => plain(xid, zxid, error),
    }
}
