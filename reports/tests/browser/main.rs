//! The page in a real browser: it asks for nothing, nothing overlaps, and what the script adds works.
//!
//! Needs Chromium in `$PATH` or `$CHROME`; without one the tests say so and pass, unless `REQUIRE_BROWSER=1`.

mod chrome;
mod extremes;
#[path = "../../examples/invented/mod.rs"]
mod invented;
#[path = "../../examples/invented_nights/mod.rs"]
mod invented_nights;
mod nights;
mod script;

use std::fs;
use std::path::PathBuf;

use chrome::{Browser, scratch};
use invented::Invented;
use reports::html;

/// A phone, and a wide screen.
const WIDTHS: [u32; 2] = [400, 1280];
/// What the browser itself looks for.
const AUDIT: &str = include_str!("audit.js");

/// Writes a page and returns its place.
fn write(test: &str, name: &str, run: &Invented) -> PathBuf {
    let file = scratch().join(format!("{test}-{name}.html"));
    fs::write(&file, html::render(&run.run, &run.results, &run.faults, &run.history))
        .expect("a page is written");
    file
}

/// Asks the audit for a list of sentences and fails with them.
fn clean(browser: &mut Browser, what: &str, page: &str) {
    browser.eval(AUDIT);
    let found = browser.eval(&format!("audit.{what}"));
    let found = found.as_array().expect("a list");
    assert!(
        found.is_empty(),
        "{page}, {what}: {} found, first {:#?}",
        found.len(),
        &found[..found.len().min(8)]
    );
}

#[test]
fn the_page_asks_for_nothing_and_runs_nothing_but_its_own_script() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, run) in extremes::all() {
        browser.open(&write("quiet", name, &run));
        // The script did run, over the whole page, and nothing else did.
        assert_eq!(browser.eval("document.documentElement.className"), "js", "{name}");
        let lanes = browser.eval("document.querySelectorAll('.lanes').length");
        assert_eq!(browser.eval("document.querySelectorAll('.zoombar').length"), lanes, "{name}");
        assert_eq!(browser.eval("String(window.stolen)"), "undefined", "{name}");
        browser.eval(
            "document.querySelectorAll('details').forEach((part) => { part.open = true; });
             const found = document.querySelector('.lanes');
             const lanes = found ? found.getBoundingClientRect() : { left: 0, right: 0, height: 0 };
             for (let x = lanes.left; x < lanes.right; x += 7) for (let y = 5; y < lanes.height; y += 29)
               document.querySelector('.lanes').dispatchEvent(
                 new PointerEvent('pointermove', { clientX: x, clientY: lanes.top + y, bubbles: true }));
             document.querySelectorAll('.sort').forEach((sort) => sort.click());",
        );
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{name}");
        let elements =
            browser.eval("document.querySelectorAll('script, style, img, svg[onload], [onerror]').length");
        assert_eq!(elements, 2, "{name}: the stylesheet and the script are all there is");
    }
}

#[test]
fn a_policy_would_stop_what_slipped_through() {
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&write("policy", "valid", &invented::run(invented::Ending::Valid, 50)));
    let refused = browser.eval(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'written'; } catch (error) { return \
            error.name; } })()",
    );
    assert_eq!(refused, "TypeError", "text became markup");
    browser.eval(
        "const added = document.createElement('script'); added.append('window.stolen = 1');
         document.body.append(added);",
    );
    assert_eq!(browser.eval("String(window.stolen)"), "undefined");
    let fetched = browser.eval("fetch('https://example.invalid/').then(() => 'fetched', () => 'refused')");
    assert_eq!(fetched, "refused");
    assert!(!browser.complaints().is_empty(), "the browser says what it refused");
}

