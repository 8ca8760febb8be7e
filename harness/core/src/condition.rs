//! What a world can be told to be like: conditions of links, processes and clocks, as values.
//!
//! A mechanism says which of them its faults change. A world that lacks one says why, and then the mechanism
//! is unsupported there.

use std::time::Duration;

use runs::member::MemberId;

use crate::cut::{Pair, Severing};

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// Whether a direction between members lets anything pass.
    Passage,
    /// How long what passes takes longer.
    Delay,
    /// Whether a process runs.
    Process,
    /// How far a wall clock is off.
    Clock,
    /// What a disk does with what it is asked for.
    Disk,
}

/// By how much what goes one way takes longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// All of it.
    pub latency: Duration,
    /// Some of it, by up to so much more. What was sent first still comes first.
    pub jitter: Duration,
}

impl Delay {
    /// Both one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { latency: self.latency + other.latency, jitter: self.jitter + other.jitter }
    }

    /// At most.
    #[must_use]
    pub fn most(self) -> Duration {
        self.latency + self.jitter
    }

    /// Whether nothing takes longer.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// What a direction between members is like while a fault is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCondition {
    /// Nothing passes, and so it is refused.
    pub severed: Option<Severing>,
    /// What passes takes longer.
    pub delay: Delay,
}

impl LinkCondition {
    /// Both at once.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { severed: self.severed.max(other.severed), delay: self.delay.and(other.delay) }
    }
}

/// Something that is otherwise while a fault is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A direction between members.
    Link(Pair, LinkCondition),
    /// A member's process stands still.
    Stopped(MemberId),
    /// A member has no process; it is started again at the end.
    Ended {
        /// Whose.
        member: MemberId,
        /// Whether what was not synced is lost.
        loses_unsynced: bool,
    },
    /// A member's wall clock is off.
    Clock {
        /// Whose.
        member: MemberId,
        /// By how much, against the true one.
        offset_ns: i64,
    },
}
