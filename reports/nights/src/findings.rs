//! Findings over nights: what is new, what goes on, what is gone.
//!
//! A finding is a [shape](crate::fingerprint::Shape), not a run. It is *new* in the first night that has it,
//! *ongoing* where an earlier night had it, a *new shape* where an earlier night had another one of the same
//! check in the same case, and *gone* in a night that ran its case and did not see it. Where its case was not
//! run, nothing is said of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::fingerprint::Shape;
use crate::suite::Known;

/// A violation that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The night.
    pub night: String,
    /// Its fingerprint.
    pub fingerprint: String,
    /// What it is recognized by.
    pub shape: Shape,
    /// What was found, in a sentence.
    pub sentence: String,
    /// The run folder that shows it, relative to the store.
    pub folder: String,
    /// How often its schedule was run again, and how often that showed it again.
    pub replays: Replays,
    /// The smallest schedule that still showed it; none where none was looked for or found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<Shrunk>,
    /// The command that shows it again.
    pub command: String,
}

/// A schedule, run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replays {
    /// Replays that showed a violation of the same check.
    pub shown: u32,
    /// Replays that came to a verdict.
    pub of: u32,
}

/// A schedule that was made smaller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shrunk {
    /// The run folder with it, relative to the store.
    pub folder: String,
    /// Faults before and after.
    pub faults: (u32, u32),
    /// Clients before and after.
    pub clients: (u32, u32),
    /// Length of the workload before and after, ms.
    pub workload_ms: (u64, u64),
    /// Whether the simulator shows it with the same schedule; none where that was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_the_simulator: Option<bool>,
    /// Runs that it took.
    pub runs: u32,
    /// Whether any of them showed it again. Nobody keeps one of which that is not so.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub seen: bool,
}

/// What is kept was seen.
fn yes() -> bool {
    true
}

/// What a finding is in one night.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No night before had anything of this check in this case.
    New,
    /// Nights before had another shape of it.
    NewShape,
    /// A night before had it too.
    Ongoing,
    /// A night before had it, and its case was run tonight without it.
    Gone,
}

impl State {
    /// The word used in every report.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::NewShape => "new shape",
            Self::Ongoing => "ongoing",
            Self::Gone => "gone",
        }
    }
}

/// A finding over all nights up to one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its fingerprint.
    pub fingerprint: String,
    /// What it is in that night.
    pub state: State,
    /// What it is recognized by.
    pub shape: Shape,
    /// What was found, in a sentence.
    pub sentence: String,
    /// The first night that had it.
    pub first: String,
    /// The last night that had it.
    pub last: String,
    /// How many nights had it.
    pub nights: u32,
    /// The shortest reproduction of all nights.
    pub best: Found,
    /// All replays of all nights.
    pub replays: Replays,
    /// Where somebody wrote about it.
    pub link: Option<String>,
    /// Whether it is left out of the exit status: known, until a day that has not come.
    pub is_tolerated: bool,
}

/// What one night says about findings: those it had, and the cases that it ran to a verdict.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The night's name.
    pub night: String,
    /// The day of its start, `2026-11-25`.
    pub day: String,
    /// What it found.
    pub found: Vec<Found>,
    /// Ids of the cases that were run to a verdict.
    pub ran: BTreeSet<String>,
}

/// The findings as the last of these nights sees them: first those that it had, then those that are gone
/// since the night before that ran their case.
pub fn over(nights: &[Seen], known: &[Known]) -> Vec<Finding> {
    let Some((tonight, before)) = nights.split_last() else { return Vec::new() };
    let mut all: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
    for found in nights.iter().flat_map(|night| &night.found) {
        all.entry(&found.fingerprint).or_default().push(found);
    }
    let mut findings: Vec<Finding> = all
        .into_values()
        .filter_map(|every| {
            let state = state(every[0], tonight, before)?;
            Some(finding(&every, state, tonight, known))
        })
        .collect();
    findings.sort_by(|a, b| (a.state, &a.fingerprint).cmp(&(b.state, &b.fingerprint)));
    findings
}

fn state(found: &Found, tonight: &Seen, before: &[Seen]) -> Option<State> {
    let has = |night: &Seen| night.found.iter().any(|other| other.fingerprint == found.fingerprint);
    let alike = |night: &Seen| {
        let alike =
            |other: &Found| other.shape.check == found.shape.check && other.shape.case == found.shape.case;
        night.found.iter().any(alike)
    };
    if has(tonight) {
        return Some(match (before.iter().any(has), before.iter().any(alike)) {
            (true, _) => State::Ongoing,
            (false, true) => State::NewShape,
            (false, false) => State::New,
        });
    }
    // Another shape of the same check in the same case: it is not gone, and is listed under that shape.
    if !tonight.ran.contains(&found.shape.case) || alike(tonight) {
        return None;
    }
    let last_run = before.iter().rev().find(|night| night.ran.contains(&found.shape.case))?;
    has(last_run).then_some(State::Gone)
}

