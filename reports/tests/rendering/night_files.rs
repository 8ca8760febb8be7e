//! A night on the terminal and for build servers: Markdown, annotations, JUnit.

use nights::pile::Pile;
use reports::nights::{View, annotations, junit, markdown, open_metrics, screen, screen_page};
use reports::terminal::Style;

use crate::invented_nights::{Drawn, Ending, case, nights};
use crate::structure::{elements, without_colour};
use crate::xml::{case_names, keeps_to_the_schemas};

const PLAIN: Style = Style { colour: false, width: 100 };
const ENDINGS: [Ending; 4] = [Ending::Valid, Ending::Failing, Ending::NotEnded, Ending::Nothing];

fn drawn(ending: Ending) -> Drawn {
    nights(30, 12, ending)
}

fn none() -> View<'static> {
    View { nights: &[], findings: &[], series: &[] }
}

#[test]
fn the_screen_begins_with_the_verdict_and_tells_what_is_to_be_done() {
    let text = screen(&drawn(Ending::Failing).view(), PLAIN);
    assert!(text.trim_start().starts_with("✗ VIOLATION"), "{text}");
    for told in [
        "exit status 1",
        "bench failure: ",
        "$ harness replay ",
        "2 of 3 replays",
        "crossed: ",
        "too few: ",
        "confirmed: ",
        "commit-alone convicted",
        "left out",
        "worlds",
    ] {
        assert!(text.contains(told), "no {told} in {text}");
    }
    assert!(screen_page("a/b.html").starts_with("page "));
}

#[test]
fn only_commands_are_wider_than_a_screen() {
    for ending in ENDINGS {
        for width in [60, 100, 300] {
            let text = screen(&drawn(ending).view(), Style { colour: false, width });
            for line in text.lines().filter(|line| line.chars().count() > width.min(100)) {
                assert!(line.trim_start().starts_with("$ "), "{width}: {line}");
            }
        }
    }
}

#[test]
fn colour_only_repeats_what_the_screen_says() {
    let drawn = drawn(Ending::Failing);
    let coloured = screen(&drawn.view(), Style { colour: true, ..PLAIN });
    assert_eq!(without_colour(&coloured), screen(&drawn.view(), PLAIN));
}

#[test]
fn no_rendering_calls_a_night_valid_that_ran_nothing_or_has_no_end() {
    for ending in [Ending::Nothing, Ending::NotEnded] {
        let drawn = drawn(ending);
        let view = drawn.view();
        assert!(!screen(&view, PLAIN).contains("✓ VALID"), "{ending:?}");
        assert!(!markdown(&view).starts_with("## ✓"), "{ending:?}");
        assert!(!annotations(&view).is_empty(), "{ending:?}");
        assert!(open_metrics(&view).contains("harness_night_valid 0"), "{ending:?}");
        assert!(junit(&view).contains("<error"), "{ending:?}");
    }
    assert!(screen(&none(), PLAIN).contains("UNKNOWN"));
    assert!(markdown(&none()).contains("no night") && annotations(&none()).starts_with("::error"));
}

#[test]
fn a_valid_night_annotates_nothing() {
    assert_eq!(annotations(&drawn(Ending::Valid).view()), "");
}

#[test]
fn annotations_are_commands_of_a_line_each_and_as_many_as_are_shown() {
    let mut drawn = drawn(Ending::Failing);
    for attempt in &mut drawn.nights.last_mut().expect("a night").attempts {
        attempt.pile = if attempt.case == case(0) { Pile::BenchFailure } else { Pile::Violation };
        attempt.why = "100 %,\r\n::error::forged".to_owned();
    }
    let text = annotations(&drawn.view());
    for line in text.lines() {
        let (command, message) = line[2..].split_once("::").expect("a command");
        let (level, title) = command.split_once(" title=").expect("a title");
        assert!(line.starts_with("::") && matches!(level, "error" | "warning"), "{line}");
        assert!(!title.contains([':', ',']) && !message.contains(['\r', '\n']), "{line}");
    }
    assert!(text.contains("100 %25,%0D%0A::error::forged"));
    for level in ["::error ", "::warning "] {
        assert!(text.lines().filter(|line| line.starts_with(level)).count() <= 10, "{text}");
    }
    assert!(text.contains("more%2C") || text.contains("more, on the night's page"), "{text}");
}

#[test]
fn the_summary_has_the_cases_the_findings_and_their_commands() {
    let text = markdown(&drawn(Ending::Failing).view());
    for told in ["## ✗ Violation", "### Findings", "```sh\nharness replay", "### Thresholds", "### Left out"]
    {
        assert!(text.contains(told), "no {told} in {text}");
    }
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
        let all: Vec<usize> = table.lines().map(columns).collect();
        assert!(all.iter().all(|number| *number == all[0]), "{table}");
    }
}

#[test]
fn the_document_keeps_to_both_schemas() {
    for ending in ENDINGS {
        keeps_to_the_schemas(&junit(&drawn(ending).view()));
    }
    elements(&junit(&none()));
}

#[test]
fn each_pile_has_its_place_in_the_document() {
    let document = junit(&drawn(Ending::Failing).view());
    for (tag, kind) in [
        ("failure", "broken-promise"),
        ("failure", "regression"),
        ("error", "not-decided"),
        ("error", "bench-failure"),
    ] {
        let is_there = |line: &&str| {
            line.trim_start().starts_with(&format!("<{tag} ")) && line.contains(&format!("type=\"{kind}\""))
        };
        assert!(document.lines().any(|line| is_there(&line)), "no {tag} of {kind}");
    }
    let left_out = format!("<testcase classname=\"{}\" name=\"run 2\"", case(7));
    let (_, behind) = document.split_once(&left_out).expect("a run that was left out");
    assert!(behind.trim_start_matches(|c| c != '\n').trim_start().starts_with("<skipped message=\"no time"));
}

#[test]
fn test_cases_keep_their_names_from_night_to_night() {
    let mut drawn = drawn(Ending::Valid);
    let names = |drawn: &Drawn| {
        let mut names = case_names(&junit(&drawn.view()));
        names.sort();
        names
    };
    let before = names(&drawn);
    assert!(before.contains(&"run 1".to_owned()) && before.contains(&"outage max &lt; 1s".to_owned()));
    // The last case is not run, and the document has it all the same.
    let night = drawn.nights.last_mut().expect("a night");
    night.attempts.retain(|attempt| attempt.case != case(0));
    let judged = night.judged.as_mut().expect("judged");
    judged.thresholds.remove(&case(0));
    judged.left_out.push(nights::index::LeftOut { case: case(0), runs: 2, why: "no time".to_owned() });
    assert_eq!(names(&drawn), before);
}

#[test]
fn a_run_that_was_tried_again_says_what_the_first_try_was() {
    let mut drawn = drawn(Ending::Valid);
    let night = drawn.nights.last_mut().expect("a night");
    let mut first = night.attempts[0].clone();
    first.pile = Pile::Unknown;
    first.why = "the engine was slow".to_owned();
    night.attempts[0].attempt = 2;
    night.attempts.insert(0, first);
    let document = junit(&drawn.view());
    assert!(document.contains("try 1: unknown: the engine was slow&#10;try 2: valid"), "{document:.3000}");
}
