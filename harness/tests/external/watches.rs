//! Watches by lines: members that tell all there is, and some that lose, repeat, or turn what they tell.

use std::fs;
use std::process::Output;

use serde_json::Value;

use super::{Folder, ended, text};

const USUAL: [&str; 4] = ["--workload", "watch", "--keys", "2"];

/// What a run says and what its check of watches found.
fn run(folder: &Folder, system: &str, more: &[&str]) -> (Output, Value) {
    let output = folder.run(system, &[&USUAL[..], more].concat());
    let results = fs::read(folder.latest().join("results.json")).unwrap_or_default();
    let results: Value = serde_json::from_slice(&results).unwrap_or_default();
    let checks = results["checks"].as_array().cloned().unwrap_or_default();
    let watch = checks.into_iter().find(|check| check["name"] == "watch").unwrap_or_default();
    (output, watch)
}

#[test]
fn members_that_tell_every_change_are_valid_though_clients_are_replaced_and_members_killed() {
    let folder = Folder::new();
    let system = folder.system("", "hang", "");
    let faults = ["--nemesis", "kill-one", "--interval", "5s", "--time-limit", "10s"];
    let (output, watch) = run(&folder, &system, &faults);
    ended(&output, 0);
    assert_eq!(watch["verdict"], "valid", "{watch}");
    let evidence = &watch["evidence"];
    assert!(evidence["told"].as_u64().is_some_and(|told| told > 1000), "{watch}");
    assert!(evidence["resumed"].as_u64().is_some_and(|resumed| resumed > 10), "{watch}");
    assert!(evidence["delay_ms"]["p50"].is_number(), "{watch}");
}

#[test]
fn members_that_lose_repeat_or_turn_what_they_tell_are_convicted() {
    let folder = Folder::new();
    for (flag, kinds) in [
        ("--loses", &["a change was lost", "the last change was not told"][..]),
        ("--repeats", &["a change was told twice"]),
        ("--turns", &["changes were told out of order", "a change was lost"]),
    ] {
        let system = folder.system(flag, "sound", "");
        let (output, watch) = run(&folder, &system, &["--time-limit", "4s"]);
        ended(&output, 1);
        assert_eq!(watch["verdict"], "invalid", "{flag}: {watch}");
        assert!(kinds.iter().any(|kind| watch["evidence"]["kind"] == *kind), "{flag}: {watch}");
        assert!(watch["counterexample"]["sentence"].is_string(), "{flag}: {watch}");
    }
}

#[test]
fn a_log_that_is_trimmed_costs_watchers_their_claim_and_accuses_nobody() {
    let folder = Folder::new();
    let system = folder.system("--trims", "sound", "");
    let (output, watch) = run(&folder, &system, &["--time-limit", "4s"]);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output.stderr));
    assert_ne!(watch["verdict"], "invalid", "{watch}");
    assert!(watch["evidence"]["gone"].as_u64().is_some_and(|gone| gone > 0), "{watch}");
}

#[test]
fn what_watches_can_t_be_judged_by_is_refused_and_nothing_measures() {
    let folder = Folder::new();
    let system = folder.system("--repeats", "sound", "");
    for (arguments, advice) in [
        (["--workload", "watch", "--promise", "linearizable-updates"], "write linearizable, every-change"),
        (["--workload", "register", "--promise", "latest"], "the workload register"),
    ] {
        let output = folder.run(&system, &arguments);
        ended(&output, 254);
        assert!(text(&output.stderr).contains(advice), "{}", text(&output.stderr));
    }
    let (output, watch) = run(&folder, &system, &["--promise", "nothing", "--time-limit", "4s"]);
    ended(&output, 0);
    assert!(watch["summary"].as_str().is_some_and(|words| words.contains("not kept")), "{watch}");
}
