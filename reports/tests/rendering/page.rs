//! The page: one file that asks for nothing, with its parts in order and its rules kept.

use checker::history::History;
use checker::verdict::{CheckResult, Verdict};
use reports::html;
use runs::results::{Results, RunFile, RunInfo};
use runs::unsent::Unsent;

use crate::invented::{self, Ending, Invented};
use crate::structure::{attribute, elements, links_lead_somewhere};

/// The aim for a page, and a margin for longer names.
const SMALL_PAGE: usize = 200_000;

fn page(invented: &Invented) -> String {
    html::render(&invented.run, &invented.results, &invented.faults, &invented.history)
}

const ENDINGS: [Ending; 3] = [Ending::Valid, Ending::Violation, Ending::Unknown];

#[test]
fn every_element_is_closed() {
    for ending in ENDINGS {
        elements(&page(&invented::run(ending, 200)));
    }
}

#[test]
fn the_page_asks_nothing_of_anywhere() {
    for ending in ENDINGS {
        let page = page(&invented::run(ending, 200));
        let names = elements(&page);
        assert_eq!(
            names.iter().filter(|name| *name == "script").count(),
            1,
            "{ending:?}: one script, which only adds"
        );
        for refused in ["link", "img", "iframe", "object", "embed", "base", "form", "image", "use"] {
            assert!(!names.iter().any(|name| name == refused), "{ending:?} has a {refused} element");
        }
        for address in ["http:", "https:", "url(", "@import", "src=", "srcset=", "javascript:"] {
            assert!(!page.contains(address), "{ending:?} has {address}");
        }
        for target in attribute(&page, "href") {
            let file = !target.contains(':') && !target.starts_with('/');
            assert!(target.starts_with('#') || file, "{target} leads away");
        }
    }
}

#[test]
fn every_link_within_the_page_leads_somewhere() {
    for ending in ENDINGS {
        let page = page(&invented::run(ending, 200));
        links_lead_somewhere(&page, &format!("{ending:?}"));
    }
}

#[test]
fn the_parts_stand_in_their_order_and_the_verdict_is_first() {
    let page = page(&invented::run(Ending::Violation, 200));
    let parts = [
        "<h1>",
        "id=\"counterexample\"",
        "id=\"timeline\"",
        "id=\"elections\"",
        "id=\"latency\"",
        "id=\"faults\"",
        "id=\"checks\"",
        "id=\"configuration\"",
    ];
    let places: Vec<usize> =
        parts.iter().map(|part| page.find(part).unwrap_or_else(|| panic!("no {part}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!super::page::page(&invented::run(Ending::Valid, 200)).contains("id=\"counterexample\""));
}

#[test]
fn what_the_harness_was_told_from_outside_stays_text() {
    const HOSTILE: &str = "\"'><script>alert(1)</script></style><!--&amp;\u{202e}\u{7}";
    let mut invented = invented::run(Ending::Violation, 50);
    let hostile = || HOSTILE.to_owned();
    invented.run.name = hostile();
    (invented.run.system.name, invented.run.system.before) = (hostile(), hostile());
    invented.run.started_utc = hostile();
    invented.run.mutant = Some(hostile());
    invented.run.versions.insert(hostile(), hostile());
    invented.results.repeat = hostile();
    invented.results.notes.push(hostile());
    invented.results.files.push(RunFile {
        name: "javascript:alert(1)".to_owned(),
        what: hostile(),
        bytes: None,
    });
    for fault in &mut invented.faults {
        fault.kind = hostile();
        fault.sentence = hostile();
        fault.evidence = hostile();
        fault.healed_evidence = hostile();
    }
    for check in &mut invented.results.checks {
        check.name = hostile();
        check.summary = hostile();
        check.evidence = serde_json::json!({HOSTILE: HOSTILE});
        if let Some(found) = &mut check.counterexample {
            found.sentence = hostile();
            found.ops[0].session = Some(hostile());
        }
    }
    let page = page(&invented);
    let names = elements(&page);
    assert!(!names.iter().any(|name| name.starts_with("!--")));
    for once in ["style", "script"] {
        assert_eq!(names.iter().filter(|name| *name == once).count(), 1);
    }
    assert!(!page.contains('\u{202e}') && !page.contains('\u{7}'));
    assert!(attribute(&page, "href").iter().all(|href| !href.contains(':')));
}

#[test]
fn ten_times_the_operations_are_not_ten_times_the_page() {
    let few = page(&invented::run(Ending::Valid, 400)).len();
    let many = page(&invented::run(Ending::Valid, 4000)).len();
    assert!(many < SMALL_PAGE, "{many} bytes");
    assert!(many < few * 2, "{few} bytes became {many}");
}

#[test]
fn a_run_of_which_nothing_is_known_still_has_a_page() {
    let run = RunInfo { name: "empty".to_owned(), nodes: 1, ..RunInfo::default() };
    let mut results = Results::new(Verdict::Unknown, &run);
    results.checks.push(CheckResult::new("load", Verdict::Unknown, ""));
    let page = html::render(&run, &results, &[], &History::default());
    elements(&page);
    assert!(page.contains("No operation is on record.") && page.contains("Nothing was broken"));
}

#[test]
fn what_the_bench_did_not_send_is_marked_through_all_lanes_and_told() {
    let mut invented = invented::run(Ending::Valid, 200);
    let marks = |page: &str| page.matches("class=\"x unsent\"").count();
    assert_eq!(marks(&page(&invented)), 0);
    let second = 1_000_000_000;
    invented.results.unsent = Some(Unsent {
        due: 200,
        replaced: 40,
        stretches: vec![(2 * second, 3 * second), (5 * second, 6 * second)],
        ..Unsent::default()
    });
    let page = page(&invented);
    assert_eq!((marks(&page), page.matches("class=\"x out unsent\"").count()), (2, 2));
    assert!(page.contains("because clients were being replaced; what fell due there is no outage"));
}

#[test]
fn a_phase_that_nobody_knows_has_a_dash_and_no_bar_and_the_page_says_why() {
    let mut invented = invented::run(Ending::Valid, 200);
    let bars = |page: &str| page.matches("<i class=\"looking\" style=").count();
    let before = bars(&page(&invented));
    for election in &mut invented.results.elections {
        (election.election_ms, election.sync_ms) = (None, None);
    }
    let page = page(&invented);
    assert!(bars(&page) < before, "{} bars, {before} before", bars(&page));
    assert!(page.contains("A dash: not known, so it has no bar"));
    assert!(page.contains("title=\"no member said when the vote was decided\""));
}

#[test]
fn a_drawing_has_no_text_and_no_colour_of_its_own() {
    let page = page(&invented::run(Ending::Violation, 200));
    for drawing in page.split("<svg").skip(1).filter_map(|rest| rest.split("</svg>").next()) {
        for refused in ["<text", "<circle r", "fill=", "stroke=", "style="] {
            assert!(!drawing.contains(refused), "{refused} in {drawing:.120}");
        }
    }
}

#[test]
fn a_fault_never_verified_stays_hatched_to_its_end() {
    let page = page(&invented::run(Ending::Unknown, 50));
    let bar = page
        .split("<i ")
        .find(|part| part.contains("bar unproven") && part.contains("--a:10.003"))
        .expect("the bar of F3");
    assert!(bar.contains("--b:12.175"), "{bar:.120}");
}

/// What stands between two texts, for a message.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    page.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap_or_default()
}

