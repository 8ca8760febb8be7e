//! A COMMIT between NEWLEADER and UPTODATE is forgotten, and UPTODATE does not make up for it. The next
//! COMMIT does: until then the member serves the past. (In ZooKeeper 3.8 the follower gives up instead.)

use node_core::io::{Effect, Input, Now};
use node_wire::quorum::PacketType;

use crate::wrapper::{Inner, Wrapper, left_role};
use crate::{CHOSEN_STEP, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "lost-commit-in-sync",
    origin: "ZOOKEEPER-4394",
    summary: "a COMMIT between NEWLEADER and UPTODATE is lost",
    wrapper: |_| Some(Box::new(Forgotten::default())),
    recipe: Err(CHOSEN_STEP),
    ..USUAL
};

/// What was forgotten since NEWLEADER.
#[derive(Clone, Debug, Default, Hash)]
struct Forgotten {
    acknowledging: bool,
    first: Option<i64>,
}

impl Wrapper for Forgotten {
    fn step(&mut self, inner: &mut Inner, now: Now, mut input: Input, out: &mut Vec<Effect>) {
        if let Input::Packet { packet, .. } = &mut input {
            match packet.kind {
                PacketType::NewLeader => *self = Self { acknowledging: true, first: None },
                PacketType::Commit | PacketType::CommitAndActivate if self.acknowledging => {
                    self.first.get_or_insert(packet.zxid);
                    return;
                }
                PacketType::UpToDate => {
                    let before = self.first.map_or(i64::MAX, |first| first - 1);
                    packet.zxid = packet.zxid.min(before);
                    *self = Self::default();
                }
                _ => {}
            }
        }
        let before = out.len();
        inner.step(now, input, out);
        if left_role(&out[before..]) {
            *self = Self::default();
        }
    }
}
