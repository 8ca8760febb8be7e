//! Is one told when a holder is gone, and not all? The check `notifications`, of workloads whose applications
//! stand in a line.
//!
//! Each in a line watches the one ahead of it. So the end of a place is told to one application at most.
//! Where several are told, or one is told of the whole line, each change wakes as many as there are: the herd
//! effect that ZooKeeper's recipes warn of. Nothing becomes wrong by it, and a thousand candidates bring an
//! ensemble down.
//!
//! Applications tell what they were told with their answers. One that was killed tells nothing more, so what
//! is counted is a lower bound: it convicts nobody wrongly.

use std::collections::BTreeMap;

use checker::figures::count;
use checker::verdict::{CheckResult, Verdict};
use serde_json::json;
use workloads::{Applications, Kind};

use super::{Case, Check};
use crate::notices::{End, Notice, Notices};
use crate::numbers::{moment, plural};

/// The check.
pub(super) const CHECK: Check = Check { about: "one is told of a change", judge };

fn judge(case: &Case<'_>) -> Vec<CheckResult> {
    let applications = Kind::from_name(&case.run.workload).and_then(Kind::applications);
    match applications {
        Some(Applications::Lock | Applications::Election) => {
            check(&case.observed.notices).into_iter().collect()
        }
        Some(Applications::Standby | Applications::Queue | Applications::Barrier) | None => Vec::new(),
    }
}

/// Judges what was told. Nothing where no application told anything: so in folders of older builds.
fn check(notices: &Notices) -> Option<CheckResult> {
    const NAME: &str = "notifications";
    let mut by_place: BTreeMap<(u64, i64), Vec<&Notice>> = BTreeMap::new();
    let mut of_lines: Vec<&Notice> = Vec::new();
    for notice in &notices.told {
        match notice.of {
            End::Place(place) => by_place.entry((notice.key, place)).or_default().push(notice),
            End::Line => of_lines.push(notice),
            End::Holder => {}
        }
    }
    if by_place.is_empty() && of_lines.is_empty() {
        return None;
    }
    let herds: Vec<((u64, i64), Vec<&Notice>)> = by_place
        .iter()
        .filter(|(_, told)| told.iter().any(|notice| notice.application != told[0].application))
        .map(|(place, told)| (*place, told.clone()))
        .collect();
    let ends = wide(by_place.len());
    let evidence = json!({
        "ends": ends,
        "told_to_several": herds.len(),
        "told_of_the_line": of_lines.len(),
        "not_kept": notices.dropped,
    });
    if ends == 0 && of_lines.is_empty() && notices.dropped == 0 {
        let words = "no application was told of an end in a line";
        return Some(CheckResult::nothing_judged(NAME, words).with_evidence(evidence));
    }
    let (verdict, words) = match (of_lines.first(), herds.first()) {
        (Some(first), _) => (Verdict::Invalid, whole_line(first, wide(of_lines.len()))),
        (None, Some(((key, place), told))) => (Verdict::Invalid, herd(*key, *place, told, wide(herds.len()))),
        (None, None) => {
            let ends = plural(ends, "end");
            let more = match notices.dropped {
                0 => String::new(),
                more => format!("; {} more notices were not kept, and not judged", count(more)),
            };
            (Verdict::Valid, format!("of {ends} in the lines each was told to one application{more}"))
        }
    };
    Some(CheckResult::new(NAME, verdict, words).with_evidence(evidence))
}

fn whole_line(first: &Notice, number: u64) -> String {
    format!(
        "application {} was told at {} s that the line of lock {} changed: it watches the whole line, and \
         not the one ahead ({} in all)",
        first.application,
        moment(first.time),
        first.key,
        plural(number, "such notice")
    )
}

fn herd(key: u64, place: i64, told: &[&Notice], number: u64) -> String {
    let who: Vec<String> = told
        .iter()
        .map(|notice| format!("application {} at {} s", notice.application, moment(notice.time)))
        .collect();
    format!(
        "the end of place {place} in the line of lock {key} was told to {}: {} (of {} in all)",
        plural(wide(told.len()), "application"),
        who.join(", "),
        count(number)
    )
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(told: &[(u64, End)]) -> Option<(Verdict, String)> {
        let mut notices = Notices::default();
        for (time, (application, of)) in (1..).zip(told) {
            notices.note(Notice { time, application: *application, key: 0, of: *of });
        }
        check(&notices).map(|found| (found.verdict, found.summary))
    }

    #[test]
    fn each_end_is_told_to_one() {
        let told = [(1, End::Place(1)), (2, End::Place(2)), (1, End::Place(2 + 1)), (1, End::Place(1))];
        let (verdict, words) = verdict(&told).expect("a result");
        assert_eq!(verdict, Verdict::Valid, "{words}");
        assert!(words.starts_with("of 3 ends in the lines each"), "{words}");
    }

    #[test]
    fn an_end_that_two_are_told_of_is_a_herd() {
        let (verdict, words) = verdict(&[(1, End::Place(1)), (2, End::Place(1))]).expect("a result");
        assert_eq!(verdict, Verdict::Invalid);
        assert!(words.contains("place 1 in the line of lock 0 was told to 2 applications"), "{words}");
    }

    #[test]
    fn places_with_one_number_in_lines_of_two_locks_are_two() {
        let mut notices = Notices::default();
        for (application, key) in [(1, 0), (2, 1)] {
            notices.note(Notice { time: application, application, key, of: End::Place(1) });
        }
        let found = check(&notices).expect("a result");
        assert_eq!(found.verdict, Verdict::Valid, "{}", found.summary);
        assert!(found.summary.starts_with("of 2 ends in the lines each"), "{}", found.summary);
    }

    #[test]
    fn whoever_is_told_of_the_line_watches_all_of_it() {
        let (verdict, words) = verdict(&[(1, End::Place(1)), (2, End::Line)]).expect("a result");
        assert_eq!(verdict, Verdict::Invalid);
        assert!(words.starts_with("application 2 was told"), "{words}");
    }

    #[test]
    fn nothing_is_said_where_nobody_told_anything_and_of_those_who_stand_by() {
        assert_eq!(verdict(&[]), None);
        assert_eq!(verdict(&[(1, End::Holder), (2, End::Holder)]), None);
    }
}
