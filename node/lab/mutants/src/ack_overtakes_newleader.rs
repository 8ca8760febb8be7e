//! The ACK of a proposal goes out before that of NEWLEADER: it answers to its own entry on disk. The leader
//! takes it for a breach of the protocol and hangs up, so that nobody can join while there are writes.

use std::collections::VecDeque;

use node_core::io::{ConnId, Effect, Input, Now, StoreOp};
use node_core::{MemberView, Phase};
use node_wire::ids::Zxid;
use node_wire::quorum::{PacketType, QuorumPacket};

use crate::wrapper::{Inner, Wrapper, left_role, packet};
use crate::{CHOSEN_STEP, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "ack-overtakes-newleader",
    origin: "ZOOKEEPER-4685",
    summary: "the ACK of a proposal overtakes that of NEWLEADER",
    wrapper: |_| Some(Box::new(Early::default())),
    recipe: Err(CHOSEN_STEP),
    ..USUAL
};

/// Proposals of the epoch that wait for the disk before NEWLEADER came.
#[derive(Clone, Debug, Default, Hash)]
struct Early(VecDeque<(u64, ConnId, Zxid)>);

impl Wrapper for Early {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        if let Input::Stored { ticket } = input {
            while let Some(&(waits_for, conn, zxid)) = self.0.front()
                && waits_for <= ticket
            {
                self.0.pop_front();
                let packet = QuorumPacket::new(PacketType::Ack, zxid.to_wire(), None);
                out.push(Effect::Send { conn, packet });
            }
        }
        let synchronizing = inner.follows_in(Phase::Synchronization);
        let from = packet(&input).map(|(conn, _)| conn);
        let before = out.len();
        inner.step(now, input, out);
        if left_role(&out[before..]) {
            self.0.clear();
        }
        let epoch = inner.member.status().accepted_epoch;
        for effect in &out[before..] {
            if let (true, Some(conn), Effect::Store { ticket, op: StoreOp::Append(entry) }) =
                (synchronizing, from, effect)
                && entry.zxid().epoch() == epoch
            {
                self.0.push_back((*ticket, conn, entry.zxid()));
            }
        }
    }
}
