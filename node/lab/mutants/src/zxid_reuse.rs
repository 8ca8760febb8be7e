//! A new leader numbers its proposals on from the last zxid, in the old epoch.

use node_core::Rules;
use node_wire::ids::{Epoch, Zxid};

use crate::{CHOSEN_STEP, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "zxid-reuse",
    origin: "epoch not in the zxid",
    summary: "a re-elected leader uses the zxids of its last epoch again",
    rules: &ZxidReuse,
    recipe: Err(CHOSEN_STEP),
    ..USUAL
};

#[derive(Debug)]
struct ZxidReuse;

impl Rules for ZxidReuse {
    fn beginning(&self, _: Epoch, history: Zxid) -> Zxid {
        history
    }
}
