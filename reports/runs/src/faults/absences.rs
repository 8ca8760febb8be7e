//! When faults kept members away, to be asked about by member and moment.
//!
//! There are as many faults as a run is long, and many questions about each, so they are sorted once: an
//! answer is a binary search and not a walk through all of them.

use std::collections::BTreeMap;

use crate::results::FaultRecord;

/// The faults that kept members away.
#[derive(Debug, Default)]
pub struct Absences<'a> {
    /// By member, in the order in which they were asked for.
    members: BTreeMap<u64, Vec<Absence<'a>>>,
}

#[derive(Debug)]
struct Absence<'a> {
    fault: &'a FaultRecord,
    until: u64,
    /// Until when this one or any before it lasted.
    latest: u64,
}

impl<'a> Absences<'a> {
    /// Of these faults, each with the moment until which it kept its targets away.
    pub fn of(faults: impl IntoIterator<Item = (&'a FaultRecord, u64)>) -> Self {
        let mut members: BTreeMap<u64, Vec<Absence<'a>>> = BTreeMap::new();
        for (fault, until) in faults {
            for member in &fault.targets {
                members.entry(*member).or_default().push(Absence { fault, until, latest: until });
            }
        }
        for absences in members.values_mut() {
            absences.sort_by_key(|absence| absence.fault.asked_ns);
            let mut latest = 0;
            for absence in absences {
                latest = latest.max(absence.until);
                absence.latest = latest;
            }
        }
        Self { members }
    }

    /// The faults that were asked for by `asked` at the latest, and kept this member away until `until` at
    /// the least.
    pub fn lasting(&self, member: u64, asked: u64, until: u64) -> impl Iterator<Item = &'a FaultRecord> {
        let all = self.members.get(&member).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|absence| absence.latest < until);
        let end = all.partition_point(|absence| absence.fault.asked_ns <= asked);
        let some = all.get(first..end).unwrap_or_default();
        some.iter().filter(move |absence| absence.until >= until).map(|absence| absence.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_counts_for_its_targets_from_when_it_was_asked_for_until_it_let_go() {
        let fault = |id: &str, targets: &[u64], asked_ns| FaultRecord {
            id: id.to_owned(),
            targets: targets.to_vec(),
            asked_ns,
            ..FaultRecord::default()
        };
        let faults = [fault("F1", &[1, 2], 10), fault("F2", &[1], 20), fault("F3", &[1], 30)];
        let absences = Absences::of(faults.iter().zip([100, 25, 35]));
        let names = |member, asked, until| -> Vec<&str> {
            absences.lasting(member, asked, until).map(|fault| fault.id.as_str()).collect()
        };
        assert_eq!(names(1, 30, 35), ["F1", "F3"]);
        assert_eq!(names(1, 29, 25), ["F1", "F2"]);
        assert_eq!(names(2, 99, 99), ["F1"]);
        assert!(names(1, 9, 0).is_empty() && names(1, 99, 101).is_empty() && names(3, 99, 0).is_empty());
    }
}