#[test]
fn the_audit_finds_what_it_is_for() {
    let Some(mut browser) = Browser::start() else { return };
    browser.screen(400, false);
    browser.open(&write("audit", "valid", &invented::run(invented::Ending::Valid, 50)));
    browser.eval(
        "const add = (text, style) => { const made = document.createElement('p'); made.append(text);
           made.style.cssText = 'position: absolute; top: 0; margin: 0; ' + style;
           document.querySelector('main').append(made); };
         add('one label', 'left: 100px'); add('another label', 'left: 110px');
         add('far away', 'left: 390px; white-space: nowrap');
         add('pale', 'left: 20px; top: 400px; color: #999; background: #aaa');
         add('gone', 'visibility: hidden');",
    );
    browser.eval(AUDIT);
    for (what, finds) in [
        ("overlaps()", "another label"),
        ("sideways()", "far away"),
        ("contrast()", "pale"),
        ("hidden('nav')", "gone"),
    ] {
        let found = browser.eval(&format!("audit.{what}")).to_string();
        assert!(found.contains(finds), "{what} does not find {finds}: {found}");
    }
}

#[test]
fn no_two_labels_overlap_and_nothing_leaves_the_screen() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, run) in extremes::all() {
        let file = write("overlap", name, &run);
        for width in WIDTHS {
            browser.screen(width, false);
            browser.open(&file);
            for unfolded in [false, true] {
                browser.eval(&format!(
                    "document.querySelectorAll('details').forEach((part) => {{ part.open = part.open || \
                        {unfolded}; }})"
                ));
                clean(&mut browser, "overlaps()", &format!("{name} at {width} px"));
                clean(&mut browser, "sideways()", &format!("{name} at {width} px"));
            }
        }
    }
}

#[test]
fn a_counterexample_of_twelve_steps_fits_a_wide_screen() {
    let Some(mut browser) = Browser::start() else { return };
    for (operations, fits) in [(6, true), (12, false)] {
        browser.screen(1280, false);
        browser.open(&write("steps", &operations.to_string(), &extremes::many_operations(operations)));
        let seen = browser.eval(
            "(() => { const box = document.querySelector('.sideways'), bad = box.querySelector('.impossible');
             const [outer, inner] = [box.getBoundingClientRect(), bad.getBoundingClientRect()];
             const within = inner.left >= outer.left && inner.right <= outer.right;
             return [box.scrollWidth <= box.clientWidth, within]; })()",
        );
        assert_eq!(
            seen,
            serde_json::json!([fits, true]),
            "{operations}: fits, and shows the answer that cannot be"
        );
    }
}

#[test]
fn text_stands_out_from_what_is_behind_it_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, run) in extremes::all() {
        let file = write("contrast", name, &run);
        for (width, dark) in [(1280, false), (1280, true), (400, true)] {
            browser.screen(width, dark);
            browser.open(&file);
            clean(&mut browser, "contrast()", &format!("{name} at {width} px, dark: {dark}"));
        }
    }
}

#[test]
fn paper_is_light_and_shows_everything() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, run) in extremes::all() {
        let file = write("paper", name, &run);
        // A4 without its margins.
        browser.media("print", 703, true);
        browser.open(&file);
        assert_eq!(browser.eval("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
        clean(&mut browser, "hidden('nav, .tip')", name);
        clean(&mut browser, "overlaps()", &format!("{name} on paper"));
        clean(&mut browser, "sideways()", &format!("{name} on paper"));
        clean(&mut browser, "contrast()", &format!("{name} on paper"));
        let params = serde_json::json!({"printBackground": true, "preferCSSPageSize": true});
        let printed = browser.call("Page.printToPDF", params);
        assert!(printed["data"].as_str().expect("a document").len() > 20_000, "{name}");
    }
}

#[test]
fn without_a_script_nothing_is_missing() {
    let Some(mut browser) = Browser::start() else { return };
    for (name, run) in extremes::all() {
        let file = write("plain", name, &run);
        // What the script adds (buttons, the line above the lanes, the readout) is not of the run.
        let words = "(() => { const page = document.querySelector('main').cloneNode(true);
             page.querySelectorAll('.copy, .zoombar, .tip').forEach((added) => added.remove());
             return page.textContent.replace(/\\s+/g, ' '); })()";
        browser.open(&file);
        let with = browser.eval(words);
        browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({"value": true}));
        browser.open(&file);
        assert_eq!(browser.eval("document.documentElement.className"), "", "{name}: the script did not run");
        assert_eq!(with, browser.eval(words), "{name}");
        clean(&mut browser, "overlaps()", &format!("{name} without its script"));
        browser.call("Emulation.setScriptExecutionDisabled", serde_json::json!({"value": false}));
    }
}
