//! What a finished run is, as data: the types of `run.json` and `results.json`.
//!
//! The harness fills them, every report is a function of them, and so a run folder can be drawn again
//! years later without the cluster. Faults have a module of their own (`faults`), because their file is
//! written line by line while the run goes on; their types are named here too.
//!
//! Times are nanoseconds since the start of the run (`_ns`, the harness's monotonic clock) where they say
//! when, and milliseconds (`_ms`) where they say how long. Nothing here reads a clock or a file. What is
//! not known is `None` and is shown as such; it is never put down as zero.

use std::collections::BTreeMap;

use checker::durability::FinalState;
use checker::history::{Function, Vocabulary};
use checker::orders::Orders;
use checker::verdict::{CheckResult, Verdict};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use workloads::Promise;

use crate::cluster_kind::ClusterKind;
use crate::comes_back::ComesBack;
pub use crate::faults::{
    FaultCounts, FaultDetail, FaultLoad, FaultPhase, FaultRecord, FaultState, FaultTransition, OperationMix,
    Reach,
};
use crate::kinds::FaultKind;
pub use crate::outage::{KeyOutage, KeyOutages, Outage};
use crate::unsent::Unsent;

/// More voting members, or observers, than any run has.
pub const MOST_MEMBERS: u32 = 1000;

/// A folder may come from anybody, and what is drawn of a run grows with the square of its members.
fn some_members<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let members = u32::deserialize(from)?;
    if members > MOST_MEMBERS {
        return Err(D::Error::custom(format!(
            "{members} members are more than the {MOST_MEMBERS} that a run may have"
        )));
    }
    Ok(members)
}

/// `run.json`: everything that was decided before the first operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run's name, as given or made up; the first folder below the store.
    pub name: String,
    /// The start in UTC, RFC 3339: `2026-03-14T02:10:07Z`.
    pub started_utc: String,
    /// The seed from which everything random was drawn.
    pub seed: u64,
    /// Versions by what they are of: `harness`, `rustc`, `history format`.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// The machine that ran the harness.
    #[serde(default)]
    pub host: Host,
    /// Where the members ran.
    pub cluster: ClusterKind,
    /// Why that cluster: `asked for`, `auto: no Docker engine answers`.
    #[serde(default)]
    pub cluster_reason: String,
    /// What was tested.
    pub system: SystemInfo,
    /// Number of voting members, [`MOST_MEMBERS`] at most.
    #[serde(deserialize_with = "some_members")]
    pub nodes: u32,
    /// Number of observers, [`MOST_MEMBERS`] at most.
    #[serde(default, deserialize_with = "some_members")]
    pub observers: u32,
    /// The workload's name; `command` where a test of the user's own worked on the members.
    pub workload: String,
    /// That command and its arguments (`harness wrap`); none where the bench's own clients worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Which test template was asked for (`harness wrap --template`), `any` where one was to be drawn; none
    /// where no test commands worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// What the system promises of it, or was held to.
    #[serde(default)]
    pub promise: Promised,
    /// Whether it promises to come back when nothing is broken any more; none where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comes_back: Option<ComesBack>,
    /// Those of the workload's functions that its clients have, where they have not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<Function>>,
    /// What the workload's functions ask for, as far as a checker must be told, so that the folder is judged
    /// without a catalogue.
    #[serde(default, skip_serializing_if = "Vocabulary::is_empty")]
    pub vocabulary: Vocabulary,
    /// The nemeses with a fault in the schedule, in the order of the command line; empty when nothing was to
    /// be broken.
    pub nemeses: Vec<String>,
    /// Those that were asked for and found no room in the schedule, so that nothing is claimed about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tried: Vec<String>,
    /// What the kinds of faults are, by name, so that the folder is judged and drawn without a catalogue.
    #[serde(default)]
    pub kinds: BTreeMap<String, FaultKind>,
    /// Time from the onset of one fault to the onset of the next.
    pub interval_ms: u64,
    /// Operations asked for in a second, over all clients.
    pub rate: f64,
    /// Below this rate of answered operations the load counts as too weak.
    #[serde(default)]
    pub min_rate: Option<f64>,
    /// Number of client processes.
    pub concurrency: u32,
    /// Number of keys.
    pub keys: u32,
    /// How long the clients were to run.
    pub time_limit_ms: u64,
    /// How long a client waited for an answer before it called the fate of an operation unknown.
    #[serde(default)]
    pub operation_timeout_ms: Option<u64>,
    /// The silence after which a member gives up on another, as it was told; none where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// How long a session outlives the silence of an application, where clients are applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_ms: Option<u64>,
    /// Whether several nemeses could act at once.
    #[serde(default)]
    pub overlap: bool,
    /// The bug that was planted in the members, if one was.
    #[serde(default)]
    pub mutant: Option<String>,
    /// What was drawn from the seed, by name.
    #[serde(default)]
    pub drawn: BTreeMap<String, String>,
    /// Further settings of the ensemble that one needs to know to do it again: `tick`, `peer timeout`.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Variables of the environment that say how the system was set up, and were set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// The whole command line that repeats the run, behind those variables.
    pub repeat: String,
}

