//! Operations at one member, one after the other: the first ones of a run, and the last.
//!
//! Whoever is sent connects to that member and to no other, with a session of its own, and gives up when it
//! is not let in for long enough. What broke off is not tried again.

use std::collections::VecDeque;

use workloads::{Op, Outcome};

use harness_world::time::Time;

/// How long a one-off client may take to connect, and each of its operations to be answered.
pub(super) const CALM_PATIENCE_US: u64 = 5_000_000;

/// The pause after the first attempt to connect that failed, and the longest.
const PAUSE_US: (u64, u64) = (5_000, 50_000);

/// Operations to be done.
pub(super) struct OneOff {
    todo: VecDeque<Op>,
    pub(super) done: Vec<(Op, Outcome)>,
    pub(super) over: bool,
    /// Under which number.
    pub(super) process: u64,
    /// When it gives up connecting.
    until: Time,
    pause_us: u64,
}

impl OneOff {
    /// These operations, one after the other. Connecting may take until then.
    pub(super) fn new(process: u64, todo: Vec<Op>, until: Time) -> Self {
        Self { todo: todo.into(), done: Vec::new(), over: false, process, until, pause_us: PAUSE_US.0 }
    }

    /// Its member took it: pauses are short again.
    pub(super) fn connected(&mut self) {
        self.pause_us = PAUSE_US.0;
    }

    /// How long it waits before it tries to connect again.
    pub(super) fn pause_us(&mut self) -> u64 {
        let longer = (self.pause_us * 3 / 2).min(PAUSE_US.1);
        std::mem::replace(&mut self.pause_us, longer)
    }

    /// The next operation; without one the one-off client is over.
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
