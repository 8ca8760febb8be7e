//! Entries that waited for the disk when the role ended are written behind the cut of the next one: two
//! writers on one log, the old one slower than the TRUNC.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use node_core::io::{Effect, Input, Now, StoreOp};
use node_core::{MemberView, Role};
use node_wire::txn::Entry;

use crate::wrapper::{Inner, Wrapper, added, left_role};
use crate::{CHOSEN_STEP, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "stale-log-writer",
    origin: "ZOOKEEPER-4712, 4541",
    summary: "the old log writer still appends after a rejoin has cut the log",
    wrapper: |_| Some(Box::new(Writers::default())),
    recipe: Err(CHOSEN_STEP),
    ..USUAL
};

/// Two writers of one log.
#[derive(Clone, Debug, Default)]
struct Writers {
    /// What the writer of this role has not written.
    writing: VecDeque<(u64, Entry)>,
    /// What the writer of the last role had not written when that role ended.
    left: Vec<Entry>,
}

impl Hash for Writers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { writing, left } = self;
        for entry in writing.iter().map(|(_, entry)| entry).chain(left) {
            entry.bytes.hash(state);
        }
    }
}

impl Wrapper for Writers {
    fn step(&mut self, inner: &mut Inner, now: Now, input: Input, out: &mut Vec<Effect>) {
        if let Input::Stored { ticket } = input {
            self.writing.retain(|(written, _)| *written > ticket);
        }
        let had_role = inner.member.status().role != Role::Looking;
        let mut effects = Vec::new();
        inner.step(now, input, &mut effects);
        if had_role && left_role(&effects) {
            self.left = self.writing.iter().map(|(_, entry)| entry.clone()).collect();
        }
        for effect in effects {
            let mut slower = Vec::new();
            match &effect {
                Effect::Store { ticket, op: StoreOp::Append(entry) } => {
                    self.writing.push_back((*ticket, entry.clone()));
                }
                Effect::Store { op: StoreOp::Truncate(cut), .. } => {
                    slower = std::mem::take(&mut self.left);
                    slower.retain(|entry| entry.zxid() > *cut);
                    self.writing.retain(|(_, entry)| entry.zxid() <= *cut);
                }
                Effect::Store { op: StoreOp::Install(_), .. } => self.writing.clear(),
                _ => {}
            }
            out.push(effect);
            out.extend(slower.into_iter().map(|entry| added(StoreOp::Append(entry))));
        }
    }
}
