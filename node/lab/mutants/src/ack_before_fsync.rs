//! A follower or leader acknowledges a proposal before it is durable.

use node_core::io::{Effect, Input, Now, StoreOp};
use node_core::{MemberView, Phase};

use crate::wrapper::{Inner, Wrapper};
use crate::{Driver, Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "ack-before-fsync",
    origin: "the commonest shortcut of all",
    summary: "a proposal is acknowledged before it is durable",
    wrapper: |_| Some(Box::new(DoesNotWait)),
    driver: Driver::LazyDisk,
    recipe: Ok(Recipe { nemesis: "kill-all", workload: "register", flags: "", tries: 3 }),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct DoesNotWait;

impl Wrapper for DoesNotWait {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let before = out.len();
        inner.step(now, input, out);
        if inner.member.status().phase != Phase::Broadcast {
            return;
        }
        for effect in &out[before..] {
            if let Effect::Store { ticket, op: StoreOp::Append(_) } = effect {
                inner.queue.counts_as_durable(*ticket);
            }
        }
    }
}
