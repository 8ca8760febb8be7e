//! A follower lets sessions expire that it has not heard of, wherever their clients are by now.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use node_core::Phase;
use node_core::io::{ConnId, Effect, Input, Now};
use node_wire::client::OpCode;
use node_wire::ids::SessionId;
use node_wire::quorum::ForwardedRequest;

use crate::frames::Sessions;
use crate::wrapper::{Inner, Wrapper, left_role};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "follower-expires",
    origin: "expiry by others than the leader",
    summary: "a follower lets a session expire",
    wrapper: |_| Some(Box::new(Heard::default())),
    recipe: Ok(Recipe {
        nemesis: "pause-leader,kill-one",
        workload: "ephemeral",
        flags: "--session-timeout 4s",
        tries: 5,
    }),
    ..USUAL
};

/// What a follower heard of sessions by itself.
#[derive(Clone, Debug, Default, Hash)]
struct Heard {
    sessions: Sessions,
    /// The connection to the leader.
    leader: Option<ConnId>,
    /// When the client of a session was last heard here, and its time-out.
    heard: BTreeMap<SessionId, (Duration, Duration)>,
}

impl Wrapper for Heard {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        match &input {
            Input::Dialled { conn, .. } => self.leader = Some(*conn),
            Input::ClientConnect { client, .. } => self.sessions.asked(*client),
            Input::ClientRequest { client, .. } if inner.follows_in(Phase::Broadcast) => {
                if let Some((session, timeout_ms)) = self.sessions.of(*client) {
                    let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
                    self.heard.insert(session, (now.mono, timeout));
                }
            }
            Input::ClientLost { client } => self.sessions.gone(*client),
            _ => {}
        }
        let tick = matches!(input, Input::Tick);
        let before = out.len();
        inner.step(now, input, out);
        for effect in &out[before..] {
            match effect {
                Effect::Reply { client, frame } => self.sessions.replied(*client, frame),
                Effect::CloseClient { client } => self.sessions.gone(*client),
                _ => {}
            }
        }
        if left_role(&out[before..]) {
            (self.leader, self.heard) = (None, BTreeMap::new());
        }
        if let (true, true, Some(conn)) = (tick, inner.follows_in(Phase::Broadcast), self.leader) {
            self.expire(now.mono, conn, out);
        }
    }
}

impl Heard {
    /// Sessions that were not heard of here are over, wherever their clients are by now.
    fn expire(&mut self, at: Duration, conn: ConnId, out: &mut Vec<Effect>) {
        let over = self.heard.iter().filter(|(_, (last, timeout))| *last + *timeout <= at);
        for session in over.map(|(session, _)| *session).collect::<Vec<_>>() {
            self.heard.remove(&session);
            let (op, payload) = (OpCode::CloseSession.code(), Bytes::new());
            let request = ForwardedRequest { session, cxid: 0, op, payload, auth: Vec::new() };
            out.push(Effect::Send { conn, packet: request.into_packet() });
        }
    }
}
