//! The checks that are about the bench and not about the ensemble's promises: did the faults bite, did
//! leader faults lead to elections, was the harness itself in time, did anybody die who should not.
//!
//! None of them can convict. A run that fails one proves nothing, and its verdict is unknown.

use checker::verdict::{CheckResult, Verdict};
use reports::results::{FaultCounts, FaultRecord, FaultState};
use serde_json::json;

use super::observed::Observed;
use crate::events::{Event, Said, Stamped};
use crate::nemesis::Nemesis;

/// A harness whose ninety-ninth percentile is later than this was too busy to blame anybody.
const LAG_BOUND_MS: f64 = 50.0;

/// All of them.
pub fn all(faults: &[FaultRecord], observed: &Observed) -> Vec<CheckResult> {
    let mut checks = Vec::new();
    if !faults.is_empty() {
        checks.push(faults_verified(faults));
    }
    let leader_faults: Vec<&FaultRecord> = faults.iter().filter(|fault| is_leader_fault(fault)).collect();
    if !leader_faults.is_empty() {
        checks.push(higher_epochs(&leader_faults, observed));
    }
    checks.push(nobody_died(faults, &observed.events));
    checks.push(in_time(observed));
    checks
}

fn is_leader_fault(fault: &FaultRecord) -> bool {
    fault.injected_ns.is_some() && Nemesis::from_name(&fault.kind).is_some_and(Nemesis::is_leader_fault)
}

fn verdict(holds: bool) -> Verdict {
    if holds { Verdict::Valid } else { Verdict::Unknown }
}

/// Every fault was seen to bite and seen to be gone.
fn faults_verified(faults: &[FaultRecord]) -> CheckResult {
    let counts = FaultCounts::of(faults);
    let all = counts.verified == counts.planned;
    let summary = if all {
        format!("all {} faults were seen to bite and seen to be gone", counts.planned)
    } else {
        let other: Vec<String> = faults
            .iter()
            .filter(|fault| fault.state != FaultState::Verified)
            .map(|fault| format!("{} {} is {}", fault.id, fault.kind, fault.state.name()))
            .collect();
        format!("{} of {} faults were verified: {}", counts.verified, counts.planned, other.join(", "))
    };
    CheckResult::new("faults", verdict(all), summary).with_evidence(json!(counts))
}

/// Each fault aimed at the leader was followed by a higher epoch than the one it hit.
fn higher_epochs(faults: &[&FaultRecord], observed: &Observed) -> CheckResult {
    let mut without = Vec::new();
    let mut evidence = Vec::new();
    for fault in faults {
        let next = epoch_after(fault, &observed.events);
        let followed = matches!((fault.epoch_before, next), (Some(before), Some(after)) if after > before)
            || (fault.epoch_before.is_none() && next.is_some());
        if !followed {
            without.push(fault.id.as_str());
        }
        evidence.push(json!({"fault": fault.id, "epoch_before": fault.epoch_before, "epoch_after": next}));
    }
    let summary = if without.is_empty() {
        format!("each of {} leader faults was followed by a higher epoch", faults.len())
    } else {
        format!("no higher epoch followed {}", without.join(", "))
    };
    CheckResult::new("leader-faults", verdict(without.is_empty()), summary).with_evidence(json!(evidence))
}

/// The first epoch that a leader of its own established between the injection of a fault and the moment at
/// which it was seen to be gone.
fn epoch_after(fault: &FaultRecord, events: &[Stamped]) -> Option<u32> {
    let from = fault.injected_ns?;
    let to = fault.verified_healed_ns.unwrap_or(u64::MAX);
    let established = |stamped: &Stamped| match stamped.event {
        Event::Said(Said::Established { leader, epoch }) if leader == stamped.node.0 => Some(epoch),
        _ => None,
    };
    events
        .iter()
        .filter(|stamped| (from..=to).contains(&stamped.time))
        .filter_map(established)
        .find(|epoch| fault.epoch_before.is_none_or(|before| *epoch > before))
}

