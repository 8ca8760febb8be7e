//! What the script adds: a readout, a closer look, sorting, copying.

use serde_json::json;

use crate::chrome::Browser;
use crate::invented::{self, Ending};
use crate::{clean, extremes, write};

/// The middle of an element, in px of the window, after scrolling to it.
fn middle(browser: &mut Browser, selector: &str) -> (f64, f64) {
    let place = browser.eval(&format!(
        "(() => {{ const element = document.querySelector({selector:?});
           element.scrollIntoView({{ block: 'center' }});
           const box = element.getBoundingClientRect();
           return [(box.left + box.right) / 2, (box.top + box.bottom) / 2]; }})()"
    ));
    (place[0].as_f64().expect("a number"), place[1].as_f64().expect("a number"))
}

/// Where a moment of the timeline stands, in px of the window.
fn moment(browser: &mut Browser, seconds: f64) -> f64 {
    let script = format!(
        "(() => {{ const box = document.querySelector('.bands').getBoundingClientRect();
           const style = document.querySelector('.lanes').style;
           const [from, span] = ['--t0', '--dt'].map((name) => parseFloat(style.getPropertyValue(name)));
           return box.left + ({seconds} - from) / span * box.width; }})()"
    );
    browser.eval(&script).as_f64().expect("a number")
}

/// The first moment and the length of what the timeline shows.
fn shown(browser: &mut Browser) -> (f64, f64) {
    let values = browser.eval(
        "['--t0', '--dt'].map((name) => \
            parseFloat(document.querySelector('.lanes').style.getPropertyValue(name)))",
    );
    (values[0].as_f64().expect("a number"), values[1].as_f64().expect("a number"))
}

fn readout(browser: &mut Browser) -> String {
    let text = browser
        .eval("document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent");
    text.as_str().expect("text").to_owned()
}

fn valid() -> Option<Browser> {
    let mut browser = Browser::start()?;
    browser.screen(1280, false);
    browser.open(&write("script", "valid", &invented::run(Ending::Valid, 400)));
    Some(browser)
}

fn drag(browser: &mut Browser, from: f64, to: f64, y: f64) {
    browser.pointer("mouseMoved", from, y, 0);
    browser.pointer("mousePressed", from, y, 1);
    browser.pointer("mouseMoved", (from + to) / 2.0, y, 1);
    browser.pointer("mouseMoved", to, y, 1);
    browser.pointer("mouseReleased", to, y, 1);
}

#[test]
fn the_readout_says_what_was_at_that_moment() {
    let Some(mut browser) = valid() else { return };
    let (_, y) = middle(&mut browser, ".throughput .plot");
    // F2 kills n4, which led in epoch 2, at 6 s; E2 is over 45 ms later.
    let x = moment(&mut browser, 7.0);
    browser.pointer("mouseMoved", x, y, 0);
    let text = readout(&mut browser);
    for part in ["F2", "kill n4", "n5 leading, epoch 3", "down", "operations/s", "p50"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(text.starts_with("7.0") || text.starts_with("6.9"), "{text}");
    let x = moment(&mut browser, 1.0);
    browser.pointer("mouseMoved", x, y, 0);
    assert!(!readout(&mut browser).contains("F1"), "nothing was broken then");
    browser.pointer("mouseMoved", 2.0, y, 0);
    assert_eq!(readout(&mut browser), "", "beside the lanes there is nothing to say");
}

#[test]
fn the_readout_names_the_operation_under_the_pointer() {
    let Some(mut browser) = valid() else { return };
    let (x, y) = middle(&mut browser, ".operations .mark.unknown");
    browser.pointer("mouseMoved", x, y, 0);
    assert!(readout(&mut browser).contains("unknown: p"), "{}", readout(&mut browser));
    let (x, y) = middle(&mut browser, ".operations .mark.failed");
    browser.pointer("mouseMoved", x, y, 0);
    assert!(readout(&mut browser).contains("failed: p"), "{}", readout(&mut browser));
    // The calm writes are a band around 1.8 ms.
    browser.eval("document.querySelector('svg.ops').scrollIntoView({ block: 'center' })");
    let at = browser.eval(
        "(() => { const box = document.querySelector('svg.ops').getBoundingClientRect();
           const data = document.querySelector('.operations .plot').dataset;
           const [low, high] = [data.low, data.high].map(Number);
           return box.top + box.height * Math.log(high / 1.8) / Math.log(high / low); })()",
    );
    let x = moment(&mut browser, 1.0);
    browser.pointer("mouseMoved", x, at.as_f64().expect("a number"), 0);
    let text = readout(&mut browser);
    assert!(text.contains(" ok due 1.0") || text.contains(" ok due 0.9"), "{text}");
    let took = text.split("about ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a latency");
    assert!((1.0..4.0).contains(&took.parse::<f64>().expect("a number")), "{text}");
}

