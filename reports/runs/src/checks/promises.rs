//! The ensemble's promises, judged on the history by `workloads`; here it is told what stood beside it.

use checker::history::Loaded;
use checker::verdict::{CheckResult, Verdict};
use workloads::Kind;
use workloads::judge::{Beside, Effort, FaultWindow, Requirements, judge_loaded};

use super::Check;
use crate::advice;
use crate::consequence::Consequences;
use crate::episodes::Episodes;
use crate::events::{Event, Said, Stamped};
use crate::idleness;
use crate::observed::Observed;
use crate::results::{FaultRecord, RunInfo};

/// Definite successes of each kind that a run must show before, during and after each fault. One would pass
/// for a load; it could hardly find anything.
pub const MINIMUM_EACH: u64 = 5;

/// Without `--min-rate`, this part of `--rate` must end in definite successes. A fault that takes the whole
/// ensemble away leaves half of the time; the rest is room for a busy machine.
const MINIMUM_PART: f64 = 0.1;

/// And never less than this many a second, whatever was asked for: too few overlap for a violation to show.
const MINIMUM_RATE: f64 = 15.0;

/// How strong the load of this run must be.
fn requirements(run: &RunInfo, kind: Kind) -> Requirements {
    let minimum_rate = run.min_rate.unwrap_or_else(|| (run.rate * MINIMUM_PART).max(MINIMUM_RATE));
    let functions = run.functions.clone().unwrap_or_else(|| kind.functions().to_vec());
    Requirements { minimum_each: MINIMUM_EACH, minimum_rate, functions, ..Requirements::default() }
}

/// What the workload's history shows of what was promised.
pub(super) const CHECK: Check = Check {
    about: "what was promised",
    judge: |case| judge(case.run, case.loaded, case.faults, case.observed, case.effort),
};

/// Every check of the workload.
pub fn judge(
    run: &RunInfo,
    loaded: &Loaded,
    faults: &[FaultRecord],
    observed: &Observed,
    effort: &Effort<'_>,
) -> Vec<CheckResult> {
    if run.is_wrapped() {
        // Nothing was asked for that could be judged: what was promised is the command's to check.
        return Vec::new();
    }
    let members: Vec<u64> = run.members().collect();
    let Some(kind) = Kind::from_name(&run.workload) else {
        let summary = format!("this build does not know what the workload {} promises", run.workload);
        return vec![CheckResult::new("workload", Verdict::Unknown, summary)];
    };
    let beside = Beside {
        faults: windows(run, faults),
        final_states: observed.finals.clone(),
        requirements: requirements(run, kind),
        harness_lag_ns: Some(observed.lag.max_ns()),
        members,
        promise: run.promise.what,
        orders: run.system.orders.clone(),
        well_since_ns: well_since(faults, observed),
        advice: None,
    };
    let unsent = idleness::of_run(run, &loaded.history);
    let rate = beside.requirements.minimum_rate;
    let advice = advice::on_load(run, rate, &loaded.history, unsent.as_ref(), observed);
    let beside = Beside { advice: Some(advice), ..beside };
    judge_loaded(kind, loaded, &beside, effort)
}

/// From when on everything was well, as far as was seen: the last fault was gone and the last leader
/// established. A fault that never went leaves no such moment.
fn well_since(faults: &[FaultRecord], observed: &Observed) -> Option<u64> {
    let healed: Option<Vec<u64>> = faults
        .iter()
        .filter(|fault| fault.injected_ns.is_some())
        .map(|fault| fault.verified_healed_ns)
        .collect();
    let said = |stamped: &&Stamped| {
        matches!(
            stamped.event,
            Event::Said(Said::Established { .. } | Said::Looking { .. }) | Event::Exited(_)
        )
    };
    let unrest = observed.events.iter().filter(said).map(|stamped| stamped.time);
    healed.map(|healed| healed.into_iter().chain(unrest).max().unwrap_or_default())
}

/// The faults as the load sees them. Faults that overlap, or have hardly any calm between them, are one
/// disturbance: before, during and after each by itself there may be nothing but the others.
fn windows(run: &RunInfo, faults: &[FaultRecord]) -> Vec<FaultWindow> {
    Episodes::of(faults, run.interval_ms).iter().map(window).collect()
}

