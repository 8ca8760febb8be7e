//! What came of a world: a violation or none, and the counts that say how much the answer is worth.

use std::fmt;

use node_core::Bug;

use crate::counters::Counters;
use crate::drawn::Drawn;

/// The promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Zab.tla: at any moment at most one member leads an epoch.
    Leadership1,
    /// Zab.tla: an epoch has one leader for ever.
    Leadership2,
    /// Zab.tla: what members deliver are prefixes of one sequence.
    PrefixConsistency,
    /// Zab.tla: what a member delivers, some primary has broadcast.
    Integrity,
    /// Zab.tla: of two members that deliver something, one delivers both.
    Agreement,
    /// Zab.tla: everybody delivers in the same order, without gaps.
    TotalOrder,
    /// Zab.tla: everybody delivers in the order of each primary's broadcasts, without gaps.
    LocalPrimaryOrder,
    /// Zab.tla: earlier epochs are delivered before later ones.
    GlobalPrimaryOrder,
    /// Zab.tla: a primary has delivered all of earlier epochs before it broadcasts.
    PrimaryIntegrity,
    /// What was committed is on the disks of a quorum, and in the history of every later leader.
    Durability,
    /// Equal places mean equal trees.
    SameTree,
    /// What was durable is found again after a crash.
    Recovery,
    /// currentEpoch is on a disk only behind the history that it vouches for.
    Vouching,
    /// A member answers only while its epoch stands, and from all that it was told to be committed.
    Serving,
    /// A member stopped although its disk was well.
    Halt,
    /// A member panicked.
    Panic,
    /// An answer that no client should get.
    Answer,
    /// What a session sees never goes back.
    SessionOrder,
    /// A sequential name is given once, and numbers follow time.
    UniqueNames,
    /// Versions that clients saw agree with each other and with real time.
    VersionOrder,
    /// Some order of the operations explains what the clients saw.
    Linearizability,
    /// What was added to a set is in every read of it that began afterwards.
    Set,
    /// All reads of a list are beginnings of one.
    Append,
    /// Ephemeral nodes live as long as their sessions and end with them, everywhere.
    Sessions,
    /// Sessions and ephemerals are what the committed transactions say, on every member.
    SessionsExact,
    /// A session expires only by its leader, and only when its client was silent for the whole time-out.
    Expiry,
    /// Every transaction was asked for, once, and every write's answer is its own transaction's.
    Requests,
    /// A leader's proposals are numbered within its epoch, from one upwards without gaps.
    Numbering,
    /// A healed ensemble elects, serves and converges in bounded time.
    Liveness,
    /// The committed sequence and the clients' history tell the same story. When they do not, the bench is wrong.
    AgreementOfChecks,
}

impl Rule {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leadership1 => "leadership 1",
            Self::Leadership2 => "leadership 2",
            Self::PrefixConsistency => "prefix consistency",
            Self::Integrity => "integrity",
            Self::Agreement => "agreement",
            Self::TotalOrder => "total order",
            Self::LocalPrimaryOrder => "local primary order",
            Self::GlobalPrimaryOrder => "global primary order",
            Self::PrimaryIntegrity => "primary integrity",
            Self::Durability => "durability",
            Self::SameTree => "same tree",
            Self::Recovery => "recovery",
            Self::Vouching => "vouching",
            Self::Serving => "serving",
            Self::Halt => "no halt",
            Self::Panic => "no panic",
            Self::Answer => "answers",
            Self::SessionOrder => "session order",
            Self::UniqueNames => "unique names",
            Self::VersionOrder => "version order",
            Self::Linearizability => "linearizability",
            Self::Set => "set",
            Self::Append => "append",
            Self::Sessions => "sessions end",
            Self::SessionsExact => "sessions exact",
            Self::Expiry => "expiry",
            Self::Requests => "requests done once",
            Self::Numbering => "numbering",
            Self::Liveness => "liveness",
            Self::AgreementOfChecks => "agreement of checks",
        }
    }

    /// True for what only a look inside the members can see; the rest is what clients saw, or did not get.
    pub fn is_inside(self) -> bool {
        match self {
            Self::Leadership1
            | Self::Leadership2
            | Self::PrefixConsistency
            | Self::Integrity
            | Self::Agreement
            | Self::TotalOrder
            | Self::LocalPrimaryOrder
            | Self::GlobalPrimaryOrder
            | Self::PrimaryIntegrity
            | Self::Durability
            | Self::SameTree
            | Self::Recovery
            | Self::Vouching
            | Self::Serving
            | Self::SessionsExact
            | Self::Expiry
            | Self::Requests
            | Self::Numbering
            | Self::Halt
            | Self::Panic
            | Self::AgreementOfChecks => true,
            Self::Answer
            | Self::Set
            | Self::Append
            | Self::SessionOrder
            | Self::UniqueNames
            | Self::VersionOrder
            | Self::Linearizability
            | Self::Sessions
            | Self::Liveness => false,
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
    /// Demand that a quorum that is connected is led while faults last, and not only after healing.
    pub progress: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { plant: None, trace: false, look_inside: true, progress: true }
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
