//! Operations at one member, one after the other: the first ones of a run, and the last.
//!
//! Whoever is sent connects to that member and to no other, with a session of its own, and gives up when it is not
//! let in for long enough. What broke off is not tried again.

use std::collections::VecDeque;

use workloads::{Op, Outcome};

use crate::time::Time;

/// How long an errand may take to connect, and each of its operations to be answered.
pub(super) const CALM_PATIENCE_US: u64 = 5_000_000;

/// Operations to be done.
pub(super) struct Errand {
    todo: VecDeque<Op>,
    pub(super) done: Vec<(Op, Outcome)>,
    pub(super) over: bool,
    /// When it gives up connecting.
    until: Time,
}

impl Errand {
    /// These operations, one after the other. Connecting may take until then.
    pub(super) fn new(todo: Vec<Op>, until: Time) -> Self {
        Self { todo: todo.into(), done: Vec::new(), over: false, until }
    }

    /// The next operation; without one the errand is over.
    pub(super) fn next_operation(&mut self) -> Option<Op> {
        let next = self.todo.pop_front();
        self.over |= next.is_none();
        next
    }

    /// Whether a connection that did not come about, or broke, ends it.
    pub(super) fn failed_to_connect(&mut self, now: Time) -> bool {
        self.over |= now >= self.until || self.todo.is_empty();
        self.over
    }

    /// An operation came to an end. One that stays open is the last: its process must not go on.
    pub(super) fn note(&mut self, op: Op, outcome: Outcome) {
        if outcome.retires() {
            self.todo.clear();
        }
        self.done.push((op, outcome));
    }
}
