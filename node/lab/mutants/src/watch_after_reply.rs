//! Events leave behind the answers: whoever asked for a change learns of it before its own watch does, and
//! whoever reads it too.

use node_core::io::{Effect, Input, Now};
use node_wire::client::XID_WATCH;

use crate::frames::xid_of;
use crate::wrapper::{Inner, Wrapper};
use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "watch-after-reply",
    origin: "events behind answers",
    summary: "a watch is told behind the reply that shows the change",
    wrapper: |_| Some(Box::new(TellsLast)),
    recipe: Err("needs clients that watch, and what they must be told"),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct TellsLast;

impl Wrapper for TellsLast {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        let mut events = Vec::new();
        for effect in effects {
            match &effect {
                Effect::Reply { frame, .. } if xid_of(frame) == Some(XID_WATCH) => events.push(effect),
                Effect::Reply { .. } => {
                    out.push(effect);
                    out.append(&mut events);
                }
                _ => out.push(effect),
            }
        }
        out.append(&mut events);
    }
}
