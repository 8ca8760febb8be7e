//! The JUnit file: one case for each check and each fault.

use checker::verdict::{CheckResult, Verdict};
use reports::junit;
use runs::results::FaultState;

use crate::invented::{self, Ending};
use crate::structure::{attribute, elements};

fn document(ending: Ending) -> String {
    let invented = invented::run(ending, 50);
    junit::render(&invented.run, &invented.results, &invented.faults)
}

#[test]
fn there_is_one_test_case_for_every_check_and_every_fault() {
    let names = elements(&document(Ending::Valid));
    assert_eq!(names.iter().filter(|name| *name == "testcase").count(), 6 + 7);
    assert!(!names.iter().any(|name| name == "failure" || name == "error"));
}

#[test]
fn a_broken_promise_is_a_failure_and_an_unproven_fault_an_error() {
    let violation = elements(&document(Ending::Violation));
    assert_eq!(violation.iter().filter(|name| *name == "failure").count(), 1);
    let unknown = elements(&document(Ending::Unknown));
    assert_eq!(unknown.iter().filter(|name| *name == "failure").count(), 0);
    assert_eq!(unknown.iter().filter(|name| *name == "error").count(), 2);
}

#[test]
fn a_fault_without_target_is_skipped_with_its_reason() {
    let mut invented = invented::run(Ending::Valid, 50);
    invented.faults[0].state = FaultState::NoTarget;
    invented.faults[0].evidence = "no leader <at> that moment".to_owned();
    let document = junit::render(&invented.run, &invented.results, &invented.faults);
    elements(&document);
    assert!(document.contains("<skipped message=\"no member fitted\">no leader &lt;at&gt; that moment"));
    assert_eq!(attribute(&document, "skipped"), ["0", "1"]);
}

#[test]
fn a_check_that_had_nothing_to_judge_is_skipped_and_does_not_count() {
    let mut invented = invented::run(Ending::Valid, 50);
    let idle = CheckResult::nothing_judged("progress", "no fault was long enough");
    assert_eq!(Verdict::of([&idle]), Verdict::Unknown, "it proves nothing by itself");
    invented.results.checks.push(idle);
    assert_eq!(Verdict::of(&invented.results.checks), Verdict::Valid);
    let document = junit::render(&invented.run, &invented.results, &invented.faults);
    assert!(document.contains("<skipped message=\"no fault was long enough\""), "{document}");
}

#[test]
fn a_case_keeps_its_name_whatever_was_drawn() {
    let invented = invented::run(Ending::Valid, 50);
    let names = |invented: &invented::Invented| {
        let document = junit::render(&invented.run, &invented.results, &invented.faults);
        case_names(&document)
    };
    let before = names(&invented);
    let mut other = invented::run(Ending::Valid, 50);
    for fault in &mut other.faults {
        fault.sentence = "another member".to_owned();
    }
    assert_eq!(before, names(&other));
    let kind = &invented.faults[0].kind;
    assert!(before.contains(&format!("{kind} 1")), "{before:?}");
    let document = junit::render(&invented.run, &invented.results, &invented.faults);
    assert!(
        document.contains(&format!("<system-out>F1: {}</system-out>", invented.faults[0].sentence)),
        "{document}"
    );
}

/// The names of all test cases.
pub(crate) fn case_names(document: &str) -> Vec<String> {
    let cases = document.lines().filter_map(|line| line.split_once("<testcase classname="));
    let name = |(_, rest): (&str, &str)| rest.split("name=\"").nth(1)?.split('"').next().map(str::to_owned);
    cases.filter_map(name).collect()
}

#[test]
fn hostile_names_stay_text() {
    let mut invented = invented::run(Ending::Violation, 50);
    invented.run.name = "\"/><failure>\u{0}".to_owned();
    invented.results.checks[0].summary = "]]></testcase>".to_owned();
    let names = elements(&junit::render(&invented.run, &invented.results, &invented.faults));
    assert_eq!(names.iter().filter(|name| *name == "failure").count(), 1);
}

#[test]
fn the_form_is_what_the_usual_schemas_allow() {
    for ending in [Ending::Valid, Ending::Violation, Ending::Unknown] {
        keeps_to_the_schemas(&document(ending));
    }
}

/// Panics at what one of the two usual schemas does not allow.
pub(crate) fn keeps_to_the_schemas(document: &str) {
    elements(document);
    let allowed = |tag: &str| -> &[&str] {
        match tag {
            "testsuites" => &["name", "tests", "failures", "errors", "time"],
            "testsuite" => &["name", "tests", "failures", "errors", "skipped", "time"],
            "property" => &["name", "value"],
            "testcase" => &["classname", "name", "time"],
            "failure" | "error" => &["message", "type"],
            "skipped" => &["message"],
            "properties" | "system-out" => &[],
            other => panic!("no schema knows {other}"),
        }
    };
    for tag in document.split('<').skip(2).filter(|tag| !tag.starts_with('/')) {
        let (name, rest) = tag.split_once([' ', '>']).expect("a tag");
        let inside = rest.split('>').next().expect("its end");
        let names: Vec<&str> =
            inside.split("=\"").filter_map(|part| part.rsplit([' ', '"']).next()).collect();
        let names = &names[..names.len().saturating_sub(1)];
        assert_eq!(names, allowed(name), "{tag}");
    }
    for time in attribute(document, "time") {
        let digits = time.split_once('.').expect("three digits behind a point");
        assert!(digits.1.len() == 3 && time.parse::<f64>().is_ok_and(|time| time >= 0.0), "{time}");
    }
    // Jenkins' schema wants a property in every list of them.
    assert!(!document.contains("<properties>\n    </properties>"), "an empty list");
}
