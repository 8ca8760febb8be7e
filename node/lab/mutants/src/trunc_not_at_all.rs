//! TRUNC cuts memory and leaves the log as it is.

use node_core::io::{Effect, Input, Now, StoreOp};

use crate::wrapper::{Inner, Wrapper};
use crate::{CHOSEN_STEP, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "trunc-not-at-all",
    origin: "ZOOKEEPER-1154, 962",
    summary: "TRUNC is acknowledged and the log stays as it was",
    wrapper: |_| Some(Box::new(CutsMemoryAlone)),
    recipe: Err(CHOSEN_STEP),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct CutsMemoryAlone;

impl Wrapper for CutsMemoryAlone {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                Effect::Store { ticket, op: StoreOp::Truncate(_) } => inner.queue.counts_as_durable(ticket),
                other => out.push(other),
            }
        }
    }
}
