//! The run as JUnit XML, for build servers: one test case for every check and for every fault.
//!
//! A case keeps its name from night to night, so that a server can follow it: a fault is the first, second,
//! third one of its kind. What is drawn anew each time (its place in the schedule, the member that it hit) is
//! in its output.
//!
//! A broken promise is a failure. What could not be decided, and a fault that was not proven, is an error:
//! the test did not do its work, which is something else than the system failing it. A fault that found no
//! member or that the cluster cannot do is skipped, with the reason; so are a nemesis that got no turn and a
//! check that had nothing to judge.
//!
//! When the bench itself did not send, and when clients waited for the system, is told with the check `load`.
//!
//! The form is what both usual schemas allow, that of Jenkins' xUnit plugin (`junit-10.xsd`, for the
//! document) and that of Maven's Surefire (for each suite): counts on every suite, a time on every case, a
//! type on every failure and error, what a case put out behind them, and nothing beyond. The start is
//! therefore a property: Surefire's suites have no timestamp.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use checker::verdict::{CheckResult, Verdict};

use runs::faults::{FaultRecord, FaultState};
use runs::numbers::{count, duration, len, moment, ns_to_s};
use runs::results::{KeyOutage, Outage, Results, RunInfo};

/// What became of a test case.
pub(crate) enum Outcome {
    /// It did what it was for.
    Passed,
    /// What was tested failed: a word for how, and a sentence.
    Failure(&'static str, String),
    /// The test did not do its work: a word for how, and a sentence.
    Error(&'static str, String),
    /// It was not tried, with the reason.
    Skipped(String),
}

/// A test case.
pub(crate) struct Case {
    /// What kind of thing it is, or whose.
    pub(crate) class: String,
    /// Its name, the same each time.
    pub(crate) name: String,
    /// How long it took, where that was measured.
    pub(crate) seconds: Option<f64>,
    /// What became of it.
    pub(crate) outcome: Outcome,
    /// What shows it.
    pub(crate) detail: String,
    /// What is told of a case whatever became of it; empty where there is nothing.
    pub(crate) output: String,
}

/// A suite of test cases.
pub(crate) struct Suite {
    /// Its name.
    pub(crate) name: String,
    /// How long it took.
    pub(crate) seconds: f64,
    /// Names and values.
    pub(crate) properties: Vec<(&'static str, String)>,
    /// Its cases.
    pub(crate) cases: Vec<Case>,
}

/// How a case fails whose promise was broken.
pub(crate) const BROKEN: &str = "broken-promise";
/// How a case errs that could not be decided.
pub(crate) const UNDECIDED: &str = "not-decided";

/// The document.
pub fn render(run: &RunInfo, results: &Results, faults: &[FaultRecord]) -> String {
    let suite = |name: &str, took_ms: f64, cases: Vec<Case>| Suite {
        name: name.to_owned(),
        seconds: took_ms / 1000.0,
        properties: vec![
            ("started", run.started_utc.clone()),
            ("seed", run.seed.to_string()),
            ("verdict", results.verdict.to_string()),
            ("repeat", results.repeat.clone()),
        ],
        cases,
    };
    let mut checks: Vec<Case> = results.checks.iter().map(check_case).collect();
    if let Some(load) = checks.iter_mut().find(|case| case.name == "load") {
        load.output = around_the_load(results);
    }
    let suites = [
        suite("checks", results.timings.check_ms, checks),
        suite("faults", results.timings.workload_ms, fault_cases(results, faults)),
    ];
    document(&run.name, results.timings.total_ms / 1000.0, &suites)
}

/// A document of these suites.
pub(crate) fn document(name: &str, took_s: f64, suites: &[Suite]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (tests, failures, errors, _) = tally(suites.iter().flat_map(|suite| &suite.cases));
    let _ = writeln!(
        out,
        "<testsuites name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
         time=\"{:.3}\">",
        escape(name),
        seconds(took_s)
    );
    for suite in suites {
        write_suite(&mut out, suite);
    }
    out.push_str("</testsuites>\n");
    out
}

fn check_case(check: &CheckResult) -> Case {
    let outcome = match check.verdict {
        Verdict::Valid if check.nothing_judged => Outcome::Skipped(check.summary.clone()),
        Verdict::Valid => Outcome::Passed,
        Verdict::Invalid => Outcome::Failure(BROKEN, check.summary.clone()),
        Verdict::Unknown => Outcome::Error(UNDECIDED, check.summary.clone()),
    };
    let mut detail = String::new();
    if let Some(found) = &check.counterexample {
        detail.push_str(&found.sentence);
        detail.push('\n');
    }
    if !check.evidence.is_null() {
        let _ = writeln!(detail, "{}", check.evidence);
    }
    Case {
        class: "check".to_owned(),
        name: check.name.clone(),
        seconds: None,
        outcome,
        detail,
        output: String::new(),
    }
}

/// Outages with a line, the longest; results.json has them all.
const MOST_OUTAGES: usize = 20;

/// What the page's timeline shows beside the checks: when the bench itself did not send, and when clients
/// waited for the system.
fn around_the_load(results: &Results) -> String {
    let mut lines = Vec::new();
    let during = |from: u64, to: u64| format!("{} to {} s", moment(from), moment(to));
    let of = |outage: &Outage| {
        let (took, when) = (duration(outage.ms()), during(outage.from_ns, outage.to_ns));
        let cause = outage.fault.as_deref().unwrap_or("no fault");
        let open = if outage.open { ", not over at the end" } else { "" };
        format!("{took}, {when}, under {cause}{open}")
    };
    if let Some(unsent) = &results.unsent {
        lines.push(format!(
            "The bench itself did not send {}, because {}:",
            unsent.in_figures(),
            unsent.why()
        ));
        lines.extend(unsent.stretches.iter().map(|(from, to)| format!("  {}", during(*from, *to))));
    }
    let mut outages: Vec<&Outage> = results.outages.iter().collect();
    outages.sort_by(|a, b| b.ms().total_cmp(&a.ms()));
    if !outages.is_empty() {
        lines.push(format!("Outages, the longest first ({} in all):", len(outages.len())));
    }
    lines.extend(outages.into_iter().take(MOST_OUTAGES).map(|outage| format!("  {}", of(outage))));
    if let Some(keys) = results.key_outages.as_ref().filter(|keys| keys.with > 0) {
        lines.push(format!("{} of {} keys had outages of their own:", count(keys.with), count(keys.keys)));
        let line = |KeyOutage { key, outage }: &KeyOutage| format!("  key {key}: {}", of(outage));
        lines.extend(keys.longest.iter().map(line));
    }
    lines.join("\n")
}

/// The faults, each by its kind and its number among those of its kind, and the nemeses without one.
fn fault_cases(results: &Results, faults: &[FaultRecord]) -> Vec<Case> {
    let mut so_far: BTreeMap<&str, u32> = BTreeMap::new();
    let mut cases = Vec::new();
    for fault in faults {
        let number = so_far.entry(&fault.kind).or_default();
        *number += 1;
        cases.push(fault_case(fault, *number));
    }
    let never = |kind: &&String| !so_far.contains_key(kind.as_str());
    for kind in results.not_tried.iter().filter(never) {
        let why = "no fault of it came into force";
        cases.push(Case {
            class: "fault".to_owned(),
            name: format!("{kind} 1"),
            seconds: None,
            outcome: Outcome::Skipped(why.to_owned()),
            detail: String::new(),
            output: String::new(),
        });
    }
    cases
}

fn fault_case(fault: &FaultRecord, number: u32) -> Case {
    let outcome = match fault.state {
        FaultState::Verified => Outcome::Passed,
        FaultState::Unverified => Outcome::Error(UNDECIDED, "the fault was not seen to bite".to_owned()),
        FaultState::Leaked => Outcome::Error(UNDECIDED, "the fault was not seen to be gone".to_owned()),
        FaultState::MemberDied => {
            Outcome::Error(UNDECIDED, "a member died, so nobody could see the fault gone".to_owned())
        }
        FaultState::NoTarget => Outcome::Skipped("no member fitted".to_owned()),
        FaultState::Unsupported => Outcome::Skipped("the cluster cannot do it".to_owned()),
    };
    let seconds = fault.verified_healed_ns.map(|gone| ns_to_s(gone.saturating_sub(fault.asked_ns)));
    let detail = [fault.evidence.as_str(), fault.healed_evidence.as_str()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .fold(String::new(), |all, text| all + text + "\n");
    let output = format!("{}: {}", fault.id, fault.sentence);
    Case {
        class: "fault".to_owned(),
        name: format!("{} {number}", fault.kind),
        seconds,
        outcome,
        detail,
        output,
    }
}

fn tally<'a>(cases: impl Iterator<Item = &'a Case>) -> (u32, u32, u32, u32) {
    cases.fold((0, 0, 0, 0), |(tests, failures, errors, skipped), case| match case.outcome {
        Outcome::Passed => (tests + 1, failures, errors, skipped),
        Outcome::Failure(..) => (tests + 1, failures + 1, errors, skipped),
        Outcome::Error(..) => (tests + 1, failures, errors + 1, skipped),
        Outcome::Skipped(_) => (tests + 1, failures, errors, skipped + 1),
    })
}

/// What a file may claim to have taken is bounded, because a schema allows digits alone.
fn seconds(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1e12) } else { 0.0 }
}

fn write_suite(out: &mut String, suite: &Suite) {
    let (tests, failures, errors, skipped) = tally(suite.cases.iter());
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
         skipped=\"{skipped}\" time=\"{:.3}\">",
        escape(&suite.name),
        seconds(suite.seconds)
    );
    // Jenkins' schema allows no empty list.
    if !suite.properties.is_empty() {
        out.push_str("    <properties>\n");
        for (name, value) in &suite.properties {
            let _ = writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", escape(value));
        }
        out.push_str("    </properties>\n");
    }
    for case in &suite.cases {
        write_case(out, case);
    }
    out.push_str("  </testsuite>\n");
}

