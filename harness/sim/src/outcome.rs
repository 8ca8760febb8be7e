//! What came of a world: a violation or none, and the counts that say how much the answer is worth.

use std::fmt;

use node_core::Bug;

use crate::counters::Counters;
use crate::drawn::Drawn;

/// The promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// At most one established leader per epoch.
    LeaderPerEpoch,
    /// The applied entries of every member are a prefix of one sequence.
    PrefixConsistency,
    /// What is logged was proposed by a leader, and a zxid names one entry for ever.
    Integrity,
    /// What was committed is on the disks of a quorum, and in the history of every later leader.
    Durability,
    /// Equal zxids mean equal trees.
    Agreement,
    /// What was durable is found again after a crash.
    Recovery,
    /// A member stopped although its disk was well.
    Halt,
    /// A member panicked.
    Panic,
    /// An answer that no client should get.
    Answer,
    /// What a session sees never goes back.
    SessionOrder,
    /// A sequential name is given once.
    UniqueNames,
    /// Versions that clients saw agree with each other and with real time.
    VersionOrder,
    /// Some order of the operations explains what the clients saw.
    Linearizability,
    /// Ephemeral nodes and sessions end, and end everywhere.
    Sessions,
    /// A healed ensemble elects, serves and converges in bounded time.
    Liveness,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::LeaderPerEpoch,
        Self::PrefixConsistency,
        Self::Integrity,
        Self::Durability,
        Self::Agreement,
        Self::Recovery,
        Self::Halt,
        Self::Panic,
        Self::Answer,
        Self::SessionOrder,
        Self::UniqueNames,
        Self::VersionOrder,
        Self::Linearizability,
        Self::Sessions,
        Self::Liveness,
    ];

    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::LeaderPerEpoch => "one leader per epoch",
            Self::PrefixConsistency => "prefix consistency",
            Self::Integrity => "integrity",
            Self::Durability => "durability",
            Self::Agreement => "agreement",
            Self::Recovery => "recovery",
            Self::Halt => "no halt",
            Self::Panic => "no panic",
            Self::Answer => "answers",
            Self::SessionOrder => "session order",
            Self::UniqueNames => "unique names",
            Self::VersionOrder => "version order",
            Self::Linearizability => "linearizability",
            Self::Sessions => "sessions end",
            Self::Liveness => "liveness",
        }
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// When, in virtual microseconds.
    pub at_us: u64,
    /// How, in a sentence.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}.{:06}: {}",
            self.rule.name(),
            self.at_us / 1_000_000,
            self.at_us % 1_000_000,
            self.sentence
        )
    }
}

/// How to run a world.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A bug planted in every member.
    pub plant: Option<Bug>,
    /// Keep the trace's lines.
    pub trace: bool,
    /// Look inside the members after each step. Without it only what clients see can convict, as on a real
    /// cluster.
    pub look_inside: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { plant: None, trace: false, look_inside: true }
    }
}

/// What came of one seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that was drawn before the world began.
    pub drawn: Drawn,
    /// The first violation.
    pub violation: Option<Violation>,
    /// What happened.
    pub counters: Counters,
    /// The hash of the trace: equal for equal runs.
    pub trace_hash: u64,
    /// The trace's lines, when asked for.
    pub trace: Vec<String>,
    /// Virtual milliseconds from healing until every member followed one established leader.
    pub election_ms: Option<u64>,
    /// Keys of registers whose check ran out of its budget: neither accused nor cleared.
    pub undecided: u64,
}
