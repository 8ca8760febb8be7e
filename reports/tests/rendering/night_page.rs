//! A night's page: one file that asks for nothing, whatever is in the index, and green only for a reason.

use nights::index::{Attempt, LeftOut};
use nights::pile::Pile;
use reports::nights::{View, page};

use crate::invented_nights::{Drawn, Ending, case, nights};
use crate::structure::{attribute, elements, links_lead_somewhere};

const ENDINGS: [Ending; 4] = [Ending::Valid, Ending::Failing, Ending::NotEnded, Ending::Nothing];
const HOSTILE: &str = "\"'><script>alert(1)</script></style><!--&amp;\u{202e}\u{7}";

fn drawn(ending: Ending) -> Drawn {
    nights(30, 12, ending)
}

/// Every text of a night replaced.
fn hostile() -> Drawn {
    let mut drawn = drawn(Ending::Failing);
    let hostile = || HOSTILE.to_owned();
    let night = drawn.nights.last_mut().expect("a night");
    (night.begun.build, night.begun.machine.kernel) = (hostile(), hostile());
    night.begun.profile = Some(hostile());
    night.begun.cases.insert(hostile(), Some(hostile()));
    let attack = |attempt: &mut Attempt| {
        (attempt.case, attempt.why, attempt.repeat_command) = (hostile(), hostile(), hostile());
        attempt.folder = Some("javascript:alert(1)//../..".to_owned());
        attempt.series = attempt.series.values().map(|sample| (hostile(), *sample)).collect();
    };
    night.attempts.iter_mut().chain(&mut night.mutants).for_each(attack);
    for found in &mut night.found {
        (found.sentence, found.command, found.folder) = (hostile(), hostile(), "../../etc".to_owned());
        (found.shape.case, found.shape.check, found.fingerprint) = (hostile(), hostile(), hostile());
    }
    for worlds in &mut night.worlds {
        worlds.broken.push((1, hostile()));
    }
    for alarm in &mut night.alarms {
        (alarm.case, alarm.series, alarm.sentence) = (hostile(), hostile(), hostile());
    }
    let judged = night.judged.as_mut().expect("it has an end");
    judged.sentence = hostile();
    judged.left_out.push(LeftOut { case: hostile(), runs: 1, why: hostile() });
    for judgement in judged.thresholds.values_mut().flatten() {
        (judgement.threshold, judgement.sentence) = (hostile(), hostile());
    }
    let mut again = Drawn::of(drawn.nights);
    for finding in &mut again.findings {
        finding.link = Some("javascript:alert(1)".to_owned());
    }
    again
}

#[test]
fn every_element_is_closed_and_there_is_one_script() {
    for ending in ENDINGS {
        let names = elements(&page(&drawn(ending).view()));
        for once in ["style", "script", "h1"] {
            assert_eq!(names.iter().filter(|name| *name == once).count(), 1, "{ending:?}: {once}");
        }
    }
}

#[test]
fn the_page_leads_to_the_store_and_to_what_is_known_and_nowhere_else() {
    for drawn in [drawn(Ending::Failing), hostile()] {
        let page = page(&drawn.view());
        let names = elements(&page);
        for refused in ["link", "img", "iframe", "object", "embed", "base", "form", "image", "use"] {
            assert!(!names.iter().any(|name| name == refused), "a {refused} element");
        }
        for address in ["url(", "@import", "src=", "srcset="] {
            assert!(!page.contains(address), "{address}");
        }
        for target in attribute(&page, "href") {
            let file = !target.contains(':') && !target.starts_with('/') && !target.contains("..");
            let known = target.starts_with("https://example.org/");
            assert!(target.starts_with('#') || file || known, "{target} leads away");
        }
    }
}

#[test]
fn what_stands_in_the_index_stays_text() {
    let page = page(&hostile().view());
    let names = elements(&page);
    assert!(!names.iter().any(|name| name.starts_with("!--")));
    assert_eq!(names.iter().filter(|name| *name == "script").count(), 1);
    assert!(!page.contains("<script>alert") && !page.contains('\u{202e}') && !page.contains('\u{7}'));
}

#[test]
fn every_link_within_the_page_leads_somewhere() {
    for ending in ENDINGS {
        let page = page(&drawn(ending).view());
        links_lead_somewhere(&page, &format!("{ending:?}"));
    }
}

#[test]
fn the_parts_stand_in_their_order_and_the_verdict_is_first() {
    let page = page(&drawn(Ending::Failing).view());
    let parts = ["<h1>", "findings", "cases", "thresholds", "series", "work", "planted", "left-out", "files"];
    let place = |part: &str| {
        let id = if part.starts_with('<') { part.to_owned() } else { format!("id=\"{part}\"") };
        page.find(&id).unwrap_or_else(|| panic!("no {part}"))
    };
    let places: Vec<usize> = parts.iter().map(|part| place(part)).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_night_without_an_end_or_without_a_run_never_looks_green() {
    let tone = |drawn: &Drawn| {
        let page = page(&drawn.view());
        let at = page.find("<header class=\"verdict ").expect("a verdict") + "<header class=\"verdict ".len();
        page[at..].split('"').next().expect("its end").to_owned()
    };
    assert_eq!(tone(&drawn(Ending::Valid)), "valid");
    assert_eq!(tone(&drawn(Ending::Failing)), "invalid");
    assert_eq!(tone(&drawn(Ending::Nothing)), "unknown");
    let mut open = drawn(Ending::Valid);
    open.nights.last_mut().expect("a night").judged = None;
    assert_eq!(tone(&open), "unknown");
    let mut stopped = drawn(Ending::Valid);
    stopped.nights.last_mut().and_then(|night| night.judged.as_mut()).expect("judged").interrupted = true;
    assert_eq!(tone(&stopped), "unknown");
    let none = View { nights: &[], findings: &[], series: &[] };
    assert!(page(&none).contains("There was no night"));
}

#[test]
fn a_square_has_its_piles_pattern_and_leads_to_its_run() {
    let drawn = drawn(Ending::Failing);
    let page = page(&drawn.view());
    let night = drawn.nights.last().expect("a night");
    let run = night.attempts.iter().find(|attempt| attempt.pile == Pile::Violation).expect("a violation");
    let link = format!("<a class=\"k\" href=\"{}/report.html\"", run.folder.as_deref().expect("a folder"));
    assert!(page.contains(&link), "{link}");
    // One case was not run tonight, and has a square all the same.
    assert!(page.contains(&format!("{}</span>", case(7))) && page.contains("not run"));
}

#[test]
fn a_level_that_changed_is_dated_with_its_builds() {
    let page = page(&drawn(Ending::Failing).view());
    assert!(page.contains("since night 20") && page.contains("(build 0.9."), "no change is told");
}

#[test]
fn hundreds_of_cases_and_a_year_of_nights_are_a_small_page() {
    let drawn = nights(400, 300, Ending::Failing);
    let page = page(&drawn.view());
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    elements(&page);
    // Nothing but failures takes more: each square has a reason and a link.
    let mut nights = drawn.nights;
    for attempt in nights.iter_mut().flat_map(|night| &mut night.attempts) {
        attempt.pile = Pile::Unknown;
        attempt.why = "nothing could be said about it, ".repeat(20);
        attempt.folder = attempt.folder.as_ref().map(|folder| format!("{folder}-{}", "x".repeat(60)));
    }
    let view = View { nights: &nights, findings: &drawn.findings, series: &drawn.series };
    let page = reports::nights::page(&view);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}
