//! `node standby`: commands that say whether it is fit, and fences, that take too long.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::place::{Place, Program, STUBBORN, read, runs, until, writes};

/// Fit, until a file with its name is there: then it hangs, with a child, and asks not to be asked to end.
const HANGS: &str = r#"trap "" TERM; test ! -e "$LINES.$NAME" || {
    sleep 1000 & echo $$ $! > "$LINES.hangs.new"; mv "$LINES.hangs.new" "$LINES.hangs"; wait; sleep 1000; }"#;

fn standby(place: &Place, name: &str, more: &[&str]) -> Program {
    let data = ["standby", "/jobs", "--data", name];
    place.run(name, &[&data[..], more].concat(), &["sh", "-c", STUBBORN])
}

fn hang(place: &Place, name: &str) {
    std::fs::write(format!("{}.{name}", place.lines().display()), "").expect("written");
}

/// The processes that a shell command noted before it hung.
fn hung(lines: &Path) -> Vec<i32> {
    until("it hangs", || {
        let text = std::fs::read_to_string(format!("{}.hangs", lines.display())).ok()?;
        Some(text.split_whitespace().map(|word| word.parse().expect("a process")).collect())
    })
}

fn gone(processes: &[i32]) {
    until("what hung is gone", || processes.iter().all(|pid| !runs(*pid)).then_some(()));
}

#[test]
fn one_whose_health_command_hangs_is_not_fit_and_the_next_takes_over() {
    let place = Place::new();
    let asks = ["--fence", "true", "--health", HANGS, "--health-interval", "50ms", "--health-timeout", "1s"];
    let _first = standby(&place, "first", &asks);
    writes(&place.lines(), "first");
    let _second = standby(&place, "second", &asks);
    place.says("second", "standing by: first is active");
    hang(&place, "first");
    let processes = hung(&place.lines());
    writes(&place.lines(), "second");
    place.says("first", "the health command took longer than 1s and was ended");
    gone(&processes);
    let (all, second) = (read(&place.lines()), writes(&place.lines(), "second"));
    let last = all.iter().rev().find(|line| line.0 == "first").expect("it wrote");
    assert!(last.3 < second.3, "it was ended before the next became active");
}

#[test]
fn while_a_health_command_hangs_the_command_goes_on_and_signals_are_heard() {
    let place = Place::new();
    let asks = ["--fence", "true", "--health", HANGS, "--health-interval", "50ms", "--health-timeout", "5m"];
    let mut first = standby(&place, "first", &asks);
    writes(&place.lines(), "first");
    hang(&place, "first");
    let processes = hung(&place.lines());
    let (_, _, command, at) = *read(&place.lines()).last().expect("it wrote");
    // Longer than the session's time-out.
    let later = at + Duration::from_secs(5).as_nanos();
    until("the term goes on", || read(&place.lines()).iter().any(|line| line.3 > later).then_some(()));
    assert!(runs(command));
    first.signal(Signal::TERM);
    assert_eq!(first.ends().code(), Some(143));
    gone(&processes);
}

/// One that died while it was active, so that the next must fence.
fn unfenced(place: &Place) {
    let mut first = standby(place, "gone", &["--fence", "true"]);
    writes(&place.lines(), "gone");
    first.signal(Signal::KILL);
    first.ends();
}

#[test]
fn a_signal_is_heard_during_a_fence_and_ends_it() {
    let place = Place::new();
    unfenced(&place);
    hang(&place, "first");
    let mut first = standby(&place, "first", &["--fence", HANGS]);
    let processes = hung(&place.lines());
    first.signal(Signal::INT);
    assert_eq!(first.ends().code(), Some(130));
    assert!(processes.iter().all(|pid| !runs(*pid)), "the fence is ended before");
    // Nothing says that it was fenced, so the next one fences too.
    let _second = standby(&place, "second", &["--fence", "test \"$FENCE_DATA\" = gone"]);
    place.says("second", "fencing gone");
    writes(&place.lines(), "second");
}

#[test]
fn a_fence_that_takes_too_long_is_ended_and_tried_again() {
    let place = Place::new();
    unfenced(&place);
    hang(&place, "first");
    let fence = format!("mkdir \"$LINES.once\" 2>/dev/null || exit 0; {HANGS}");
    let started = Instant::now();
    let _first = standby(&place, "first", &["--fence", &fence, "--fence-timeout", "500ms"]);
    let processes = hung(&place.lines());
    place.says("first", "the fence command took longer than 500ms and was ended");
    gone(&processes);
    writes(&place.lines(), "first");
    assert!(started.elapsed() < Duration::from_secs(30), "the usual bound");
}
