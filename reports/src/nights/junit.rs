//! The night as JUnit XML: a suite for each case, a test case for each of its runs and thresholds.
//!
//! Names are the same each night, so that a server can follow them: `run 1`, `outage max < 1s`, `alarms`.
//! What was not run is skipped, with the reason, and is never simply absent.
//!
//! A violation and a regression are failures, what could not be decided and what the bench failed at are
//! errors. The form is that of a run's document ([`crate::junit`]).

use std::collections::{BTreeMap, BTreeSet};

use nights::fold::CaseNight;
use nights::index::{Alarm, Attempt};
use nights::pile::Pile;
use nights::threshold::{self, Judgement};
use runs::numbers::{len, plural};

use super::View;
use super::digest::{Digest, broken, number};
use crate::junit::{BROKEN, Case, Outcome, Suite, UNDECIDED, document};

/// Runs of a case that are listed as left out, at most.
const MOST_LEFT_OUT: u32 = 1000;
/// How a number fails.
const REGRESSION: &str = "regression";
/// How the bench fails.
const BENCH_FAILURE: &str = "bench-failure";

/// The document.
pub(super) fn render(view: &View<'_>) -> String {
    let Some(digest) = Digest::of(view) else { return document("no night", 0.0, &[]) };
    let mut suites = vec![night(&digest)];
    suites.extend(digest.cases.iter().map(|case| suite(&digest, case)));
    let all: f64 = digest.night.attempts.iter().map(|attempt| attempt.took_ms / 1000.0).sum();
    document(&digest.night.begun.night, all, &suites)
}

fn case(class: &str, name: &str, outcome: Outcome) -> Case {
    Case {
        class: class.to_owned(),
        name: name.to_owned(),
        seconds: None,
        outcome,
        detail: String::new(),
        output: String::new(),
    }
}

/// What is true of the night and of none of its cases.
fn night(digest: &Digest<'_>) -> Suite {
    let begun = &digest.night.begun;
    let end = match digest.pile {
        _ if digest.night.judged.is_none() => Outcome::Error(UNDECIDED, digest.sentence.clone()),
        Pile::Valid => Outcome::Passed,
        // What failed is said where it is; here only that nothing was shown.
        _ if digest.cases.iter().all(|case| case.pile.is_none()) => {
            Outcome::Error(UNDECIDED, digest.sentence.clone())
        }
        _ if digest.night.judged.as_ref().is_some_and(|judged| judged.interrupted) => {
            Outcome::Error(UNDECIDED, "the night was stopped before its end".to_owned())
        }
        _ => Outcome::Passed,
    };
    let hunted = digest.hunted();
    let missed: Vec<&str> =
        hunted.iter().filter(|hunted| !hunted.is_convicted).map(|hunted| hunted.name).collect();
    let planted = match (hunted.is_empty(), missed.is_empty()) {
        (true, _) => Outcome::Skipped("none was hunted".to_owned()),
        (false, true) => Outcome::Passed,
        (false, false) => Outcome::Error(UNDECIDED, format!("not convicted: {}", missed.join(", "))),
    };
    let (lived, bad) = digest.night.worlds_lived();
    let worlds = match (lived, bad.first()) {
        (0, None) => Outcome::Skipped("none was lived through".to_owned()),
        (_, None) => Outcome::Passed,
        (_, Some(first)) => {
            let many = plural(number(bad.len()), "world");
            Outcome::Failure(BROKEN, format!("{many} broke a rule, the first {}", broken(first)))
        }
    };
    let mut worlds = case("night", "worlds", worlds);
    worlds.detail = bad.iter().take(100).map(|world| broken(world) + "\n").collect();
    worlds.seconds =
        Some(digest.night.worlds.iter().map(|piece| runs::numbers::lossy(piece.took_ms)).sum::<f64>() / 1e3);
    Suite {
        name: "night".to_owned(),
        seconds: 0.0,
        properties: vec![
            ("started", begun.started_utc.to_string()),
            ("seed", begun.seed.to_string()),
            ("build", begun.build.clone()),
            ("machine", begun.machine.key()),
            ("verdict", digest.headline.to_lowercase()),
        ],
        cases: vec![case("night", "end", end), case("night", "planted bugs", planted), worlds],
    }
}

fn suite(digest: &Digest<'_>, of: &CaseNight) -> Suite {
    let mut cases = runs(digest, of);
    cases.extend(thresholds(digest, of));
    cases.push(alarms(digest, of));
    let took: f64 = cases.iter().filter_map(|case| case.seconds).sum();
    let mut properties = Vec::new();
    properties.extend(of.owner.clone().map(|owner| ("owner", owner)));
    Suite { name: of.case.clone(), seconds: took, properties, cases }
}

