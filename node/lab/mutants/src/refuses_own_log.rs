//! A member that starts takes what its log holds behind its snapshot for the remains of something broken, and
//! stops. Whoever was killed does not come back; as long as nobody is, nothing shows.

use node_core::io::{Effect, Input, Now};

use crate::wrapper::{Inner, Wrapper};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "refuses-own-log",
    origin: "ZOOKEEPER-1653, 2307",
    summary: "a member that was killed does not start on the log that it left",
    wrapper: |found| Some(Box::new(Refuses(!found.entries.is_empty()))),
    recipe: Ok(Recipe { nemesis: "kill-one", workload: "register", flags: "", tries: 2 }),
    ..USUAL
};

/// Whether there is a log behind the snapshot that it found.
#[derive(Clone, Debug, Hash)]
struct Refuses(bool);

impl Wrapper for Refuses {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        if self.0 {
            out.push(Effect::Halt { reason: "the log reaches beyond its snapshot".to_owned() });
            return;
        }
        inner.step(now, input, out);
    }
}
