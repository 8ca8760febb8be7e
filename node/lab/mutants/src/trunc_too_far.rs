//! TRUNC cuts one entry more than it was told.

use node_core::MemberView;
use node_core::io::{Effect, Input, Now};
use node_wire::ids::Zxid;
use node_wire::quorum::PacketType;

use crate::wrapper::{Inner, Wrapper};
use crate::{CHOSEN_STEP, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "trunc-too-far",
    origin: "ZOOKEEPER-1154",
    summary: "TRUNC cuts one transaction more than it should",
    wrapper: |_| Some(Box::new(CutsOneMore)),
    recipe: Err(CHOSEN_STEP),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct CutsOneMore;

impl Wrapper for CutsOneMore {
    fn step(&mut self, inner: &mut Inner, now: Now, mut input: Input, out: &mut Vec<Effect>) {
        if let Input::Packet { packet, .. } = &mut input
            && packet.kind == PacketType::Trunc
        {
            let (entries, _) = inner.member.history();
            let cut = Zxid::from_wire(packet.zxid);
            let earlier = entries.iter().map(|entry| entry.zxid()).rfind(|zxid| *zxid < cut);
            // Behind what is in memory is only what is applied, and that can't be cut by anybody.
            let floor = inner.member.last_applied();
            let further = earlier.unwrap_or(floor).max(floor);
            if further < cut {
                packet.zxid = further.to_wire();
            }
        }
        inner.step(now, input, out);
    }
}
