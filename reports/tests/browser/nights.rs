//! A night's page in a real browser: as quiet, as narrow and as readable as a run's.

use std::fs;
use std::path::PathBuf;

use reports::nights::{View, page};

use crate::chrome::{Browser, scratch};
use crate::invented_nights::{Drawn, Ending, nights};
use crate::{AUDIT, WIDTHS, clean};

/// Every page that is looked at, by its name.
fn all() -> Vec<(&'static str, Drawn)> {
    vec![
        ("valid", nights(60, 14, Ending::Valid)),
        ("failing", nights(60, 46, Ending::Failing)),
        ("not-ended", nights(8, 12, Ending::NotEnded)),
        ("nothing", nights(1, 3, Ending::Nothing)),
        ("large", nights(45, 120, Ending::Failing)),
        ("long", long_names()),
    ]
}

/// Names without a place to break, and reasons of a page.
fn long_names() -> Drawn {
    let mut drawn = nights(40, 12, Ending::Failing);
    for night in &mut drawn.nights {
        night.begun.build = "b".repeat(90);
        night.begun.machine.kernel = format!("Linux {}", "6".repeat(90));
        for attempt in &mut night.attempts {
            attempt.case.push_str(&"_and_more".repeat(12));
            attempt.why = if attempt.why.is_empty() { String::new() } else { "why-and-why-".repeat(60) };
        }
        for found in &mut night.found {
            found.shape.case.push_str(&"_and_more".repeat(12));
            found.command.push_str(&format!(" --label {}", "x".repeat(300)));
            found.sentence = "it_is_so_".repeat(60);
        }
    }
    Drawn::of(drawn.nights)
}

fn write(test: &str, name: &str, view: &View<'_>) -> PathBuf {
    let file = scratch().join(format!("night-{test}-{name}.html"));
    fs::write(&file, page(view)).expect("a page is written");
    file
}

#[test]
fn a_nights_page_asks_for_nothing_and_runs_nothing_but_its_own_script() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, drawn) in all() {
        browser.open(&write("quiet", name, &drawn.view()));
        assert_eq!(browser.eval("document.documentElement.className"), "js", "{name}");
        browser.eval("document.querySelectorAll('.sort').forEach((sort) => sort.click())");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{name}");
        let untold = browser.eval("document.querySelectorAll('time:not([title])').length");
        assert_eq!(untold, 0, "{name}: a moment without the reader's zone");
    }
}

#[test]
fn a_nights_page_never_scrolls_sideways_and_no_two_labels_overlap() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, drawn) in all() {
        let file = write("overlap", name, &drawn.view());
        for width in WIDTHS {
            browser.screen(width, false);
            browser.open(&file);
            for unfolded in [false, true] {
                browser.eval(&format!(
                    "document.querySelectorAll('details').forEach((part) => {{ part.open = {unfolded}; }})"
                ));
                clean(&mut browser, "overlaps()", &format!("{name} at {width} px"));
                clean(&mut browser, "sideways()", &format!("{name} at {width} px"));
            }
        }
    }
}

#[test]
fn a_nights_page_can_be_read_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, drawn) in all().into_iter().filter(|(name, _)| *name != "large") {
        let file = write("contrast", name, &drawn.view());
        for (width, dark) in [(1280, false), (1280, true), (400, true)] {
            browser.screen(width, dark);
            browser.open(&file);
            clean(&mut browser, "contrast()", &format!("{name} at {width} px, dark: {dark}"));
        }
    }
}

#[test]
fn a_nights_page_on_paper_is_light_and_shows_everything() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, drawn) in all() {
        browser.media("print", 703, true);
        browser.open(&write("paper", name, &drawn.view()));
        assert_eq!(browser.eval("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
        clean(&mut browser, "hidden('nav')", name);
        clean(&mut browser, "overlaps()", &format!("{name} on paper"));
        clean(&mut browser, "sideways()", &format!("{name} on paper"));
        let params = serde_json::json!({"printBackground": true, "preferCSSPageSize": true});
        let printed = browser.call("Page.printToPDF", params);
        assert!(printed["data"].as_str().expect("a document").len() > 10_000, "{name}");
    }
}

#[test]
fn a_nights_page_is_whole_without_its_script() {
    let Some(mut browser) = Browser::start() else { return };
    let file = write("plain", "failing", &nights(40, 20, Ending::Failing).view());
    let words = "(() => { const page = document.querySelector('main').cloneNode(true);
         page.querySelectorAll('.copy').forEach((added) => added.remove());
         return page.textContent.replace(/\\s+/g, ' '); })()";
    browser.open(&file);
    let with = browser.eval(words);
    browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({"value": true}));
    browser.open(&file);
    assert_eq!(with, browser.eval(words));
    browser.eval(AUDIT);
    clean(&mut browser, "overlaps()", "a night without its script");
}