impl RunInfo {
    /// Every member, observers included.
    pub fn members(&self) -> impl Iterator<Item = u64> + use<> {
        1..=u64::from(self.nodes) + u64::from(self.observers)
    }

    /// Whether a test of the user's own worked on the members, and no clients of the bench's.
    pub fn is_wrapped(&self) -> bool {
        self.command.is_some() || self.template.is_some()
    }

    /// Whether a member has a vote.
    pub fn votes(&self, member: u64) -> bool {
        member <= u64::from(self.nodes)
    }
}

/// What a system promises of a workload, and who says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promised {
    /// What.
    pub what: Promise,
    /// Where it is said: a document, or who asked for it. Empty where the system's own description is enough.
    #[serde(default)]
    pub source: String,
}

/// The system under test, as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemInfo {
    /// Its name and version: `bundled`, `Apache ZooKeeper 3.8.0`, `image zookeeper`.
    pub name: String,
    /// What stands before the word *members* in a sentence: `bundled`.
    pub before: String,
    /// What stands behind it: `of the image zookeeper`.
    #[serde(default)]
    pub after: String,
    /// Which members are what, where they are not all of one kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// What stands beside a member's name for that reason: a word for each member that has one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<u64, String>,
    /// The words that it has for its orders.
    #[serde(default)]
    pub orders: Orders,
    /// By how many bits a place in its order is shifted for the epoch in which it was given; none where a
    /// place tells no epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_shift: Option<u32>,
    /// The longest pause that a healthy member may make between two attempts to find a leader.
    #[serde(default)]
    pub rejoin_ms: u64,
    /// How anybody learns which member leads.
    #[serde(default)]
    pub leader: LeaderSeen,
    /// Whether the member that a client asks is the one that answers for itself: no client follows a
    /// redirect, and no proxy stands between. Where that is not so only an answer can say who served.
    #[serde(default)]
    pub asked_serves: bool,
}

/// How anybody learns which member leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaderSeen {
    /// Members say it when it changes.
    #[default]
    Told,
    /// Each is asked again and again.
    Asked {
        /// The pause between two questions, in ms. A change is seen late by as much, and by what the answer
        /// takes.
        every_ms: u64,
    },
    /// Nobody does.
    Untold,
}

/// The machine that ran the harness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Processors that the harness may use.
    pub cores: u32,
    /// Memory in bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Name, release and architecture of the kernel.
    pub kernel: String,
    /// Anything else that was measured, by name: `fdatasync`, `loopback`.
    #[serde(default)]
    pub measured: BTreeMap<String, String>,
}

/// A change of a holder that a fault hit: what holds is an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderChange {
    /// The fault.
    pub fault: String,
    /// Its kind.
    pub kind: String,
    /// What was held.
    pub key: u64,
    /// When it was hit.
    pub injected_ns: u64,
    /// Until when the old holder was certain.
    pub certain_until_ns: u64,
    /// When the leader ended the old holder's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired_ns: Option<u64>,
    /// When the next holder was told that the old one is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_ns: Option<u64>,
    /// Since when the next one held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ns: Option<u64>,
    /// When the first write of the next one was taken, or of one behind it where it wrote nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_ns: Option<u64>,
}

