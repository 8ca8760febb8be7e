//! A snapshot is named after a newer zxid than it holds: its walk over the tree passed before the last
//! change.

use node_core::io::{Effect, Input, Now};
use node_core::{MemberView, Rules, Zab};
use node_wire::snapshot::Image;

use crate::wrapper::{Inner, Wrapper};
use crate::{CHOSEN_STEP, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "snapshot-misses-change",
    origin: "ZOOKEEPER-2872, 3144",
    summary: "a snapshot misses a change that was made while it was taken",
    wrapper: |_| Some(Box::new(WalkedTooEarly)),
    recipe: Err(CHOSEN_STEP),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct WalkedTooEarly;

impl Wrapper for WalkedTooEarly {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let walked = inner.member.tree();
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::TakeSnapshot(taken) => {
                    let image = Image { zxid: taken.zxid(), ..walked.to_image() };
                    out.push(Effect::TakeSnapshot(Zab.restore(&image).snapshot()));
                }
                other => out.push(other),
            }
        }
    }
}
