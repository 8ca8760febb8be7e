//! The promise of an epoch is not kept on disk: both epoch files are written with the first entry of the
//! epoch, as when the epoch was told from the log. One without entries is forgotten in a crash, and given a
//! second time.
//!
//! To forget acceptedEpoch alone is a bug as well, but two other rules hide it: a promise counts only while
//! its connection lasts, and the log lets no currentEpoch be written beyond acceptedEpoch.

use node_core::MemberView;
use node_core::io::{Effect, Input, Now, StoreOp};
use node_wire::ids::Epoch;

use crate::wrapper::{Inner, Wrapper, added};
use crate::{Spec, USUAL, VIRTUAL_DISK};

pub(crate) static SPEC: Spec = Spec {
    name: "epoch-forgotten",
    origin: "ZOOKEEPER-1653 and its like",
    summary: "an epoch is promised and not written before its first entry",
    wrapper: |found| Some(Box::new(Filed(found.accepted_epoch))),
    recipe: Err(VIRTUAL_DISK),
    ..USUAL
};

/// The epoch in the acceptedEpoch file.
#[derive(Clone, Debug, Hash)]
struct Filed(Epoch);

impl Filed {
    /// There is something of an epoch to write, and the epoch goes with it.
    fn file(&mut self, epoch: Epoch, current: Epoch, out: &mut Vec<Effect>) {
        if epoch > self.0 {
            self.0 = epoch;
            out.push(added(StoreOp::AcceptedEpoch(epoch)));
            if epoch == current {
                out.push(added(StoreOp::CurrentEpoch(epoch)));
            }
        }
    }
}

impl Wrapper for Filed {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        let current = inner.member.status().current_epoch;
        for effect in effects {
            let Effect::Store { ticket, op } = effect else {
                out.push(effect);
                continue;
            };
            let op = match op {
                StoreOp::AcceptedEpoch(_) => StoreOp::AcceptedEpoch(self.0),
                StoreOp::CurrentEpoch(epoch) if epoch > self.0 => StoreOp::AcceptedEpoch(self.0),
                op => op,
            };
            match &op {
                StoreOp::Append(entry) => self.file(entry.zxid().epoch(), current, out),
                StoreOp::Install(image) => self.file(image.zxid.epoch(), current, out),
                _ => {}
            }
            out.push(Effect::Store { ticket, op });
        }
    }
}
