//! What a judgement needs besides the history.

use checker::durability::FinalState;
use checker::history::Function;
use checker::orders::Orders;
use checker::set::Reads;
use serde::{Deserialize, Serialize};

use crate::promise::Promise;

/// What a judgement needs besides the history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The members of the ensemble.
    pub members: Vec<u64>,
    /// What each member held of each key after everything had healed.
    pub final_states: Vec<FinalState>,
    /// When which fault was in force.
    pub faults: Vec<FaultWindow>,
    /// How strong the load has to be.
    pub requirements: Requirements,
    /// What the system promises, or is held to.
    #[serde(default)]
    pub promise: Promise,
    /// The words that the system has for its orders.
    #[serde(default)]
    pub orders: Orders,
    /// How late the harness itself was at worst, if it was measured.
    #[serde(default)]
    pub harness_lag_ns: Option<u64>,
    /// From when on no fault was in force and a leader stood, so that sessions left in silence must expire.
    #[serde(default)]
    pub well_since_ns: Option<u64>,
    /// What would strengthen a load that was too weak, as flags with numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Beside {
    /// What is demanded of reads.
    #[must_use]
    pub fn reads(&self) -> Reads {
        if self.reads_may_be_stale() { Reads::Stale } else { Reads::Current }
    }

    /// Whether no more is promised of a read than its session's order.
    #[must_use]
    pub fn reads_may_be_stale(&self) -> bool {
        matches!(self.promise, Promise::LinearizableUpdates | Promise::OrderedSequential)
    }
}

/// One fault as the load sees it: an interval of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultWindow {
    /// The fault's name in this run, for example `F1`.
    pub fault: String,
    /// Its kind.
    pub kind: String,
    /// When it was in force, ns since the start of the run.
    pub onset_ns: u64,
    /// When it was gone; none when it never was.
    pub healed_ns: Option<u64>,
    /// Whether a quorum of members could talk to each other and to clients meanwhile.
    pub quorum: bool,
    /// The groups of members that it divided, each of which must have had clients. Empty when it divided
    /// none.
    pub sides: Vec<Vec<u64>>,
}

/// How strong the load has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirements {
    /// Definite successes of each kind in each interval.
    pub minimum_each: u64,
    /// The kinds that the workload has.
    pub functions: Vec<Function>,
    /// Definite successes of any kind per second, over the whole run; 0 asks for none.
    pub minimum_rate: f64,
    /// How late the harness itself may have been.
    pub maximum_lag_ns: u64,
}

impl Default for Requirements {
    fn default() -> Self {
        Self {
            minimum_each: 1,
            functions: Function::REGISTER.to_vec(),
            minimum_rate: 0.0,
            maximum_lag_ns: 1_000_000_000,
        }
    }
}