#[test]
fn elections_of_different_kinds_have_no_percentile_in_common() {
    let page = page(&invented::run(Ending::Valid, 50));
    // Of seven elections of three kinds none has a median but the one that has three.
    assert!(
        page.contains("kill-leader 3:</b> p50 46, largest 54 ms"),
        "{}",
        between(&page, "by-kind", "</ul>")
    );
    assert!(page.contains("partition-leader 2:</b> largest 329 ms"));
}

#[test]
fn results_survive_their_file() {
    let invented = invented::run(Ending::Violation, 100);
    let text = serde_json::to_string(&invented.results).expect("results are plain data");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(json["verdict"], "invalid");
    assert_eq!(json["faults"]["planned"], 7);
    assert!(json["latency"]["write-calm"]["p99_ms"].is_number());
    assert!(json["elections"][0]["detection_ms"].is_number());
    assert!(json["seed"].is_number() && json["repeat"].is_string() && json["checks"].is_array());
    let back: Results = serde_json::from_str(&text).expect("reads back");
    assert_eq!(back, invented.results);
}

#[test]
fn moments_at_the_end_of_time_are_drawn_like_others() {
    for (first, last) in [(u64::MAX, u64::MAX), (0, u64::MAX), (u64::MAX, 0)] {
        let mut invented = invented::run(Ending::Violation, 50);
        for (at, fault) in invented.faults.iter_mut().enumerate() {
            fault.asked_ns = first;
            fault.injected_ns = (at > 0).then_some(first);
            fault.verified_ns = Some(last);
            (fault.heal_asked_ns, fault.healed_ns, fault.verified_healed_ns) =
                (Some(last), Some(first), Some(last));
        }
        for election in &mut invented.results.elections {
            election.fault_ns = last;
            (election.total_ms, election.detection_ms) = (Some(f64::MAX), Some(-1.0));
        }
        for span in &mut invented.results.member_spans {
            (span.from_ns, span.to_ns) = (first, last);
        }
        for outage in &mut invented.results.outages {
            (outage.from_ns, outage.to_ns) = (first, last);
        }
        for check in &mut invented.results.checks {
            for op in check.counterexample.iter_mut().flat_map(|found| &mut found.ops) {
                (op.invoke_ns, op.complete_ns) = (first, Some(last));
            }
        }
        invented.results.timings.total_ms = f64::INFINITY;
        runs::operations::count_around_faults(&invented.history, &mut invented.faults);
        runs::latency::summaries(&invented.history, &invented.faults, &[]);
        let Invented { results, faults, history, .. } = &mut invented;
        results.election_kinds = runs::election_kinds::by_kind(&results.elections, faults);
        let context =
            runs::outages::Context { faults, elections: &results.elections, load_end_ns: Some(last) };
        runs::outages::from_history(history, context, 0);
        elements(&page(&invented));
        elements(&reports::junit::render(&invented.run, &invented.results, &invented.faults));
    }
}