/// `results.json`: what came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The verdict over all checks.
    pub verdict: Verdict,
    /// The exit status of the command that made the run.
    pub exit_status: u8,
    /// The verdict in a sentence or two of plain text. Left empty, the reports write it from the data.
    #[serde(default)]
    pub sentence: String,
    /// Every check, in the order in which it is to be read.
    pub checks: Vec<CheckResult>,
    /// The faults, counted.
    pub faults: FaultCounts,
    /// One entry for every change of leader.
    pub elections: Vec<Election>,
    /// The same by the kind of fault behind them, with percentiles.
    #[serde(default)]
    pub election_kinds: Vec<ElectionKind>,
    /// Intervals in which no client had a write acknowledged.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Which keys had an outage of their own; none where fewer than two were changed often enough to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_outages: Option<KeyOutages>,
    /// Changes of the holder behind faults that hit one, where clients are applications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holder_changes: Vec<HolderChange>,
    /// Commit latency as clients saw it, by class; a class without operations is absent.
    pub latency: BTreeMap<LatencyClass, LatencySummary>,
    /// From proposal to commit as leaders saw it, where they tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<LatencySummary>,
    /// Operations by outcome.
    #[serde(default)]
    pub operations: OperationCounts,
    /// What each member was, and when.
    #[serde(default)]
    pub member_spans: Vec<MemberSpan>,
    /// What each member held at the end of the keys that counterexamples are about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_at_the_end: Vec<FinalState>,
    /// How long each part of the run took.
    #[serde(default)]
    pub timings: Timings,
    /// What the bench itself did not send; none where it sent all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent: Option<Unsent>,
    /// The harness's own lateness: how far behind its schedule an operation was handed to a client at worst.
    #[serde(default)]
    pub lag_ms: Option<f64>,
    /// Whether the run was stopped before its time limit.
    #[serde(default)]
    pub interrupted: bool,
    /// What was judged while the run went on; none where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveCheck>,
    /// Nemeses of which no fault came into force, whether none was planned or none found its target: nothing
    /// is claimed about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tried: Vec<String>,
    /// What the reader should know beside the verdict, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The files of the run folder, for the links of the page.
    #[serde(default)]
    pub files: Vec<RunFile>,
    /// The seed again, so that this file alone is enough to repeat the run.
    pub seed: u64,
    /// The command that repeats the run, again.
    pub repeat: String,
}

impl Results {
    /// An empty result with this verdict, to be filled in.
    pub fn new(verdict: Verdict, run: &RunInfo) -> Self {
        Self {
            verdict,
            exit_status: 0,
            sentence: String::new(),
            checks: Vec::new(),
            faults: FaultCounts::default(),
            elections: Vec::new(),
            election_kinds: Vec::new(),
            holder_changes: Vec::new(),
            outages: Vec::new(),
            key_outages: None,
            latency: BTreeMap::new(),
            commits: None,
            operations: OperationCounts::default(),
            member_spans: Vec::new(),
            held_at_the_end: Vec::new(),
            timings: Timings::default(),
            unsent: None,
            lag_ms: None,
            interrupted: false,
            live: None,
            not_tried: Vec::new(),
            notes: Vec::new(),
            files: Vec::new(),
            seed: run.seed,
            repeat: run.repeat.clone(),
        }
    }
}

