//! The ensemble's promises, judged on the history by `workloads`; here it is told what stood beside it.

use checker::Budget;
use checker::history::Loaded;
use checker::verdict::CheckResult;
use reports::results::{FaultRecord, RunInfo};
use workloads::judge::{Beside, FaultWindow, Requirements, judge_loaded};

use super::observed::Observed;
use crate::cluster::FaultClass;
use crate::nemesis::Nemesis;

/// Definite successes of each kind that a run must show before, during and after each fault. One would pass for
/// a load; it could hardly find anything.
const MINIMUM_EACH: u64 = 5;

/// Without `--min-rate`, this part of `--rate` must end in definite successes. A fault that takes the whole ensemble
/// away leaves half of the time; the rest is room for a busy machine.
const MINIMUM_PART: f64 = 0.1;

/// And never less than this many a second, whatever was asked for: too few overlap for a violation to show.
const MINIMUM_RATE: f64 = 15.0;

/// How strong the load of this run must be.
fn requirements(run: &RunInfo) -> Requirements {
    let minimum_rate = run.min_rate.unwrap_or_else(|| (run.rate * MINIMUM_PART).max(MINIMUM_RATE));
    Requirements { minimum_each: MINIMUM_EACH, minimum_rate, ..Requirements::default() }
}

/// Every check of the workload.
pub fn judge(
    run: &RunInfo,
    loaded: &Loaded,
    faults: &[FaultRecord],
    observed: &Observed,
) -> Vec<CheckResult> {
    let members: Vec<u64> = (1..=u64::from(run.nodes)).collect();
    let beside = Beside {
        faults: faults.iter().filter_map(|fault| window(fault, &members)).collect(),
        final_states: observed.finals.clone(),
        requirements: requirements(run),
        harness_lag_ns: Some(observed.lag.max_ns()),
        members,
    };
    judge_loaded(loaded, &beside, Budget::default())
}

/// A fault as the load sees it; none when it never came into force.
fn window(fault: &FaultRecord, members: &[u64]) -> Option<FaultWindow> {
    Some(FaultWindow {
        fault: fault.id.clone(),
        kind: fault.kind.clone(),
        onset_ns: fault.injected_ns?,
        healed_ns: fault.verified_healed_ns,
        quorum: fault.quorum_remained,
        sides: sides(fault, members),
    })
}

/// The groups that a fault divides the members into. Killed members have no clients, so a kill divides none.
fn sides(fault: &FaultRecord, members: &[u64]) -> Vec<Vec<u64>> {
    match Nemesis::from_name(&fault.kind).map(Nemesis::needs) {
        Some(FaultClass::Partition | FaultClass::Reject | FaultClass::Pause) => {
            let rest = members.iter().copied().filter(|member| !fault.targets.contains(member)).collect();
            vec![fault.targets.clone(), rest]
        }
        Some(FaultClass::Kill | FaultClass::Clock) | None => Vec::new(),
    }
}
