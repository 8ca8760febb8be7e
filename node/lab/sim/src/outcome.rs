//! What came of a world: a violation or none, and the counts that say how much the answer is worth.

use std::fmt;

use lab_apps::mutants::Mutant as RecipeMutant;
use lab_mutants::Mutant;

use crate::counters::Counters;
use crate::drawn::{Drawn, Only};

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal, $inside:literal;)*) => {
        /// The promise that was broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$rule),*];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }

            /// True for what only a look inside the members can see; the rest is what clients saw, or did not
            /// get.
            pub fn is_inside(self) -> bool {
                match self {
                    $(Self::$rule => $inside,)*
                }
            }
        }
    };
}

// Each with its name, and whether only a look inside can see it.
rules! {
    /// Zab.tla: at any moment at most one member leads an epoch.
    Leadership1 = "leadership 1", true;
    /// Zab.tla: an epoch has one leader for ever.
    Leadership2 = "leadership 2", true;
    /// Zab.tla: what members deliver are prefixes of one sequence.
    PrefixConsistency = "prefix consistency", true;
    /// Zab.tla: what a member delivers, some primary has broadcast.
    Integrity = "integrity", true;
    /// Zab.tla: of two members that deliver something, one delivers both.
    Agreement = "agreement", true;
    /// Zab.tla: everybody delivers in the same order, without gaps.
    TotalOrder = "total order", true;
    /// Zab.tla: everybody delivers in the order of each primary's broadcasts, without gaps.
    LocalPrimaryOrder = "local primary order", true;
    /// Zab.tla: earlier epochs are delivered before later ones.
    GlobalPrimaryOrder = "global primary order", true;
    /// Zab.tla: a primary has delivered all of earlier epochs before it broadcasts.
    PrimaryIntegrity = "primary integrity", true;
    /// What was committed is on the disks of a quorum, and in the history of every later leader.
    Durability = "durability", true;
    /// Equal places mean equal trees.
    SameTree = "same tree", true;
    /// What was durable is found again after a crash.
    Recovery = "recovery", true;
    /// currentEpoch is on a disk only behind the history that it vouches for.
    Vouching = "vouching", true;
    /// A member answers only while its epoch stands, and from all that it was told to be committed.
    Serving = "serving", true;
    /// A member stopped although its disk was well.
    Halt = "no halt", true;
    /// A member panicked.
    Panic = "no panic", true;
    /// An answer that no client should get.
    Answer = "answers", false;
    /// What a session sees never goes back.
    SessionOrder = "session order", false;
    /// A sequential name is given once, and numbers follow time.
    UniqueNames = "unique names", false;
    /// Versions that clients saw agree with each other and with real time.
    VersionOrder = "version order", false;
    /// Some order of the operations explains what the clients saw.
    Linearizability = "linearizability", false;
    /// What was added to a set is in every read of it that began afterwards.
    Set = "set", false;
    /// All reads of a list are beginnings of one.
    Append = "append", false;
    /// Ephemeral nodes live as long as their sessions and end with them, everywhere.
    Sessions = "sessions end", false;
    /// Sessions and ephemerals are what the committed transactions say, on every member.
    SessionsExact = "sessions exact", true;
    /// A session expires only by its leader, and only when its client was silent for the whole time-out.
    Expiry = "expiry", true;
    /// Every transaction was asked for, once, and every write's answer is its own transaction's.
    Requests = "requests done once", true;
    /// A leader's proposals are numbered within its epoch, from one upwards without gaps.
    Numbering = "numbering", true;
    /// What a quota counts is there, and nothing goes beyond its hard limits.
    Quotas = "quotas", false;
    /// A membership changes by quorums of the old and of the new one; none that ruled is lost, or is two.
    Membership = "memberships", true;
    /// A client is told of every change that it watches, once, before any reply that shows it and not before
    /// it happened.
    Watches = "watches", false;
    /// A multi is done as a whole or not at all.
    Whole = "multi whole", false;
    /// Each request of a prober becomes the transaction that the specification makes of it, in the order of
    /// its session, and every member holds what came of it.
    Lawful = "lawful requests", true;
    /// Each answer to a prober is what the specification says for its place.
    LawfulAnswers = "lawful answers", false;
    /// A container or a node with a time to live goes when it is time, by the leader alone.
    Reaping = "reaping", true;
    /// At most one application of a line may act, by what it knows.
    OneLeads = "one leads", false;
    /// No session ends while its application is certain of it: a term rests on that.
    Certainty = "certain sessions live", true;
    /// A fencing token is given once, and later ones are larger.
    TokensGrow = "tokens grow", false;
    /// The end of one contender is told to one other at most.
    NoHerd = "no herd", false;
    /// In a healed world one of the applications that stand leads in bounded time.
    OneLeadsAtLast = "one leads at last", false;
    /// In a healed world no znode is left of an application that does not stand.
    NothingLeft = "nothing is left", false;
    /// A healed ensemble elects, serves and converges in bounded time.
    Liveness = "liveness", false;
    /// The committed sequence and the clients' history tell the same story. When they do not, the bench is
    /// wrong.
    AgreementOfChecks = "agreement of checks", true;
}

impl Rule {
    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
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
    pub mutant: Option<Mutant>,
    /// Keep the trace's lines.
    pub trace: bool,
    /// Look inside the members after each step. Without it only what clients see can convict, as on a real
    /// cluster.
    pub look_inside: bool,
    /// Demand that a quorum that is connected is led while faults last, and not only after healing.
    pub progress: bool,
    /// What every world has.
    pub only: Option<Only>,
    /// Somebody speaks for a member while a step of it works.
    pub pulse: bool,
    /// A bug planted in the recipe of every application.
    pub recipe: Option<RecipeMutant>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mutant: None,
            trace: false,
            look_inside: true,
            progress: true,
            only: None,
            pulse: true,
            recipe: None,
        }
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