/// One change of leader, taken apart by the harness's own clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Election {
    /// `E1`, `E2`, ... in the order of time.
    pub id: String,
    /// The fault behind it; none when a member left its leader although nothing was broken.
    #[serde(default)]
    pub fault: Option<String>,
    /// Whether it counts from the healing of that fault, before which nobody could be elected or needed to
    /// be.
    #[serde(default)]
    pub healing: bool,
    /// From when the phases count: the injection, or the first member leaving its leader where no fault
    /// is behind it.
    pub fault_ns: u64,
    /// The leader before.
    #[serde(default)]
    pub from: Option<u64>,
    /// The leader after.
    pub to: u64,
    /// The epoch that it established.
    pub epoch: u32,
    /// When that epoch stood; none in the folders of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub established_ns: Option<u64>,
    /// Until the first member left its leader.
    #[serde(default)]
    pub detection_ms: Option<f64>,
    /// From there until a vote was decided.
    #[serde(default)]
    pub election_ms: Option<f64>,
    /// From there until the new epoch was established.
    #[serde(default)]
    pub sync_ms: Option<f64>,
    /// From there until a write that was due after the fault was acknowledged.
    #[serde(default)]
    pub first_write_ms: Option<f64>,
    /// All of it.
    #[serde(default)]
    pub total_ms: Option<f64>,
}

/// The changes of leader after one kind of fault. Percentiles are of the nearest rank, and none where too few
/// were measured to have one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ElectionKind {
    /// The kind of fault: `kill-leader`; `kill-all, healing` where they count from the healing; `no fault`.
    pub kind: String,
    /// How many there were.
    pub count: u64,
    /// How many of them were measured to the end.
    pub measured: u64,
    /// The median of their totals.
    #[serde(default)]
    pub p50_ms: Option<f64>,
    /// The ninetieth percentile.
    #[serde(default)]
    pub p90_ms: Option<f64>,
    /// The ninety-ninth percentile.
    #[serde(default)]
    pub p99_ms: Option<f64>,
    /// The longest.
    #[serde(default)]
    pub max_ms: Option<f64>,
    /// The median of the time until a member left its leader.
    #[serde(default)]
    pub detection_p50_ms: Option<f64>,
    /// The median of the time from there until a vote was decided.
    #[serde(default)]
    pub election_p50_ms: Option<f64>,
    /// The median of the time from there until the epoch was established.
    #[serde(default)]
    pub sync_p50_ms: Option<f64>,
    /// The median of the time from there until a write was acknowledged.
    #[serde(default)]
    pub first_write_p50_ms: Option<f64>,
}

/// The four phases of an election, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Until the first member left its leader.
    Detection,
    /// Until a vote was decided.
    Election,
    /// Until the epoch was established.
    Synchronization,
    /// Until a write was acknowledged.
    FirstWrite,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Detection, Self::Election, Self::Synchronization, Self::FirstWrite];

    /// The word used in every report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Detection => "detection",
            Self::Election => "election",
            Self::Synchronization => "synchronization",
            Self::FirstWrite => "first write",
        }
    }

    /// The word where room is short.
    pub fn short(self) -> &'static str {
        match self {
            Self::Synchronization => "sync",
            Self::Detection | Self::Election | Self::FirstWrite => self.name(),
        }
    }

    /// Why nobody knows how long it took, where that is so.
    pub fn why_unknown(self, election: &Election) -> &'static str {
        match (self, &election.fault) {
            (Self::Detection, None) => "no fault is behind it, so nothing was there to be noticed",
            (Self::Detection, Some(_)) => "no member said that it left its leader",
            (Self::Election | Self::Synchronization, _) => "no member said when the vote was decided",
            (Self::FirstWrite, _) => "no write that was due after it was acknowledged in the new epoch",
        }
    }

    /// How long it took in this election.
    pub fn of(self, election: &Election) -> Option<f64> {
        match self {
            Self::Detection => election.detection_ms,
            Self::Election => election.election_ms,
            Self::Synchronization => election.sync_ms,
            Self::FirstWrite => election.first_write_ms,
        }
    }
}

/// What a member was during an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSpan {
    /// The member's id.
    pub node: u64,
    /// Start of the interval.
    pub from_ns: u64,
    /// End of the interval.
    pub to_ns: u64,
    /// What it was.
    pub role: Role,
    /// In which epoch, where it had one.
    #[serde(default)]
    pub epoch: Option<u32>,
}

/// What a member can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// An established leader.
    Leading,
    /// Follows an established leader.
    Following,
    /// Answers clients, and tells nobody whom it follows.
    Answering,
    /// Looks for a leader, or is on its way to one.
    Looking,
    /// The process does not run.
    Down,
    /// The process is stopped by a signal.
    Paused,
}

