//! NEWLEADER is acknowledged as it comes, while the synchronized transactions wait for the disk. Both they
//! and currentEpoch behind them are still written in their order.

use node_core::io::{ConnId, Effect, Input, Now};
use node_wire::quorum::{PacketType, QuorumPacket};

use crate::wrapper::{Inner, Wrapper, left_role, packet_of};
use crate::{Spec, USUAL, VIRTUAL_DISK};

pub(crate) static SPEC: Spec = Spec {
    name: "ack-newleader-early",
    origin: "ZOOKEEPER-4646",
    summary: "NEWLEADER is acknowledged before the synchronized transactions are durable",
    wrapper: |_| Some(Box::new(Owed::default())),
    recipe: Err(VIRTUAL_DISK),
    ..USUAL
};

/// The ACK that went out early and will come again in its turn.
#[derive(Clone, Debug, Default, Hash)]
struct Owed(Option<(ConnId, i64)>);

impl Wrapper for Owed {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let new_leader = packet_of(&input, PacketType::NewLeader).map(|(conn, packet)| (conn, packet.zxid));
        let stored = matches!(input, Input::Stored { .. });
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        if left_role(&effects) {
            self.0 = None;
        } else if let Some((conn, zxid)) = new_leader {
            self.0 = Some((conn, zxid));
            let packet = QuorumPacket::new(PacketType::Ack, zxid, None);
            effects.insert(0, Effect::Send { conn, packet });
        } else if let (true, Some((owed, zxid))) = (stored, self.0)
            && let Some(again) = effects.iter().position(|effect| is_ack(effect, owed, zxid))
        {
            effects.remove(again);
            self.0 = None;
        }
        out.append(&mut effects);
    }
}

fn is_ack(effect: &Effect, to: ConnId, zxid: i64) -> bool {
    matches!(effect, Effect::Send { conn, packet }
        if *conn == to && packet.kind == PacketType::Ack && packet.zxid == zxid)
}
