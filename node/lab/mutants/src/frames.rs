//! What goes to clients, as far as a mutant must read or write it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use node_core::io::{ClientId, Effect};
use node_wire::client::{
    ConnectResponse, ErrorCode, OpCode, ReplyHeader, Request, WatcherEvent, XID_WATCH, put_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{Reader, Writer};

/// What is behind a frame's length.
fn body(frame: &Bytes) -> Option<Reader> {
    (frame.len() >= 4).then(|| Reader::new(frame.slice(4..)))
}

/// The xid of a reply. Of the answer to a connect request it is what stands there instead: the protocol's
/// version, 0.
pub(crate) fn xid_of(frame: &Bytes) -> Option<i32> {
    ReplyHeader::decode(&mut body(frame)?).ok().map(|header| header.xid)
}

/// The event that a watch saw, if this is one.
pub(crate) fn event(frame: &Bytes) -> Option<WatcherEvent> {
    let mut body = body(frame)?;
    let header = ReplyHeader::decode(&mut body).ok()?;
    if header.xid != XID_WATCH {
        return None;
    }
    WatcherEvent::decode(&mut body).ok()
}

/// A refusal.
pub(crate) fn refusal(xid: i32, zxid: Zxid, error: ErrorCode) -> Bytes {
    frame(|w| ReplyHeader { xid, zxid, err: error.code() }.encode(w))
}

fn frame(body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = BytesMut::new();
    put_frame(&mut buffer, body);
    buffer.freeze()
}

/// True for a request with this operation.
pub(crate) fn asks(request: &Request, op: OpCode) -> bool {
    request.op == op.code()
}

/// Which session is at which client, as the answers to their connect requests say.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Sessions {
    asked: BTreeSet<ClientId>,
    open: BTreeMap<ClientId, (SessionId, i32)>,
}

impl Sessions {
    /// A client asks to connect.
    pub(crate) fn asked(&mut self, client: ClientId) {
        self.asked.insert(client);
    }

    /// A client is answered.
    pub(crate) fn replied(&mut self, client: ClientId, frame: &Bytes) {
        if self.asked.remove(&client)
            && let Some(mut body) = body(frame)
            && let Ok(answer) = ConnectResponse::decode(&mut body)
            && answer.timeout_ms > 0
        {
            self.open.insert(client, (answer.session, answer.timeout_ms));
        }
    }

    /// A client is gone.
    pub(crate) fn gone(&mut self, client: ClientId) {
        self.asked.remove(&client);
        self.open.remove(&client);
    }

    /// The session of a client, and its time-out in milliseconds.
    pub(crate) fn of(&self, client: ClientId) -> Option<(SessionId, i32)> {
        self.open.get(&client).copied()
    }
}

/// Requests of each client that are not answered.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Unanswered(BTreeMap<ClientId, u32>);

impl Unanswered {
    /// A client asks.
    pub(crate) fn asked(&mut self, client: ClientId) {
        *self.0.entry(client).or_default() += 1;
    }

    /// Clients are answered, or gone.
    pub(crate) fn saw(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Reply { client, frame } if xid_of(frame) != Some(XID_WATCH) => {
                    if let Some(unanswered) = self.0.get_mut(client) {
                        *unanswered = unanswered.saturating_sub(1);
                    }
                }
                Effect::CloseClient { client } => self.gone(*client),
                _ => {}
            }
        }
    }

    /// A client is gone.
    pub(crate) fn gone(&mut self, client: ClientId) {
        self.0.remove(&client);
    }

    /// True when all that a client asked is answered: who is answered now is not answered out of its turn.
    pub(crate) fn is_idle(&self, client: ClientId) -> bool {
        self.0.get(&client).is_none_or(|unanswered| *unanswered == 0)
    }
}
