//! Elections by kind of fault, never mixed: a leader that was killed is missed in milliseconds and one that
//! fell silent after a time-out, so a percentile over both belongs to neither.
//!
//! The kind is the fault's own; an election that became possible only when a fault was healed counts from the
//! healing and is a kind by itself, and so is one that no fault explains. A percentile is given only where as
//! many elections were measured that some lie beyond it; the largest is always given.

use std::collections::BTreeMap;

use crate::faults::FaultRecord;
use crate::numbers::nearest_rank;
use crate::results::{Election, ElectionKind, Phase};

/// From so many measured elections on there is a median; a ninetieth percentile; a ninety-ninth.
pub const ENOUGH: [(f64, usize); 3] = [(50.0, 3), (90.0, 10), (99.0, 100)];

/// What elections without a fault are called.
pub const NO_FAULT: &str = "no fault";
/// What elections by a fault are called of which nothing is on record.
const UNKNOWN_FAULT: &str = "unknown fault";
/// Kinds that are told apart; what is more shares the last, which only a file from elsewhere can bring about.
const MOST_KINDS: usize = 100;

/// The kind of one election.
pub fn kind(election: &Election, faults: &[FaultRecord]) -> String {
    let by_id: BTreeMap<&str, &FaultRecord> = faults.iter().map(|fault| (fault.id.as_str(), fault)).collect();
    kind_of(election, &by_id)
}

fn kind_of(election: &Election, faults: &BTreeMap<&str, &FaultRecord>) -> String {
    let Some(id) = election.fault.as_deref() else { return NO_FAULT.to_owned() };
    let kind = faults.get(id).map_or(UNKNOWN_FAULT, |fault| fault.kind.as_str());
    if election.healing { format!("{kind}, healing") } else { kind.to_owned() }
}

/// The kinds with their elections, in the order of their first.
pub fn grouped<'a>(elections: &'a [Election], faults: &[FaultRecord]) -> Vec<(String, Vec<&'a Election>)> {
    let by_id: BTreeMap<&str, &FaultRecord> = faults.iter().map(|fault| (fault.id.as_str(), fault)).collect();
    let mut kinds: Vec<(String, Vec<&Election>)> = Vec::new();
    let mut place: BTreeMap<String, usize> = BTreeMap::new();
    for election in elections {
        let kind = kind_of(election, &by_id);
        let at = *place.entry(kind.clone()).or_insert(kinds.len().min(MOST_KINDS - 1));
        if at == kinds.len() {
            kinds.push((kind, Vec::new()));
        }
        kinds[at].1.push(election);
    }
    kinds
}

/// Count and percentiles of each kind.
pub fn by_kind(elections: &[Election], faults: &[FaultRecord]) -> Vec<ElectionKind> {
    grouped(elections, faults).into_iter().map(|(kind, of_kind)| summary(kind, &of_kind)).collect()
}

/// The median of lengths in order, where there are enough of them to have one.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let [(rank, least), ..] = ENOUGH;
    nearest_rank(sorted, rank).filter(|_| sorted.len() >= least)
}

fn summary(kind: String, elections: &[&Election]) -> ElectionKind {
    let sorted = |value: &dyn Fn(&Election) -> Option<f64>| {
        let mut values: Vec<f64> =
            elections.iter().filter_map(|election| value(election)).filter(|ms| ms.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let totals = sorted(&|election| election.total_ms);
    let [p50_ms, p90_ms, p99_ms] =
        ENOUGH.map(|(rank, least)| nearest_rank(&totals, rank).filter(|_| totals.len() >= least));
    let median = |phase: Phase| median(&sorted(&|election| phase.of(election)));
    ElectionKind {
        kind,
        count: u64::try_from(elections.len()).unwrap_or(u64::MAX),
        measured: u64::try_from(totals.len()).unwrap_or(u64::MAX),
        p50_ms,
        p90_ms,
        p99_ms,
        max_ms: totals.last().copied(),
        detection_p50_ms: median(Phase::Detection),
        election_p50_ms: median(Phase::Election),
        sync_p50_ms: median(Phase::Synchronization),
        first_write_p50_ms: median(Phase::FirstWrite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults() -> Vec<FaultRecord> {
        [("F1", "kill-leader"), ("F2", "partition-leader"), ("F3", "kill-all")]
            .map(|(id, kind)| FaultRecord {
                id: id.to_owned(),
                kind: kind.to_owned(),
                ..FaultRecord::default()
            })
            .to_vec()
    }

    fn election(fault: Option<&str>, total_ms: f64) -> Election {
        Election {
            fault: fault.map(str::to_owned),
            detection_ms: Some(total_ms / 2.0),
            total_ms: Some(total_ms),
            ..Election::default()
        }
    }

    #[test]
    fn kinds_are_never_mixed_and_each_has_its_own_figures() {
        let mut elections = Vec::new();
        for at in 0..12_u32 {
            elections.push(election(Some("F1"), 10.0 + f64::from(at)));
            elections.push(election(Some("F2"), 260.0 + f64::from(at)));
        }
        elections.push(Election { healing: true, ..election(Some("F3"), 90.0) });
        elections.push(election(None, 70.0));
        let kinds = by_kind(&elections, &faults());
        let names: Vec<&str> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
        assert_eq!(names, ["kill-leader", "partition-leader", "kill-all, healing", "no fault"]);
        assert_eq!((kinds[0].p50_ms, kinds[0].p90_ms, kinds[0].max_ms), (Some(15.0), Some(20.0), Some(21.0)));
        assert_eq!((kinds[1].p50_ms, kinds[1].detection_p50_ms), (Some(265.0), Some(132.5)));
    }

    #[test]
    fn a_percentile_needs_elections_beyond_it() {
        let of = |n: u32| {
            let elections: Vec<Election> = (0..n).map(|at| election(Some("F1"), f64::from(at))).collect();
            let kind = by_kind(&elections, &faults()).remove(0);
            (kind.p50_ms.is_some(), kind.p90_ms.is_some(), kind.p99_ms.is_some(), kind.max_ms.is_some())
        };
        assert_eq!(of(1), (false, false, false, true));
        assert_eq!((median(&[1.0, 2.0]), median(&[1.0, 2.0, 3.0])), (None, Some(2.0)));
        assert_eq!(of(3), (true, false, false, true));
        assert_eq!(of(99), (true, true, false, true));
        assert_eq!(of(100), (true, true, true, true));
    }

    #[test]
    fn what_was_not_measured_to_the_end_is_counted_and_not_put_down_as_zero() {
        let elections = [Election { fault: Some("F1".to_owned()), ..Election::default() }];
        let kind = by_kind(&elections, &faults()).remove(0);
        assert_eq!((kind.count, kind.measured, kind.max_ms), (1, 0, None));
    }
}
