//! The terminal: every line that it can print, in committed snapshots.

use checker::verdict::Verdict;
use reports::terminal::{self, Style};
use runs::results::FaultState;

use crate::invented::{self, Ending, Invented};
use crate::structure::without_colour;

const PLAIN: Style = Style { colour: false, width: 100 };

fn screen(invented: &Invented, style: Style) -> String {
    let page = Some("runs/nightly/20260314T021007Z/report.html");
    terminal::render(&invented.run, &invented.results, &invented.faults, page, style)
}

#[test]
fn a_valid_run_ends_in_these_lines() {
    insta::assert_snapshot!(screen(&invented::run(Ending::Valid, 200), PLAIN));
}

#[test]
fn a_violation_ends_in_these_lines() {
    insta::assert_snapshot!(screen(&invented::run(Ending::Violation, 200), PLAIN));
}

#[test]
fn an_undecided_run_ends_in_these_lines() {
    let mut invented = invented::run(Ending::Unknown, 200);
    invented.results.interrupted = true;
    invented.results.notes.push("The run was stopped after 12 s.".to_owned());
    insta::assert_snapshot!(screen(&invented, PLAIN));
}

#[test]
fn a_leaked_fault_says_what_was_seen_instead() {
    let mut invented = invented::run(Ending::Valid, 50);
    for fault in &mut invented.faults {
        fault.state = FaultState::Leaked;
        fault.healed_evidence = "4 of 20 links are still cut".to_owned();
    }
    let text = screen(&invented, PLAIN);
    assert!(text.contains("was leaked: 4 of 20 links are still cut"), "{text}");
    assert!(text.contains("and 2 more, on the page"), "{text}");
}

#[test]
fn colour_only_repeats_what_is_written() {
    for ending in [Ending::Valid, Ending::Violation, Ending::Unknown] {
        let invented = invented::run(ending, 50);
        let coloured = screen(&invented, Style { colour: true, ..PLAIN });
        assert!(coloured.contains('\u{1b}'));
        assert_eq!(without_colour(&coloured), screen(&invented, PLAIN));
    }
}

#[test]
fn it_is_one_screen_and_only_the_page_and_the_command_are_wider() {
    for ending in [Ending::Valid, Ending::Violation, Ending::Unknown] {
        let text = screen(&invented::run(ending, 50), Style { colour: false, width: 80 });
        assert!(text.lines().count() <= 24, "{text}");
        for line in text.lines().filter(|line| line.chars().count() > 80) {
            assert!(line.starts_with("repeat") || line.starts_with("page"), "{line}");
        }
    }
}

/// Rows on a terminal of 80 columns, which breaks what is longer.
fn rows(text: &str) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(80).max(1)).sum()
}

#[test]
fn failures_in_every_part_is_still_one_screen() {
    let mut invented = invented::run(Ending::Violation, 200);
    let story =
        "process 25 was refused to replace 4596 by 5281 in key 0 at member 2, although the register held it";
    for check in &mut invented.results.checks {
        check.verdict = Verdict::Invalid;
        check.summary = format!("{story} throughout: {story}");
    }
    for fault in &mut invented.faults {
        fault.state = FaultState::Leaked;
        fault.healed_evidence = story.repeat(3);
    }
    let text = screen(&invented, Style { colour: false, width: 80 });
    assert!(rows(&text) <= 24, "{} rows: {text}", rows(&text));
    assert!(text.contains("and 4 more, on the page") && text.contains(" ..."), "{text}");
    for ending in [Ending::Valid, Ending::Violation, Ending::Unknown] {
        let text = screen(&invented::run(ending, 200), Style { colour: false, width: 80 });
        assert!(rows(&text) <= 24, "{text}");
    }
}
