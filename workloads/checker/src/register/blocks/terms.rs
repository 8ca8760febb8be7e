//! What the online test is told and what it answers.

use super::{Contradiction, Moment};

/// A value of a register; none is one that nobody wrote.
pub type Shown = Option<i64>;

/// What a client asks of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// What does it hold?
    Read,
    /// It shall hold this.
    Write(i64),
    /// It shall hold `to` if it holds `from`.
    Cas {
        /// What it has to hold.
        from: Shown,
        /// What it holds then.
        to: i64,
    },
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The record of its invocation.
    pub(crate) record: u64,
    /// When it was called.
    pub(crate) at: Moment,
    /// Its place in the window.
    pub(crate) ticket: u64,
    /// What it asks for.
    pub(crate) asked: Asked,
}

/// Why the test ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// No order exists.
    Violation(Contradiction<u64>, Vec<Shown>),
    /// This test can't decide.
    Search(Undecided),
}

/// Why the online test can't decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// A value was written again while it may still have been there.
    Repeated(i64),
    /// No place was found for a refused compare-and-set (by the record of its invocation).
    Refused(u64),
}

impl std::fmt::Display for Undecided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Repeated(value) => {
                write!(f, "{value} was written again while it may still have been there")
            }
            Self::Refused(record) => {
                write!(
                    f,
                    "no place was found at once for the compare-and-set of record {record}, which was refused"
                )
            }
        }
    }
}

/// The rules, so that tests can break one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A block that grows conflicts with what began inside the stretch.
    GrowsOver,
    /// A block that grows conflicts with the stretch that it began in.
    BeganInside,
    /// Who is open counts with its call when its value is seen.
    OpenCounts,
    /// A killer must have begun before m.
    KillerBeforeOldest,
    /// A killer kills only what began before its last call.
    KilledBeforeLast,
    /// The killer itself stays.
    KillerStays,
    /// A segment is forgotten only when a later one had returned before m.
    ShortenBeforeOldest,
    /// Later segments come later.
    Inverted,
    /// One value is taken once.
    TakenTwice,
    /// A chain has a beginning.
    Cycle,
    /// A refusal does not lie between two that need its value.
    Held,
    /// Nobody sees what was denied.
    Denied,
    /// A value that repeats is ambiguous.
    Repeated,
    /// A refusal stands somewhere if its value had not begun at its call.
    NotBegun,
    /// A refusal may stand after what replaced its value before it returned,
    ReplacedInTime,
    /// if that certainly came later.
    MustFollow,
}
