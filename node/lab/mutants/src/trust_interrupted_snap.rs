//! A SNAP that broke off is taken for whole: its zxid is believed when it is announced, and when the stream
//! breaks the member goes on with its old tree and log in the belief that they reach so far.

use node_core::io::{Effect, Input, Now, Recovered};
use node_core::{MemberView, Role};
use node_wire::ids::Zxid;
use node_wire::quorum::PacketType;
use node_wire::snapshot::Image;

use crate::wrapper::{Inner, Wrapper, left_role, packet_of};
use crate::{Spec, USUAL, VIRTUAL_DISK};

pub(crate) static SPEC: Spec = Spec {
    name: "trust-interrupted-snap",
    origin: "ZOOKEEPER-3642, 2872",
    summary: "a SNAP that was interrupted half-way is trusted",
    wrapper: |_| Some(Box::new(Announced::default())),
    recipe: Err(VIRTUAL_DISK),
    ..USUAL
};

/// The zxid of the SNAP whose stream is on its way.
#[derive(Clone, Debug, Default, Hash)]
struct Announced(Option<i64>);

impl Wrapper for Announced {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        if let Some((_, packet)) = packet_of(&input, PacketType::Snap)
            && matches!(inner.member.status().role, Role::Following(_))
        {
            self.0 = Some(packet.zxid);
        }
        if matches!(input, Input::Image { .. }) {
            self.0 = None;
        }
        let before = out.len();
        inner.step(now, input, out);
        if left_role(&out[before..])
            && let Some(announced) = self.0.take()
        {
            let status = inner.member.status();
            let image = Image { zxid: Zxid::from_wire(announced), ..inner.member.tree().to_image() };
            let found = Recovered {
                accepted_epoch: status.accepted_epoch,
                current_epoch: status.current_epoch,
                image,
                entries: Vec::new(),
            };
            inner.become_another(found, now, out);
        }
    }
}
