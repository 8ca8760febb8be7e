//! A forwarded write that is slow to come back is forwarded again.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use node_core::Phase;
use node_core::io::{ConnId, Effect, Input, Now};
use node_wire::client::OpCode;
use node_wire::ids::SessionId;
use node_wire::quorum::{ForwardedRequest, PacketType, QuorumPacket};
use node_wire::txn::Entry;

use crate::wrapper::{Inner, Wrapper, left_role, packet};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "double-apply",
    origin: "retries without identity",
    summary: "a forwarded write is applied twice",
    wrapper: |_| Some(Box::new(OnTheirWay::default())),
    recipe: Ok(Recipe { nemesis: "pause-leader,partition-oneway", workload: "append", flags: "", tries: 5 }),
    ..USUAL
};

/// A write is slow to come back after this part of the peer time-out.
const SLOW: u32 = 2;

/// Writes on their way, oldest first.
#[derive(Clone, Debug, Default)]
struct OnTheirWay {
    forwarded: Vec<Forwarded>,
    /// What was proposed: its zxid, and whose request it is.
    proposed: VecDeque<(i64, SessionId, i32)>,
}

#[derive(Clone, Debug)]
struct Forwarded {
    at: Duration,
    conn: ConnId,
    session: SessionId,
    cxid: i32,
    packet: QuorumPacket,
}

impl Hash for OnTheirWay {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { forwarded, proposed } = self;
        for Forwarded { at, conn, session, cxid, packet } in forwarded {
            (at, conn, session, cxid, &packet.data).hash(state);
        }
        proposed.hash(state);
    }
}

impl OnTheirWay {
    fn heard(&mut self, packet: &QuorumPacket) {
        match packet.kind {
            PacketType::Proposal => {
                if let Ok(entry) = Entry::decode(packet.data.clone().unwrap_or_default()) {
                    let header = &entry.header;
                    self.proposed.push_back((packet.zxid, header.session, header.cxid));
                }
            }
            PacketType::Commit => {
                while let Some(&(zxid, session, cxid)) = self.proposed.front()
                    && zxid <= packet.zxid
                {
                    self.proposed.pop_front();
                    self.forwarded.retain(|write| (write.session, write.cxid) != (session, cxid));
                }
            }
            _ => {}
        }
    }

    fn sent(&mut self, at: Duration, conn: ConnId, packet: &QuorumPacket) {
        let decoded = ForwardedRequest::decode(packet.data.clone().unwrap_or_default(), Vec::new());
        if let (PacketType::Request, Ok(ForwardedRequest { session, cxid, op, .. })) = (packet.kind, decoded)
            && ![OpCode::Sync.code(), OpCode::CreateSession.code()].contains(&op)
        {
            self.forwarded.push(Forwarded { at, conn, session, cxid, packet: packet.clone() });
        }
    }
}

impl Wrapper for OnTheirWay {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        if let Some((_, packet)) = packet(&input) {
            self.heard(packet);
        }
        let tick = matches!(input, Input::Tick);
        let before = out.len();
        inner.step(now, input, out);
        if left_role(&out[before..]) {
            *self = Self::default();
        }
        let follows = inner.follows_in(Phase::Broadcast);
        for effect in &out[before..] {
            if let (true, Effect::Send { conn, packet }) = (follows, effect) {
                self.sent(now.mono, *conn, packet);
            }
        }
        if tick && follows {
            let slow = inner.config.peer_timeout / SLOW;
            let due = self.forwarded.partition_point(|write| write.at + slow <= now.mono);
            // It may be lost: it is sent once more. The leader can't tell it from a new one.
            for Forwarded { conn, packet, .. } in self.forwarded.drain(..due) {
                out.push(Effect::Send { conn, packet });
            }
        }
    }
}
