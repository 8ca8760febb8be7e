//! A run that has ended, as a line of the index: its pile, why, its numbers, its findings.

use std::collections::BTreeMap;
use std::time::Duration;

use checker::verdict::{CheckResult, Verdict};
use runs::faults::FaultRecord;
use runs::findings;
use runs::results::{Results, RunInfo};
use runs::span;

use crate::fingerprint::Shape;
use crate::measures::{self, Sample};
use crate::pile::Pile;

/// A run folder as far as nights look at it.
#[derive(Clone, Debug)]
pub struct Record {
    /// `run.json`.
    pub run: RunInfo,
    /// `results.json`.
    pub results: Results,
    /// The faults.
    pub faults: Vec<FaultRecord>,
}

/// How a process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status; none when a signal ended it.
    pub status: Option<i32>,
    /// How long it took.
    pub took: Duration,
    /// Whether it was asked to end because somebody interrupted.
    pub interrupted: bool,
    /// Whether it was ended because it took too long.
    pub too_long: bool,
    /// The last words on its standard error.
    pub last_words: String,
    /// What it said on its standard output.
    pub output: String,
}

/// What a run is taken for, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The pile.
    pub pile: Pile,
    /// Why, in a sentence; empty for a valid one.
    pub why: String,
    /// What it is recognized by, for each check that found a violation.
    pub shapes: Vec<(Shape, String)>,
    /// Its numbers.
    pub series: BTreeMap<String, Sample>,
}

impl Outcome {
    /// Takes a run for what it is. The exit status decides; the folder says why. Where they contradict each
    /// other the bench is broken.
    #[must_use]
    pub fn of(case: &str, ended: &Ended, record: Option<&Record>) -> Self {
        let nothing =
            |pile: Pile, why: String| Self { pile, why, shapes: Vec::new(), series: BTreeMap::new() };
        let pile = Pile::of_status(ended.status);
        // A violation that was seen is one, whatever became of the run afterwards.
        if ended.too_long && pile != Pile::Violation {
            let why = format!("it did not end within {} and was ended", span::show(ended.took));
            return nothing(Pile::BenchFailure, why);
        }
        if pile == Pile::BenchFailure {
            return nothing(pile, failed(ended));
        }
        let Some(record) = record else {
            return nothing(Pile::BenchFailure, format!("it ended without results: {}", failed(ended)));
        };
        let verdict = record.results.verdict;
        let agrees = match pile {
            Pile::Valid => verdict == Verdict::Valid,
            Pile::Violation => verdict == Verdict::Invalid,
            _ => verdict == Verdict::Unknown,
        };
        if !agrees {
            let why = format!("its exit status was that of {}, and its results say {verdict}", pile.name());
            return nothing(Pile::BenchFailure, why);
        }
        let shapes = shapes(case, record);
        let why = match pile {
            Pile::Violation => {
                shapes.first().map(|(shape, found)| format!("{}: {found}", shape.check)).unwrap_or_default()
            }
            Pile::Unknown => undecided(&record.results),
            _ => String::new(),
        };
        let series = measures::series(&record.results, &record.faults);
        Self { pile, why, shapes, series }
    }
}

/// What each check that accuses is recognized by, and what it found.
#[must_use]
pub fn shapes(case: &str, record: &Record) -> Vec<(Shape, String)> {
    let invalid = record.results.checks.iter().filter(|check| check.verdict == Verdict::Invalid);
    invalid.map(|check| (Shape::of(case, check, &record.faults), sentence(check))).collect()
}

/// What a check found, with the operations where it names them.
fn sentence(check: &CheckResult) -> String {
    let found = check.counterexample.as_ref().map_or(&check.summary, |found| &found.sentence);
    findings::sentence(found)
}

fn undecided(results: &Results) -> String {
    let unknown = results.checks.iter().find(|check| check.verdict == Verdict::Unknown);
    unknown.map_or_else(
        || "nothing was decided".to_owned(),
        |check| format!("{}: {}", check.name, sentence(check)),
    )
}

fn failed(ended: &Ended) -> String {
    let how = match ended.status {
        Some(status) => format!("exit status {status}"),
        None => "ended by a signal".to_owned(),
    };
    if ended.last_words.is_empty() { how } else { format!("{how}: {}", ended.last_words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Option<i32>, last_words: &str) -> Ended {
        let last_words = last_words.to_owned();
        Ended { status, took: Duration::from_secs(5), last_words, ..Ended::default() }
    }

    fn record(verdict: Verdict) -> Record {
        let run = RunInfo::default();
        let mut results = Results::new(verdict, &run);
        results.checks.push(CheckResult::new("linearizable", verdict, "what was seen"));
        Record { run, results, faults: Vec::new() }
    }

    #[test]
    fn a_run_that_was_killed_or_refused_is_the_benchs_failure_with_its_last_words() {
        let killed = Outcome::of("a", &ended(None, ""), None);
        assert_eq!((killed.pile, killed.why.as_str()), (Pile::BenchFailure, "ended by a signal"));
        let refused = Outcome::of("a", &ended(Some(254), "no Docker engine answers"), None);
        assert_eq!(refused.pile, Pile::BenchFailure);
        assert_eq!(refused.why, "exit status 254: no Docker engine answers");
        let late = Ended { too_long: true, ..ended(Some(130), "") };
        assert!(Outcome::of("a", &late, None).why.contains("did not end within 5s"));
    }

    #[test]
    fn a_status_without_the_results_that_say_the_same_is_not_believed() {
        assert_eq!(Outcome::of("a", &ended(Some(0), ""), None).pile, Pile::BenchFailure);
        let contradicts = Outcome::of("a", &ended(Some(0), ""), Some(&record(Verdict::Invalid)));
        assert_eq!(contradicts.pile, Pile::BenchFailure);
        assert_eq!(Outcome::of("a", &ended(Some(0), ""), Some(&record(Verdict::Valid))).pile, Pile::Valid);
    }

    #[test]
    fn a_violation_says_which_check_found_it() {
        let outcome = Outcome::of("a", &ended(Some(1), ""), Some(&record(Verdict::Invalid)));
        assert_eq!(outcome.pile, Pile::Violation);
        assert_eq!(outcome.shapes.len(), 1);
        assert_eq!(outcome.shapes[0].0.check, "linearizable");
        assert!(outcome.why.starts_with("linearizable: "), "{}", outcome.why);
    }
}