/// Every run of a case by its number; those that were not made are skipped.
fn runs(digest: &Digest<'_>, of: &CaseNight) -> Vec<Case> {
    let mut all: BTreeMap<u32, Case> = BTreeMap::new();
    for attempt in digest.night.last_tries(&of.case) {
        all.insert(attempt.repeat, run(digest, of, attempt));
    }
    for left in digest.left_out().iter().filter(|left| left.case == of.case) {
        let free: Vec<u32> =
            (1..).filter(|n| !all.contains_key(n)).take(left.runs.min(MOST_LEFT_OUT) as usize).collect();
        for n in free {
            all.insert(n, case(&of.case, &format!("run {n}"), Outcome::Skipped(left.why.clone())));
        }
    }
    if all.is_empty() {
        let why = "the night did not come to it".to_owned();
        all.insert(1, case(&of.case, "run 1", Outcome::Skipped(why)));
    }
    all.into_values().collect()
}

fn run(digest: &Digest<'_>, of: &CaseNight, attempt: &Attempt) -> Case {
    let why = if attempt.why.is_empty() { attempt.pile.name().to_owned() } else { attempt.why.clone() };
    let outcome = match attempt.pile {
        Pile::Valid => Outcome::Passed,
        Pile::Violation => Outcome::Failure(BROKEN, why),
        Pile::Regression => Outcome::Failure(REGRESSION, why),
        Pile::Unknown => Outcome::Error(UNDECIDED, why),
        Pile::BenchFailure => Outcome::Error(BENCH_FAILURE, why),
    };
    let tries = digest.night.attempts.iter();
    let tries: Vec<String> = tries
        .filter(|other| other.case == attempt.case && other.repeat == attempt.repeat)
        .map(|other| match other.why.as_str() {
            "" => format!("try {}: {}", other.attempt, other.pile.name()),
            why => format!("try {}: {}: {why}", other.attempt, other.pile.name()),
        })
        .collect();
    let tries = if tries.len() > 1 { tries.join("\n") + "\n" } else { String::new() };
    let folder = attempt.folder.as_ref().map(|folder| format!("{folder}\n")).unwrap_or_default();
    Case {
        class: of.case.clone(),
        name: format!("run {}", attempt.repeat),
        seconds: Some(attempt.took_ms / 1000.0),
        outcome,
        detail: attempt.findings.join("\n"),
        output: format!("{tries}{folder}{}", attempt.repeat_command),
    }
}

/// Every threshold of a case; where the case was not run, those of the last night that judged any.
fn thresholds(digest: &Digest<'_>, of: &CaseNight) -> Vec<Case> {
    let judged = |night: &nights::fold::Night| -> Option<Vec<Judgement>> {
        night.judged.as_ref()?.thresholds.get(&of.case).filter(|all| !all.is_empty()).cloned()
    };
    let tonight = of.pile.and_then(|_| judged(digest.night));
    let is_tonight = tonight.is_some();
    let ran = of.pile.is_some() && digest.night.judged.is_some();
    let before = || digest.view.nights.iter().rev().find_map(judged);
    let all = tonight.or_else(|| (!ran).then(before).flatten()).unwrap_or_default();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut cases = Vec::new();
    for judgement in all.into_iter().filter(|judgement| names.insert(judgement.threshold.clone())) {
        let outcome = match judgement.outcome {
            _ if !is_tonight => Outcome::Skipped("it was not judged tonight".to_owned()),
            threshold::Outcome::Met => Outcome::Passed,
            threshold::Outcome::Crossed => Outcome::Failure(REGRESSION, judgement.sentence.clone()),
            threshold::Outcome::TooFew => Outcome::Error(UNDECIDED, judgement.sentence.clone()),
        };
        let mut case = case(&of.case, &judgement.threshold, outcome);
        if is_tonight {
            case.output = judgement.sentence;
        }
        cases.push(case);
    }
    cases
}

/// Whether a number of the case became worse, confirmed by a comparison of builds.
fn alarms(digest: &Digest<'_>, of: &CaseNight) -> Case {
    let confirmed: Vec<&Alarm> = digest.confirmed().filter(|alarm| alarm.case == of.case).collect();
    let outcome = match (of.pile, confirmed.as_slice()) {
        (None, _) => Outcome::Skipped("the case was not run".to_owned()),
        (_, []) => Outcome::Passed,
        (_, [one]) => Outcome::Failure(REGRESSION, one.sentence.clone()),
        (_, all) => Outcome::Failure(REGRESSION, format!("{} numbers became worse", len(all.len()))),
    };
    let mut case = case(&of.case, "alarms", outcome);
    case.detail = confirmed.iter().map(|alarm| format!("{}: {}\n", alarm.series, alarm.sentence)).collect();
    case
}