fn write_case(out: &mut String, case: &Case) {
    // A case must say a time; what one check alone took is not measured.
    let time = seconds(case.seconds.unwrap_or(0.0));
    let (class, name) = (escape(&case.class), escape(&case.name));
    let _ = write!(out, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time:.3}\"");
    let told = match &case.outcome {
        Outcome::Passed => None,
        Outcome::Failure(kind, message) => Some(("failure", message, format!(" type=\"{kind}\""))),
        Outcome::Error(kind, message) => Some(("error", message, format!(" type=\"{kind}\""))),
        Outcome::Skipped(message) => Some(("skipped", message, String::new())),
    };
    if told.is_none() && case.output.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    if let Some((tag, message, kind)) = told {
        let (message, detail) = (escape(message), escape(case.detail.trim_end()));
        let _ = writeln!(out, "      <{tag} message=\"{message}\"{kind}>{detail}</{tag}>");
    }
    if !case.output.is_empty() {
        let _ = writeln!(out, "      <system-out>{}</system-out>", escape(&case.output));
    }
    out.push_str("    </testcase>\n");
}

/// Escapes text for XML and replaces what XML 1.0 cannot hold at all.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use runs::results::KeyOutages;
    use runs::unsent::Unsent;

    #[test]
    fn what_xml_cannot_hold_is_escaped_or_replaced() {
        assert_eq!(escape("a<b>&\"\u{0}\u{1b}\n"), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}&#10;");
    }

    #[test]
    fn what_was_not_sent_and_what_clients_waited_for_stands_with_the_load_whatever_became_of_it() {
        let run = RunInfo::default();
        let mut results = Results::new(Verdict::Valid, &run);
        results.checks =
            ["linearizable", "load"].map(|name| CheckResult::new(name, Verdict::Valid, name)).into();
        assert!(!render(&run, &results, &[]).contains("system-out"));
        let stretches = vec![(2_000_000_000, 3_450_000_000)];
        results.unsent = Some(Unsent { due: 1000, replaced: 190, stretches, ..Unsent::default() });
        let (to_ns, fault) = (2_940_000_000, Some("F1".to_owned()));
        results.outages = vec![Outage { to_ns, ..Outage::default() }];
        let outage = Outage { to_ns: 3_700_000_000, fault, open: true, ..Outage::default() };
        let longest = vec![KeyOutage { key: 18, outage }];
        results.key_outages = Some(KeyOutages { keys: 20, with: 4, longest });
        let told = "<testcase classname=\"check\" name=\"load\" time=\"0.000\">\n      <system-out>The bench \
                    itself did not send 190 of 1,000 operations (19 %), because clients were being \
                    replaced:&#10;  2.000 to 3.450 s&#10;Outages, the longest first (1 in all):&#10;  2.94 \
                    s, 0.000 to 2.940 s, under no fault&#10;4 of 20 keys had outages of their own:&#10;  key \
                    18: 3.70 s, 0.000 to 3.700 s, under F1, not over at the end</system-out>";
        let document = render(&run, &results, &[]);
        assert!(document.contains(told), "{document}");
    }
}
