//! What was seen beside the history, as `observed.json` keeps it: judging a run again needs nothing else.

use checker::durability::FinalState;
use serde::{Deserialize, Serialize};

use crate::clock::RunNs;
use crate::events::Stamped;
use crate::lag::Lag;
use crate::notices::Notices;
use crate::results::{LiveCheck, Timings};
use crate::template::TemplateRun;

/// What `observed.json` holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Observed {
    /// What the members said, and what became of their processes, until they were asked to end.
    pub events: Vec<Stamped>,
    /// What each member held of each key at the end; what could not be read is missing.
    pub finals: Vec<FinalState>,
    /// What applications told beside their answers, where those are what clients are.
    #[serde(default, skip_serializing_if = "Notices::is_empty")]
    pub notices: Notices,
    /// How late the harness itself was.
    pub lag: Lag,
    /// Operations that were due while so many others waited that they were dropped.
    pub shed: u64,
    /// When the workload began.
    pub workload_from_ns: RunNs,
    /// When it ended.
    pub workload_to_ns: RunNs,
    /// When everything had ended.
    pub end_ns: RunNs,
    /// How long the parts took.
    pub timings: Timings,
    /// Whether it was stopped before its time limit.
    pub interrupted: bool,
    /// Until when members were listened to; they are asked to end after that. None in the folders of older
    /// builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listened_until_ns: Option<RunNs>,
    /// Lines that were written of faults by the end. A folder whose `faults.jsonl` has another number of them
    /// has lost some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_lines: Option<u64>,
    /// From when to when the machine stood still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<(RunNs, RunNs)>,
    /// The machine's load when the workload ended: threads that ran or waited to, on average over the last
    /// minute. None where nobody knows it, and in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_load: Option<f64>,
    /// Members that took no connection of any client for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shut: Vec<Shut>,
    /// How the user's command ended, where one worked on the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandEnd>,
    /// What test commands in the containers did, where those worked on the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateRun>,
    /// What was judged while the run went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveCheck>,
}

/// A while in which no client that tried could connect to a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shut {
    /// The member.
    pub member: u64,
    /// The first attempt that failed, behind the last that did not.
    pub from_ns: RunNs,
    /// The last one.
    pub to_ns: RunNs,
    /// How many there were.
    pub attempts: u64,
}

/// How a command of the user's own ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// When it was started.
    pub from_ns: RunNs,
    /// When it had ended.
    pub to_ns: RunNs,
    /// Its exit status; none when a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether the harness asked it to end, because somebody interrupted the run.
    #[serde(default)]
    pub stopped: bool,
}

impl Observed {
    /// The last moment at which somebody looked at the members.
    pub fn looked_until_ns(&self) -> RunNs {
        self.listened_until_ns.unwrap_or(self.workload_to_ns)
    }
}
