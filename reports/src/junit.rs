//! The run as JUnit XML, for build servers: one test case for every check and for every fault.
//!
//! A case keeps its name from night to night, so that a server can follow it: a fault is the first, second,
//! third one of its kind. What is drawn anew each time (its place in the schedule, the member that it hit) is
//! in its output.
//!
//! A broken promise is a failure. What could not be decided, and a fault that was not proven, is an error:
//! the test did not do its work, which is something else than the system failing it. A fault that found no
//! member or that the cluster cannot do is skipped, with the reason, and so is a nemesis that got no turn.
//!
//! The form is what both usual schemas allow, that of Jenkins' xUnit plugin (`junit-10.xsd`, for the
//! document) and that of Maven's Surefire (for each suite): counts on every suite, a time on every case, a
//! type on every failure and error, what a case put out behind them, and nothing beyond. The start is
//! therefore a property: Surefire's suites have no timestamp.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use checker::verdict::{CheckResult, Verdict};

use runs::faults::{FaultRecord, FaultState};
use runs::numbers::ns_to_s;
use runs::results::{Results, RunInfo};

/// What a test case holds.
enum Outcome {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}

struct Case {
    class: &'static str,
    name: String,
    seconds: Option<f64>,
    outcome: Outcome,
    detail: String,
    /// What is told of a case whatever became of it; empty where there is nothing.
    output: String,
}

/// The document.
pub fn render(run: &RunInfo, results: &Results, faults: &[FaultRecord]) -> String {
    let checks: Vec<Case> = results.checks.iter().map(check_case).collect();
    let faults = fault_cases(results, faults);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (tests, failures, errors, _) = tally(checks.iter().chain(&faults));
    let _ = writeln!(
        out,
        "<testsuites name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
         time=\"{:.3}\">",
        escape(&run.name),
        seconds(results.timings.total_ms / 1000.0)
    );
    suite(&mut out, run, results, "checks", results.timings.check_ms, &checks);
    suite(&mut out, run, results, "faults", results.timings.workload_ms, &faults);
    out.push_str("</testsuites>\n");
    out
}

fn check_case(check: &CheckResult) -> Case {
    let outcome = match check.verdict {
        Verdict::Valid => Outcome::Passed,
        Verdict::Invalid => Outcome::Failure(check.summary.clone()),
        Verdict::Unknown => Outcome::Error(check.summary.clone()),
    };
    let mut detail = String::new();
    if let Some(found) = &check.counterexample {
        detail.push_str(&found.sentence);
        detail.push('\n');
    }
    if !check.evidence.is_null() {
        let _ = writeln!(detail, "{}", check.evidence);
    }
    Case { class: "check", name: check.name.clone(), seconds: None, outcome, detail, output: String::new() }
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
        let why = "no fault of it found room in the schedule";
        cases.push(Case {
            class: "fault",
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
        FaultState::Unverified => Outcome::Error("the fault was not seen to bite".to_owned()),
        FaultState::Leaked => Outcome::Error("the fault was not seen to be gone".to_owned()),
        FaultState::NoTarget => Outcome::Skipped("no member fitted".to_owned()),
        FaultState::Unsupported => Outcome::Skipped("the cluster cannot do it".to_owned()),
    };
    let seconds = fault.verified_healed_ns.map(|gone| ns_to_s(gone.saturating_sub(fault.asked_ns)));
    let detail = [fault.evidence.as_str(), fault.healed_evidence.as_str()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .fold(String::new(), |all, text| all + text + "\n");
    let output = format!("{}: {}", fault.id, fault.sentence);
    Case { class: "fault", name: format!("{} {number}", fault.kind), seconds, outcome, detail, output }
}

fn tally<'a>(cases: impl Iterator<Item = &'a Case>) -> (u32, u32, u32, u32) {
    cases.fold((0, 0, 0, 0), |(tests, failures, errors, skipped), case| match case.outcome {
        Outcome::Passed => (tests + 1, failures, errors, skipped),
        Outcome::Failure(_) => (tests + 1, failures + 1, errors, skipped),
        Outcome::Error(_) => (tests + 1, failures, errors + 1, skipped),
        Outcome::Skipped(_) => (tests + 1, failures, errors, skipped + 1),
    })
}

/// What a file may claim to have taken is bounded, because a schema allows digits alone.
fn seconds(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1e12) } else { 0.0 }
}

fn suite(out: &mut String, run: &RunInfo, results: &Results, name: &str, took_ms: f64, cases: &[Case]) {
    let (tests, failures, errors, skipped) = tally(cases.iter());
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
         skipped=\"{skipped}\" time=\"{:.3}\">",
        seconds(took_ms / 1000.0)
    );
    let _ = writeln!(
        out,
        "    <properties>\n      <property name=\"started\" value=\"{}\"/>\n      \
         <property name=\"seed\" value=\"{}\"/>\n      <property name=\"verdict\" value=\"{}\"/>\n      \
         <property name=\"repeat\" value=\"{}\"/>\n    </properties>",
        escape(&run.started_utc),
        run.seed,
        results.verdict,
        escape(&results.repeat)
    );
    for case in cases {
        write_case(out, case);
    }
    out.push_str("  </testsuite>\n");
}

fn write_case(out: &mut String, case: &Case) {
    // A case must say a time; what one check alone took is not measured.
    let time = seconds(case.seconds.unwrap_or(0.0));
    let name = escape(&case.name);
    let _ = write!(out, "    <testcase classname=\"{}\" name=\"{name}\" time=\"{time:.3}\"", case.class);
    let told = match &case.outcome {
        Outcome::Passed => None,
        Outcome::Failure(message) => Some(("failure", message, " type=\"broken-promise\"")),
        Outcome::Error(message) => Some(("error", message, " type=\"not-decided\"")),
        Outcome::Skipped(message) => Some(("skipped", message, "")),
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

    #[test]
    fn what_xml_cannot_hold_is_escaped_or_replaced() {
        assert_eq!(escape("a<b>&\"\u{0}\u{1b}\n"), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}&#10;");
    }
}
