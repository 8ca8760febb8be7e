//! What a role had logged is applied when it ends, committed or not, and stays in the tree when the next
//! leader has it cut from the log.

use node_core::io::{Effect, Input, Now, Recovered};
use node_core::{MemberView, Role};
use node_wire::snapshot::Image;

use crate::wrapper::{Inner, Wrapper, left_role};
use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "uncommitted-in-memory",
    origin: "ZOOKEEPER-2845",
    summary: "uncommitted transactions stay in memory over a re-election",
    wrapper: |_| Some(Box::new(KeepsWhatItLogged)),
    recipe: Ok(Recipe {
        nemesis: "partition-leader,pause-leader",
        workload: "set",
        flags: "--interval 2s",
        tries: 5,
    }),
    ..USUAL
};

#[derive(Clone, Debug, Hash)]
struct KeepsWhatItLogged;

impl Wrapper for KeepsWhatItLogged {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        let had_role = inner.member.status().role != Role::Looking;
        let before = out.len();
        inner.step(now, input, out);
        if !(had_role && left_role(&out[before..])) {
            return;
        }
        let (entries, applied) = inner.member.history();
        let uncommitted = &entries[applied..];
        if uncommitted.is_empty() {
            return;
        }
        // The tree has it all, and passes for what is committed. What the next leader has cut stays in it.
        let status = inner.member.status();
        let mut tree = inner.member.tree().tree().clone();
        for entry in uncommitted {
            tree.apply(entry);
        }
        let image = Image { zxid: status.last_applied, ..tree.to_image() };
        let found = Recovered {
            accepted_epoch: status.accepted_epoch,
            current_epoch: status.current_epoch,
            image,
            entries: uncommitted.to_vec(),
        };
        inner.become_another(found, now, out);
    }
}
