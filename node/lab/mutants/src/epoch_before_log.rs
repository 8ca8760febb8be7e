//! currentEpoch is written before the synchronized transactions: these are held in memory until NEWLEADER
//! comes, and follow the epoch file to the disk. The ACK waits for all of it; a crash between the two does
//! the harm.

use std::hash::{Hash, Hasher};

use node_core::Phase;
use node_core::io::{Effect, Input, Now, StoreOp};

use crate::wrapper::{Inner, Wrapper, left_role};
use crate::{Spec, USUAL, VIRTUAL_DISK};

pub(crate) static SPEC: Spec = Spec {
    name: "epoch-before-log",
    origin: "ZOOKEEPER-4643",
    summary: "currentEpoch is written before the log that it vouches for",
    wrapper: |_| Some(Box::new(Held::default())),
    recipe: Err(VIRTUAL_DISK),
    ..USUAL
};

/// What waits in memory for NEWLEADER.
#[derive(Clone, Debug, Default)]
struct Held {
    appends: Vec<Effect>,
    /// NEWLEADER came.
    vouched: bool,
}

impl Hash for Held {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { appends, vouched } = self;
        vouched.hash(state);
        for effect in appends {
            if let Effect::Store { op: StoreOp::Append(entry), .. } = effect {
                entry.bytes.hash(state);
            }
        }
    }
}

impl Wrapper for Held {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let synchronizing = inner.follows_in(Phase::Synchronization);
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        if left_role(&effects) {
            out.append(&mut self.appends);
            self.vouched = false;
        }
        for effect in effects {
            match effect {
                Effect::Store { op: StoreOp::Append(_), .. } if synchronizing && !self.vouched => {
                    self.appends.push(effect);
                }
                Effect::Store { op: StoreOp::CurrentEpoch(_), .. } => {
                    self.vouched = true;
                    out.push(effect);
                    out.append(&mut self.appends);
                }
                other => out.push(other),
            }
        }
    }
}
