//! The client port, from both sides.

use bytes::{Bytes, BytesMut};
use node_wire::client::{
    AddWatchRequest, AllChildrenNumberResponse, AuthPacket, CheckVersionRequest, Children2Response,
    ChildrenResponse, ConnectRequest, ConnectResponse, Create2Response, CreateRequest, CreateResponse,
    CreateTtlRequest, DeleteRequest, EphemeralsResponse, ErrorResponse, ExistsResponse, GetAclResponse,
    GetDataResponse, MultiRequest, MultiResponse, OpCode, PathOnly, PathWatch, ReconfigRequest, ReplyHeader,
    Request, SaslPacket, SetAclRequest, SetAclResponse, SetDataRequest, SetDataResponse, SetWatches,
    SetWatches2, SyncRequest, SyncResponse, WatcherEvent, WatchesRequest, WhoAmIResponse, put_frame,
    take_frame, validate_path, validate_sequential_path,
};

use super::{record, returns, returns_exactly};
use crate::meter::{Bound, within};

/// A frame as long as any input of ours.
const LIMIT: usize = crate::MAX_INPUT;

/// Cutting frames copies nothing; the buffer is split where it is.
const FRAME: Bound = Bound { flat: 512, per_byte: 0 };

/// A connection as a member sees it: a connect request and requests, or, when the first byte says so, one
/// body.
pub(super) fn requests(input: &[u8]) {
    match input.split_first() {
        Some((&selector, body)) if selector >= 128 => {
            let op = OpCode::ALL[usize::from(selector) % OpCode::ALL.len()];
            request_body(op.code(), &Bytes::copy_from_slice(body));
        }
        _ => {
            for (index, frame) in frames(input).into_iter().enumerate() {
                if index == 0 {
                    returns(&frame, ConnectRequest::decode, ConnectRequest::encode);
                } else if let Ok(request) = Request::decode(frame.clone()) {
                    assert_eq!(super::written(|w| request.encode(w)), frame);
                    request_body(request.op, &request.body);
                }
            }
        }
    }
}

/// A connection as a client sees it: a connect response and replies. A reply does not say of what it is: it
/// is read as everything.
pub(super) fn replies(input: &[u8]) {
    for (index, frame) in frames(input).into_iter().enumerate() {
        if index == 0 {
            returns(&frame, ConnectResponse::decode, ConnectResponse::encode);
        } else if let Some(header) = returns_exactly(&frame, ReplyHeader::decode, ReplyHeader::encode) {
            assert_eq!(super::written(|w| header.encode(w)).len(), 16);
            reply_body(&frame.slice(16..));
        }
    }
}

fn request_body(op: i32, body: &Bytes) {
    match OpCode::from_code(op) {
        Some(OpCode::Create | OpCode::Create2 | OpCode::CreateContainer) => {
            if let Some(create) = record::<CreateRequest>(body) {
                let _ = validate_path(&create.path);
                let _ = validate_sequential_path(&create.path);
            }
        }
        Some(OpCode::CreateTtl) => drop(record::<CreateTtlRequest>(body)),
        Some(OpCode::Delete) => drop(record::<DeleteRequest>(body)),
        Some(OpCode::Exists | OpCode::GetData | OpCode::GetChildren | OpCode::GetChildren2) => {
            if let Some(read) = record::<PathWatch>(body) {
                let _ = validate_path(&read.path);
            }
        }
        Some(OpCode::SetData) => drop(record::<SetDataRequest>(body)),
        Some(OpCode::SetAcl) => drop(record::<SetAclRequest>(body)),
        Some(OpCode::Sync) => drop(record::<SyncRequest>(body)),
        Some(OpCode::Check) => drop(record::<CheckVersionRequest>(body)),
        Some(OpCode::Multi | OpCode::MultiRead) => {
            returns(body, MultiRequest::decode, MultiRequest::encode);
        }
        Some(OpCode::Reconfig) => drop(record::<ReconfigRequest>(body)),
        Some(OpCode::CheckWatches | OpCode::RemoveWatches) => drop(record::<WatchesRequest>(body)),
        Some(OpCode::Auth) => {
            if let Some(auth) = record::<AuthPacket>(body) {
                let _ = node_wire::credentials::digest_identity(&auth.auth.unwrap_or_default());
            }
        }
        Some(OpCode::SetWatches) => drop(record::<SetWatches>(body)),
        Some(OpCode::SetWatches2) => drop(record::<SetWatches2>(body)),
        Some(OpCode::Sasl) => drop(record::<SaslPacket>(body)),
        Some(OpCode::AddWatch) => drop(record::<AddWatchRequest>(body)),
        Some(OpCode::GetAcl | OpCode::GetEphemerals | OpCode::GetAllChildrenNumber) => {
            drop(record::<PathOnly>(body))
        }
        // These have no body, or come from a member itself.
        Some(
            OpCode::Ping
            | OpCode::WhoAmI
            | OpCode::CreateSession
            | OpCode::CloseSession
            | OpCode::DeleteContainer
            | OpCode::Error,
        )
        | None => {}
    }
}

fn reply_body(body: &Bytes) {
    let _ = record::<WatcherEvent>(body);
    let _ = record::<CreateResponse>(body);
    let _ = record::<Create2Response>(body);
    let _ = record::<ExistsResponse>(body);
    let _ = record::<GetDataResponse>(body);
    let _ = record::<SetDataResponse>(body);
    let _ = record::<GetAclResponse>(body);
    let _ = record::<SetAclResponse>(body);
    let _ = record::<ChildrenResponse>(body);
    let _ = record::<Children2Response>(body);
    let _ = record::<SyncResponse>(body);
    let _ = record::<EphemeralsResponse>(body);
    let _ = record::<AllChildrenNumberResponse>(body);
    let _ = record::<WhoAmIResponse>(body);
    let _ = record::<ErrorResponse>(body);
    let _ = record::<SaslPacket>(body);
    returns(body, MultiResponse::decode, MultiResponse::encode);
}

/// Cuts a stream into frames, once whole and once as it might come: the same frames, and written the same.
fn frames(input: &[u8]) -> Vec<Bytes> {
    let mut whole = BytesMut::from(input);
    let frames = take_all(&mut whole);
    let mut dribble = BytesMut::new();
    let mut slowly = Vec::new();
    for piece in input.chunks(1 + input.len() / 7) {
        dribble.extend_from_slice(piece);
        slowly.extend(take_all(&mut dribble));
    }
    assert_eq!(frames, slowly, "frames are the same however they come");
    let mut again = BytesMut::new();
    for frame in &frames {
        put_frame(&mut again, |w| w.raw(frame));
    }
    assert!(input.starts_with(&again), "frames are written as they were read");
    frames
}

fn take_all(buffer: &mut BytesMut) -> Vec<Bytes> {
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = within(FRAME, 0, || take_frame(buffer, LIMIT)) {
        frames.push(frame);
    }
    frames
}