fn window(episode: &[&FaultRecord]) -> FaultWindow {
    let joined = |name: fn(&FaultRecord) -> &str| {
        episode.iter().map(|fault| name(fault)).collect::<Vec<_>>().join("+")
    };
    let healed: Option<Vec<u64>> = episode.iter().map(|fault| fault.verified_healed_ns).collect();
    FaultWindow {
        fault: joined(|fault| &fault.id),
        kind: joined(|fault| &fault.kind),
        // From when it was asked for: whoever is refused at once has left before the injection is reported.
        onset_ns: episode.iter().map(|fault| fault.asked_ns).min().unwrap_or_default(),
        healed_ns: healed.and_then(|healed| healed.into_iter().max()),
        // A fault during which a quorum remained all along is time enough for operations to succeed.
        quorum: episode.iter().any(|fault| fault.quorum_remained),
        sides: match episode {
            [fault] if !asks_for_sides_itself(episode, fault) => fault.sides.clone(),
            _ => Vec::new(),
        },
    }
}

/// Whether the check `sides` asks for the clients on a fault's sides, because the load's own check can't: of
/// faults that overlap, each by itself has them; and whoever is answered with resets sends its clients away
/// at once, so that none of their operations need be under way when the cut is in force.
pub(super) fn asks_for_sides_itself(episode: &[&FaultRecord], fault: &FaultRecord) -> bool {
    episode.len() > 1 || fault.refuses()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::MemberId;

    fn fault(id: &str, kind: &str, from_ms: u64, gone_ms: u64) -> FaultRecord {
        FaultRecord {
            id: id.to_owned(),
            kind: kind.to_owned(),
            targets: vec![2],
            asked_ns: from_ms * 1_000_000,
            injected_ns: Some(from_ms * 1_000_000 + 70_000),
            verified_healed_ns: Some(gone_ms * 1_000_000),
            quorum_remained: true,
            ..FaultRecord::default()
        }
    }

    fn run() -> RunInfo {
        RunInfo { interval_ms: 4000, ..RunInfo::default() }
    }

    #[test]
    fn a_fault_by_itself_is_a_window_with_its_sides() {
        let mut ring = fault("F1", "partition-ring", 2000, 4100);
        let of = |fault: &FaultRecord| windows(&run(), std::slice::from_ref(fault)).remove(0).sides;
        assert!(of(&ring).is_empty());
        ring.sides = vec![vec![1], vec![2], vec![3]];
        assert_eq!(of(&ring), [vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn faults_that_overlap_are_one_window_and_those_with_calm_between_are_not() {
        let mut faults = vec![
            fault("F1", "kill-one", 2000, 4100),
            fault("F2", "clock-bump", 2700, 4700),
            fault("F3", "kill-one", 6000, 8000),
        ];
        faults[0].quorum_remained = false;
        let windows = windows(&run(), &faults);
        assert_eq!(windows.len(), 2);
        assert_eq!((windows[0].fault.as_str(), windows[0].kind.as_str()), ("F1+F2", "kill-one+clock-bump"));
        assert_eq!((windows[0].onset_ns, windows[0].healed_ns), (2_000_000_000, Some(4_700_000_000)));
        assert!(windows[0].quorum);
        assert_eq!(windows[1].fault, "F3");
    }

    #[test]
    fn an_episode_with_a_fault_that_was_never_gone_has_no_end() {
        let mut faults = vec![fault("F1", "kill-one", 2000, 4100), fault("F2", "kill-all", 2700, 4700)];
        faults[1].verified_healed_ns = None;
        assert_eq!(windows(&run(), &faults)[0].healed_ns, None);
    }

    #[test]
    fn all_is_well_when_the_last_fault_is_gone_and_the_last_unrest_over() {
        let looking = || Event::Said(Said::Looking { left: None });
        let stands = || Event::Said(Said::Established { leader: 1, epoch: 2 });
        let never_gone = FaultRecord { verified_healed_ns: None, ..fault("F1", "kill-one", 2000, 4100) };
        let never_began = FaultRecord { injected_ns: None, ..never_gone.clone() };
        let gone = || fault("F2", "pause-one", 1000, 4100);
        for (what, faults, event, since_ms) in [
            ("a fault", vec![gone()], None, Some(4100)),
            ("one looks later", vec![gone()], Some(looking()), Some(5000)),
            ("a leader stands later", vec![gone()], Some(stands()), Some(5000)),
            ("one ends later", vec![gone()], Some(Event::Exited("ended".to_owned())), Some(5000)),
            ("one serves", vec![gone()], Some(Event::Said(Said::Serving {})), Some(4100)),
            ("a fault that stays", vec![gone(), never_gone], None, None),
            ("a fault that never was", vec![gone(), never_began], None, Some(4100)),
        ] {
            let event = event.map(|event| Stamped { time: 5_000_000_000, node: MemberId(2), event });
            let observed = Observed { events: event.into_iter().collect(), ..Observed::default() };
            let since = since_ms.map(|ms: u64| ms * 1_000_000);
            assert_eq!(well_since(&faults, &observed), since, "{what}");
        }
    }
}