impl Role {
    /// The word used in every report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leading => "leading",
            Self::Following => "following",
            Self::Answering => "answering",
            Self::Looking => "looking",
            Self::Down => "down",
            Self::Paused => "paused",
        }
    }
}

/// Which operations a latency summary is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyClass {
    /// Writes while nothing was broken.
    WriteCalm,
    /// Writes under a fault or shortly after it.
    WriteFault,
    /// Compare-and-sets that were done, while nothing was broken.
    CasCalm,
    /// Compare-and-sets that were done, under a fault or shortly after it.
    CasFault,
    /// Reads while nothing was broken.
    ReadCalm,
    /// Reads under a fault or shortly after it.
    ReadFault,
}

impl LatencyClass {
    /// The words used in every report.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteCalm => "writes, calm",
            Self::WriteFault => "writes, faults",
            Self::CasCalm => "cas, calm",
            Self::CasFault => "cas, faults",
            Self::ReadCalm => "reads, calm",
            Self::ReadFault => "reads, faults",
        }
    }

    /// Whether it is of operations under faults.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::WriteFault | Self::CasFault | Self::ReadFault)
    }
}

/// How long answered operations took, from when each was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of operations that were answered.
    pub count: u64,
    /// The median, nearest rank like the others.
    pub p50_ms: f64,
    /// The ninetieth percentile.
    pub p90_ms: f64,
    /// The ninety-ninth percentile.
    pub p99_ms: f64,
    /// The percentile 99.9.
    pub p999_ms: f64,
    /// The slowest.
    pub max_ms: f64,
    /// Points (percentile in 0 to 100, ms), rising, for the curve of the page.
    #[serde(default)]
    pub curve: Vec<(f64, f64)>,
    /// Number of operations by length, ten bins to a factor of ten: (upper end of the bin in ms, operations),
    /// rising, empty bins left out.
    #[serde(default)]
    pub histogram: Vec<(f64, u64)>,
}

/// Operations by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounts {
    /// All of them.
    pub total: OutcomeCounts,
    /// Each function of the workload by its name: `read`, `write`, `cas`.
    pub by_function: BTreeMap<String, OutcomeCounts>,
}

/// How operations ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    /// Operations begun.
    pub invoked: u64,
    /// Answered with success.
    pub ok: u64,
    /// Definitely without effect.
    pub fail: u64,
    /// Of those, compare-and-sets that found another value: an answer, and no failure.
    #[serde(default)]
    pub refused: u64,
    /// Of those that failed, the ones that no member was ever sent: no client was free or connected in time.
    #[serde(default)]
    pub unsent: u64,
    /// Fate unknown: open for ever.
    pub info: u64,
}

/// How long each part of the run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// From the start until every member served.
    #[serde(default)]
    pub start_ms: f64,
    /// The workload.
    #[serde(default)]
    pub workload_ms: f64,
    /// From the last operation until all members agreed again.
    #[serde(default)]
    pub recovery_ms: f64,
    /// Ending the members and removing what held them.
    #[serde(default)]
    pub stop_ms: f64,
    /// Judging the history.
    #[serde(default)]
    pub check_ms: f64,
    /// From the command to the verdict.
    #[serde(default)]
    pub total_ms: f64,
}

/// What was judged while the run went on. The verdict is never drawn from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveCheck {
    /// Operations judged.
    pub judged: u64,
    /// Why it was switched off, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
    /// The first violation, if it saw one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<LiveViolation>,
}

/// A violation, as it was seen while the run went on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveViolation {
    /// Names the operations and says why no order exists.
    pub sentence: String,
    /// When the answer came that cannot be.
    pub happened_ns: u64,
    /// When it was seen.
    pub seen_ns: u64,
    /// Whether the run was ended for it.
    #[serde(default)]
    pub ended_the_run: bool,
}

/// A file of the run folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// Its name relative to the page; a folder ends with `/`.
    pub name: String,
    /// What it holds, in a few words.
    pub what: String,
    /// Its size, where it is worth saying.
    #[serde(default)]
    pub bytes: Option<u64>,
}