fn finding(every: &[&Found], state: State, tonight: &Seen, known: &[Known]) -> Finding {
    let (first, last) = (every[0], every[every.len() - 1]);
    let mut nights: Vec<&str> = every.iter().map(|found| found.night.as_str()).collect();
    nights.dedup();
    let known = known.iter().find(|known| known.finding == first.fingerprint);
    let replays = every.iter().fold(Replays::default(), |all, found| Replays {
        shown: all.shown.saturating_add(found.replays.shown),
        of: all.of.saturating_add(found.replays.of),
    });
    let best = every.iter().min_by_key(|found| cost(found)).unwrap_or(&first);
    Finding {
        fingerprint: first.fingerprint.clone(),
        state,
        shape: first.shape.clone(),
        sentence: last.sentence.clone(),
        first: first.night.clone(),
        last: last.night.clone(),
        nights: u32::try_from(nights.len()).unwrap_or(u32::MAX),
        best: (*best).clone(),
        replays,
        link: known.map(|known| known.link.clone()),
        is_tolerated: known
            .and_then(|known| known.until.as_ref())
            .is_some_and(|until| tonight.day.as_str() <= until.as_str()),
    }
}

/// What a reproduction costs whoever runs it: a small schedule before a large one, a sure one before a
/// chancy one.
fn cost(found: &Found) -> (bool, u64, u32) {
    let missed = found.replays.of - found.replays.shown.min(found.replays.of);
    match &found.shrunk {
        Some(shrunk) => (false, shrunk.workload_ms.1, missed),
        None => (true, 0, missed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(night: &str, case: &str, kinds: &[&str]) -> Found {
        let shape = Shape {
            check: "linearizable".to_owned(),
            case: case.to_owned(),
            kinds: kinds.iter().map(|word| (*word).to_owned()).collect(),
            operations: BTreeSet::new(),
        };
        Found {
            night: night.to_owned(),
            fingerprint: shape.fingerprint(),
            shape,
            sentence: format!("found in {night}"),
            folder: night.to_owned(),
            replays: Replays { shown: 2, of: 3 },
            shrunk: None,
            command: String::new(),
        }
    }

    fn night(name: &str, found: Vec<Found>, ran: &[&str]) -> Seen {
        let ran = ran.iter().map(|case| (*case).to_owned()).collect();
        Seen { night: name.to_owned(), day: format!("2026-11-{name}"), found, ran }
    }

    fn states(nights: &[Seen]) -> Vec<State> {
        over(nights, &[]).iter().map(|finding| finding.state).collect()
    }

    #[test]
    fn a_finding_is_new_then_ongoing_then_gone_and_then_nothing_is_said() {
        let one = |name: &str| night(name, vec![found(name, "a", &["read ok"])], &["a"]);
        let nights = [one("01"), one("02"), night("03", vec![], &["a"]), night("04", vec![], &["a"])];
        assert_eq!(states(&nights[..1]), [State::New]);
        assert_eq!(states(&nights[..2]), [State::Ongoing]);
        assert_eq!(states(&nights[..3]), [State::Gone]);
        assert_eq!(states(&nights), []);
        let ongoing = &over(&nights[..2], &[])[0];
        assert_eq!((ongoing.first.as_str(), ongoing.last.as_str(), ongoing.nights), ("01", "02", 2));
        assert_eq!(ongoing.replays, Replays { shown: 4, of: 6 });
    }

    #[test]
    fn a_night_that_did_not_run_the_case_says_nothing_of_its_findings() {
        let nights = [night("01", vec![found("01", "a", &["read ok"])], &["a"]), night("02", vec![], &["b"])];
        assert_eq!(states(&nights), []);
        let later = [nights[0].clone(), nights[1].clone(), night("03", vec![], &["a"])];
        assert_eq!(states(&later), [State::Gone], "two nights later its case was run");
    }

    #[test]
    fn another_shape_of_the_same_check_is_told_apart_and_the_first_is_not_called_gone() {
        let nights = [
            night("01", vec![found("01", "a", &["read ok"])], &["a"]),
            night("02", vec![found("02", "a", &["cas ok", "read ok"])], &["a"]),
        ];
        assert_eq!(states(&nights), [State::NewShape]);
    }

    #[test]
    fn a_known_finding_is_left_out_of_the_status_until_its_day_is_over() {
        let nights = [night("25", vec![found("25", "a", &["read ok"])], &["a"])];
        let finding = nights[0].found[0].fingerprint.clone();
        let known = |until: Option<&str>| Known {
            finding: finding.clone(),
            link: "https://example.org/1".to_owned(),
            until: until.map(str::to_owned),
        };
        for (until, tolerated) in [(Some("2026-11-25"), true), (Some("2026-11-24"), false), (None, false)] {
            let all = over(&nights, &[known(until)]);
            assert_eq!(all[0].is_tolerated, tolerated, "{until:?}");
            assert!(all[0].link.is_some());
        }
    }
}