#[test]
fn a_drag_looks_closer_and_every_lane_follows() {
    let Some(mut browser) = valid() else { return };
    let (from, whole) = shown(&mut browser);
    assert!(from == 0.0 && whole > 29.0);
    let (_, y) = middle(&mut browser, ".operations .plot");
    let (left, right) = (moment(&mut browser, 5.0), moment(&mut browser, 10.0));
    drag(&mut browser, left, right, y);
    let (from, span) = shown(&mut browser);
    assert!((from - 5.0).abs() < 0.1 && (span - 5.0).abs() < 0.1, "{from} {span}");
    // The dots follow by their viewBox: as much of the drawing as of the axis.
    let view = browser.eval(
        "(() => { const box = document.querySelector('svg.ops').viewBox.baseVal; return [box.x, box.width]; \
            })()",
    );
    let (x, width) = (view[0].as_f64().expect("x"), view[1].as_f64().expect("width"));
    assert!((x / width - from / span).abs() < 0.01, "{view}");
    // The axis has ticks of its own, all within.
    let ticks = browser
        .eval("Array.from(document.querySelectorAll('.axis .tick'), (tick) => parseFloat(tick.textContent))");
    let ticks: Vec<f64> =
        ticks.as_array().expect("ticks").iter().filter_map(serde_json::Value::as_f64).collect();
    assert!(ticks.len() > 4 && ticks.iter().all(|tick| *tick >= from - 0.01 && *tick <= from + span + 0.01));
    clean(&mut browser, "overlaps()", "a closer look");
    clean(&mut browser, "sideways()", "a closer look");
    // A fault is where the drawing says it is, closer or not.
    let x = moment(&mut browser, 7.0);
    browser.pointer("mouseMoved", x, y, 0);
    assert!(readout(&mut browser).contains("F2"));
    assert_eq!(browser.eval("document.querySelector('.whole').hidden"), false);
    browser.eval("document.querySelector('.whole').click()");
    assert_eq!(shown(&mut browser), (0.0, whole));
    assert_eq!(browser.eval("document.querySelector('.whole').hidden"), true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_click_fits_a_fault_and_a_double_click_shows_the_whole_run() {
    let Some(mut browser) = valid() else { return };
    let whole = shown(&mut browser);
    let (_, y) = middle(&mut browser, ".faultlane .label");
    let x = moment(&mut browser, 10.5);
    browser.pointer("mouseMoved", x, y, 0);
    browser.pointer("mousePressed", x, y, 1);
    browser.pointer("mouseReleased", x, y, 1);
    let (from, span) = shown(&mut browser);
    assert!(from > 9.0 && from < 10.1 && from + span > 12.1 && span < 4.0, "{from} {span}");
    browser.pointer("mousePressed", x, y + 100.0, 1);
    browser.pointer("mouseReleased", x, y + 100.0, 1);
    browser.pointer("mousePressed", x, y + 100.0, 2);
    browser.pointer("mouseReleased", x, y + 100.0, 2);
    assert_eq!(shown(&mut browser), whole);
    // The name of a fault in the table leads there as well.
    browser.eval("document.querySelector('a[data-fault=\"F4\"]').click()");
    let (from, span) = shown(&mut browser);
    assert!(from > 13.0 && from + span < 18.0, "{from} {span}");
}

#[test]
fn the_keyboard_reaches_every_moment() {
    let Some(mut browser) = valid() else { return };
    let whole = shown(&mut browser);
    browser.eval("document.querySelector('.lanes').focus()");
    browser.key("ArrowRight");
    let first = readout(&mut browser);
    browser.key("ArrowRight");
    assert!(!first.is_empty() && readout(&mut browser) != first);
    browser.key("+");
    browser.key("+");
    let (_, span) = shown(&mut browser);
    assert!((span - whole.1 / 4.0).abs() < 0.01, "{span}");
    browser.key("-");
    assert!((shown(&mut browser).1 - whole.1 / 2.0).abs() < 0.01);
    for _ in 0..300 {
        browser.key("ArrowRight");
    }
    let (from, span) = shown(&mut browser);
    assert!((from + span - whole.1).abs() < 0.01, "the end is the end: {from} {span}");
    browser.key("Escape");
    assert_eq!(shown(&mut browser), whole);
    assert_eq!(readout(&mut browser), "");
}

#[test]
fn a_table_is_sorted_by_what_its_column_says() {
    let Some(mut browser) = Browser::start() else { return };
    browser.screen(1280, false);
    browser.open(&write("script", "crowded", &extremes::crowded(7, 60)));
    let column = |browser: &mut Browser, table: &str, at: u32| -> Vec<String> {
        let values = browser.eval(&format!(
            "Array.from(document.querySelectorAll('{table} tbody tr:not(.more) td:nth-child({at})'), (cell) \
                => cell.textContent)"
        ));
        values.as_array().expect("cells").iter().map(|cell| cell.as_str().expect("text").to_owned()).collect()
    };
    let press = |browser: &mut Browser, table: &str, at: u32| {
        browser.eval(&format!("document.querySelector('{table} th:nth-child({at}) .sort').click()"));
    };
    let before = column(&mut browser, ".elections.all", 1);
    let numbers = |cells: Vec<String>| -> Vec<f64> {
        cells.iter().map(|cell| cell.replace(',', "").parse().expect("a number")).collect()
    };
    press(&mut browser, ".elections.all", 11);
    assert!(numbers(column(&mut browser, ".elections.all", 11)).is_sorted());
    press(&mut browser, ".elections.all", 11);
    let falling = numbers(column(&mut browser, ".elections.all", 11));
    assert!(falling.is_sorted_by(|a, b| a >= b) && falling[0] > falling[59]);
    press(&mut browser, ".elections.all", 11);
    assert_eq!(column(&mut browser, ".elections.all", 1), before, "the order of the page again");
    // Names with numbers: F2 before F10.
    press(&mut browser, ".faults", 1);
    assert_eq!(column(&mut browser, ".faults", 1)[..3], ["F1", "F2", "F3"]);
    // A check keeps its evidence beside it.
    press(&mut browser, ".checks", 1);
    let checks = column(&mut browser, ".checks", 1);
    assert!(checks.is_sorted(), "{checks:?}");
    let beside = browser.eval(
        "Array.from(document.querySelectorAll('.checks .more'), (row) => \
            row.previousElementSibling.cells[0].textContent)",
    );
    assert!(beside.as_array().expect("rows").iter().all(|name| !name.as_str().unwrap_or("").is_empty()));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_command_is_copied_as_it_would_be_typed() {
    let Some(mut browser) = valid() else { return };
    browser.eval(
        "window.copied = [];
         Object.defineProperty(navigator, 'clipboard',
           { value: { writeText: (text) => { window.copied.push(text); return Promise.resolve(); } } });",
    );
    let (x, y) = middle(&mut browser, ".copy");
    browser.pointer("mousePressed", x, y, 1);
    browser.pointer("mouseReleased", x, y, 1);
    let said = browser.eval("Promise.resolve().then(() => document.querySelector('.copy').textContent)");
    assert_eq!(said, "Copied");
    let expected = invented::run(Ending::Valid, 400).results.repeat;
    assert_eq!(browser.eval("window.copied"), json!([expected]));
}