/// No member's process ended but by a fault.
fn nobody_died(faults: &[FaultRecord], events: &[Stamped]) -> CheckResult {
    let killed_by_us = |stamped: &Stamped| {
        faults.iter().any(|fault| {
            let by_then = fault.asked_ns <= stamped.time;
            let not_yet_healed = fault.healed_ns.is_none_or(|healed| stamped.time <= healed);
            fault.kind.starts_with("kill")
                && by_then
                && not_yet_healed
                && fault.targets.contains(&stamped.node.0)
        })
    };
    let mut deaths = Vec::new();
    for stamped in events {
        if let Event::Exited(how) = &stamped.event
            && !killed_by_us(stamped)
        {
            deaths.push(format!(
                "n{} at {:.1} s ({how})",
                stamped.node.0,
                crate::clock::milliseconds(stamped.time) / 1e3
            ));
        }
    }
    let summary = if deaths.is_empty() {
        "no member ended but by a fault".to_owned()
    } else {
        format!("ended without a fault: {}; its log says why", deaths.join(", "))
    };
    CheckResult::new("processes", verdict(deaths.is_empty()), summary)
        .with_evidence(json!({"deaths": deaths}))
}

/// The harness handed operations over when they were due.
fn in_time(observed: &Observed) -> CheckResult {
    let lag = observed.lag;
    let holds = lag.p99_ms <= LAG_BOUND_MS && observed.shed == 0;
    let shed = if observed.shed == 0 {
        String::new()
    } else {
        format!("; {} operations were dropped because nobody took any", observed.shed)
    };
    let summary = format!(
        "operations were handed over {:.2} ms late at the 99th percentile, {:.1} ms at most (bound {LAG_BOUND_MS} ms){shed}",
        lag.p99_ms, lag.max_ms
    );
    CheckResult::new("harness-lag", verdict(holds), summary).with_evidence(json!(lag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_wire::ids::ServerId;

    fn leader_fault() -> FaultRecord {
        FaultRecord {
            id: "F1".to_owned(),
            kind: "kill-leader".to_owned(),
            targets: vec![2],
            asked_ns: 9,
            injected_ns: Some(10),
            healed_ns: Some(40),
            verified_healed_ns: Some(50),
            epoch_before: Some(3),
            state: FaultState::Verified,
            ..FaultRecord::default()
        }
    }

    fn event(time: u64, node: u64, event: Event) -> Stamped {
        Stamped { time, node: ServerId(node), event }
    }

    fn established(time: u64, node: u64, leader: u64, epoch: u32) -> Stamped {
        event(time, node, Event::Said(Said::Established { leader, epoch }))
    }

    fn find(name: &str, faults: &[FaultRecord], events: Vec<Stamped>) -> CheckResult {
        let observed = Observed { events, ..Observed::default() };
        all(faults, &observed).into_iter().find(|check| check.name == name).expect("the check")
    }

    #[test]
    fn a_leader_fault_without_a_higher_epoch_proves_nothing() {
        let faults = [leader_fault()];
        assert_eq!(find("leader-faults", &faults, vec![established(20, 1, 1, 4)]).verdict, Verdict::Valid);
        for events in [vec![], vec![established(20, 2, 2, 3)], vec![established(60, 1, 1, 4)]] {
            let check = find("leader-faults", &faults, events);
            assert_eq!(
                (check.verdict, check.summary.as_str()),
                (Verdict::Unknown, "no higher epoch followed F1")
            );
        }
    }

    #[test]
    fn a_followers_word_does_not_make_an_epoch() {
        let check = find("leader-faults", &[leader_fault()], vec![established(20, 3, 1, 4)]);
        assert_eq!(check.verdict, Verdict::Unknown);
    }

    #[test]
    fn a_death_that_no_fault_explains_is_told() {
        let exit = |time, node| event(time, node, Event::Exited("exit status 1".to_owned()));
        let faults = [leader_fault()];
        assert_eq!(find("processes", &faults, vec![exit(12, 2)]).verdict, Verdict::Valid);
        assert_eq!(find("processes", &faults, vec![exit(12, 3)]).verdict, Verdict::Unknown);
        assert_eq!(find("processes", &faults, vec![exit(45, 2)]).verdict, Verdict::Unknown);
    }

    #[test]
    fn an_unverified_fault_is_named() {
        let mut fault = leader_fault();
        fault.state = FaultState::Leaked;
        let check = find("faults", &[fault], vec![]);
        assert_eq!(check.verdict, Verdict::Unknown);
        assert!(check.summary.contains("F1 kill-leader is leaked"), "{}", check.summary);
    }

    #[test]
    fn a_late_harness_proves_nothing() {
        let late = Observed {
            lag: crate::load::pacer::Lag { p99_ms: 80.0, ..Default::default() },
            ..Observed::default()
        };
        let check = all(&[], &late).into_iter().find(|check| check.name == "harness-lag").expect("the check");
        assert_eq!(check.verdict, Verdict::Unknown);
    }
}
