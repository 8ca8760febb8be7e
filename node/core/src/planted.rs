//! What a follower with a planted bug does beside its duties, and what it must remember for it.
//!
//! Two bugs of the zoo need a memory of their own: a follower that forwards a write again when it is slow to come
//! back, and one that lets sessions expire by what it has heard itself. Both look harmless from where they stand,
//! which is why people write them; both forget that there are others. A clean follower never comes here.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_wire::client::{OpCode, Request};
use node_wire::ids::SessionId;
use node_wire::quorum::ForwardedRequest;

use crate::base::Base;
use crate::io::ConnId;
use crate::plant::{Bug, Plant};

/// A write is slow to come back after this part of the peer time-out.
const SLOW: u32 = 2;

/// What a bug remembers. Empty in a clean follower.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Writes on their way, oldest first.
    forwarded: Vec<(Duration, ForwardedRequest)>,
    /// When the client of a session was last heard here, and its time-out.
    heard: BTreeMap<SessionId, (Duration, Duration)>,
}

impl Memory {
    /// Mixes in what it holds, times as seen from `at`.
    pub(crate) fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self { forwarded, heard } = self;
        for (since, request) in forwarded {
            (at.saturating_sub(*since), request.session, request.cxid, request.op, &request.payload)
                .hash(state);
        }
        for (session, (since, timeout)) in heard {
            (session, at.saturating_sub(*since), timeout).hash(state);
        }
    }

    /// A write was forwarded.
    pub(crate) fn forwarded(&mut self, request: &ForwardedRequest, at: Duration) {
        self.forwarded.push((at, request.clone()));
    }

    /// The client of a session spoke.
    pub(crate) fn heard(&mut self, session: SessionId, timeout_ms: i32, at: Duration) {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        self.heard.insert(session, (at, timeout));
    }

    /// Time passed.
    pub(crate) fn tick<P: Plant>(&mut self, base: &mut Base<P>, conn: ConnId) {
        if base.plant.has(Bug::DoubleApply) {
            self.forward_again(base, conn);
        }
        if base.plant.has(Bug::FollowerExpires) {
            self.expire(base, conn);
        }
    }

    /// A write that is slow to come back may be lost: it is sent once more. The leader can't tell it from a new one.
    fn forward_again<P: Plant>(&mut self, base: &mut Base<P>, conn: ConnId) {
        let slow = base.config.peer_timeout / SLOW;
        let due = self.forwarded.partition_point(|(at, _)| *at + slow <= base.awake);
        for (_, request) in self.forwarded.drain(..due) {
            if base.clients.awaits(request.session, request.cxid) {
                forward(base, conn, &request);
            }
        }
    }

    /// Sessions that were not heard of here are over, wherever their clients are by now.
    fn expire<P: Plant>(&mut self, base: &mut Base<P>, conn: ConnId) {
        let awake = base.awake;
        let over: Vec<SessionId> = self
            .heard
            .iter()
            .filter(|(_, (last, timeout))| *last + *timeout <= awake)
            .map(|(session, _)| *session)
            .collect();
        for session in over {
            self.heard.remove(&session);
            let (op, payload) = (OpCode::CloseSession.code(), Bytes::new());
            forward(base, conn, &ForwardedRequest { session, cxid: 0, op, payload, auth: Vec::new() });
        }
    }
}

/// The planted bug: watches that are left again count from now on.
pub(crate) fn without_past(request: Request) -> Request {
    let ops = [OpCode::SetWatches.code(), OpCode::SetWatches2.code()];
    if !ops.contains(&request.op) || request.body.len() < 8 {
        return request;
    }
    let mut body = BytesMut::with_capacity(request.body.len());
    body.extend_from_slice(&i64::MAX.to_be_bytes());
    body.extend_from_slice(&request.body[8..]);
    Request { body: body.freeze(), ..request }
}

fn forward<P: Plant>(base: &mut Base<P>, conn: ConnId, request: &ForwardedRequest) {
    base.send(conn, request.clone().into_packet());
}
