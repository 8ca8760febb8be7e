//! Whether each watcher was told in the end what members then held.

use std::collections::BTreeMap;

use super::Broken;
use super::told::{Told, Watcher};
use crate::history::{History, Op, OpKind, Outcome, describe};

/// For how long a watcher is asked and answered, when nothing is broken any more, before what it is not told
/// counts as lost.
pub const PATIENCE_NS: u64 = 8_000_000_000;
/// How many answers that takes at least.
const LEAST_ANSWERS: usize = 5;

/// What members held of each register at the end, as the last reads show, and from when on.
pub(super) struct End<'a> {
    held: BTreeMap<u64, (i64, &'a Op)>,
    well_since_ns: Option<u64>,
}

/// A watcher that was not told the last change.
pub(super) enum Missed<'a> {
    /// Though it had time enough.
    Violation(Broken<'a>),
    /// And nobody knows whether it would have been.
    Unknown(String),
}

impl<'a> End<'a> {
    /// What the reads of a history say: the last of them, as far as they agree and nothing was written since.
    pub(super) fn of(history: &'a History, well_since_ns: Option<u64>) -> Self {
        let mut held: BTreeMap<u64, (i64, &Op)> = BTreeMap::new();
        let mut ends: Vec<&Op> = history.ops().iter().collect();
        ends.sort_by_key(|op| if op.outcome == Outcome::Ok { op.ret } else { op.call });
        for op in ends {
            match op.kind() {
                OpKind::Read { value: Some(value) } if op.outcome == Outcome::Ok => {
                    let first = held.entry(op.key).or_insert((value, op));
                    if first.0 != value {
                        *first = (value, op);
                    }
                }
                OpKind::Write { .. } if op.outcome == Outcome::Ok => {
                    held.remove(&op.key);
                }
                _ => {}
            }
        }
        Self { held, well_since_ns }
    }

    /// What a watcher should have been told and was not.
    pub(super) fn missed(
        &self,
        ops: &[&'a Op],
        told: &Told<'a>,
        watcher: &Watcher<'a>,
    ) -> Option<Missed<'a>> {
        let began = watcher.began.filter(|_| !watcher.is_gone())?;
        let number = watcher.number;
        let Some(&(value, read)) = ops.first().and_then(|op| self.held.get(&op.key)) else {
            return Some(Missed::Unknown(
                "nobody read at the end what watchers must have been told".to_owned(),
            ));
        };
        let last = told.wrote(value)?;
        let change = &told.changes[last];
        // What was told last may have happened later than the reads, where its fate is unknown.
        let is_open = |at: usize| told.changes[at].write.outcome == Outcome::Info;
        if watcher.told.contains_key(&last) || watcher.last.is_some_and(is_open) {
            return None;
        }
        // It began when this had happened, or may have.
        if watcher.told.is_empty() && began.ret > change.write.call {
            return None;
        }
        let since = self.well_since_ns.max(read.complete_ns);
        let asked = |op: &&&Op| op.outcome == Outcome::Ok && since.is_some_and(|since| op.invoke_ns >= since);
        let answers: Vec<&Op> = watcher.requests.iter().filter(asked).copied().collect();
        let from = answers.first().map_or(0, |op| op.invoke_ns);
        let to = answers.last().and_then(|op| op.complete_ns).unwrap_or(from);
        let seconds = (to - from) / 1_000_000_000;
        let words = format!(
            "{}, and {}, but watcher {number} was not told {value} in {seconds} s and {} answers",
            describe(change.write),
            describe(read),
            answers.len()
        );
        let is_well = self.well_since_ns.is_some();
        if !is_well || to - from < PATIENCE_NS || answers.len() < LEAST_ANSWERS {
            return Some(Missed::Unknown(format!("{words}: too little to say that it never would be")));
        }
        let mut shown = vec![change.write, read];
        shown.extend(answers.first().into_iter().chain(answers.last()));
        Some(Missed::Violation(Broken { kind: "the last change was not told", why: words, ops: shown }))
    }
}
