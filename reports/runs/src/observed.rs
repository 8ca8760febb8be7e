//! What was seen beside the history, as `observed.json` keeps it: judging a run again needs nothing else.

use checker::durability::FinalState;
use serde::{Deserialize, Serialize};

use crate::clock::RunNs;
use crate::events::Stamped;
use crate::lag::Lag;
use crate::results::{LiveCheck, Timings};

/// What `observed.json` holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Observed {
    /// What the members said, and what became of their processes, until they were asked to end.
    pub events: Vec<Stamped>,
    /// What each member held of each key at the end; what could not be read is missing.
    pub finals: Vec<FinalState>,
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
    /// What was judged while the run went on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveCheck>,
}

impl Observed {
    /// The last moment at which somebody looked at the members.
    pub fn looked_until_ns(&self) -> RunNs {
        self.listened_until_ns.unwrap_or(self.workload_to_ns)
    }
}
