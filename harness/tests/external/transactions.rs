//! Transactions by lines: a system that does them at once, one whose parts others come between, promises that
//! don't fit, and a client that answers what it was not asked.

use super::{Folder, ended, text};

const LOAD: [&str; 5] = ["--workload", "txn", "--time-limit", "4s", "--keys=3"];

/// A file of the toy system that promises this of transactions.
fn promising(folder: &Folder, flag: &str, conduct: &str, promise: &str) -> String {
    let system = folder.system(flag, conduct, "");
    let file = folder.path().join(&system);
    let written = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, format!("{written}txn = {promise}\n")).expect("written");
    system
}

fn results(folder: &Folder) -> serde_json::Value {
    let text = std::fs::read(folder.latest().join("results.json")).expect("results");
    serde_json::from_slice(&text).expect("JSON")
}

/// The first check whose name this is.
fn check(results: &serde_json::Value, name: &str) -> serde_json::Value {
    let checks = results["checks"].as_array().expect("checks");
    checks
        .iter()
        .find(|check| check["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {results}"))
        .clone()
}

#[test]
fn transactions_that_are_done_at_once_are_strictly_serializable() {
    let folder = Folder::new();
    let system = promising(&folder, "", "sound", r#"{ promise = "linearizable", source = "tiny.py" }"#);
    let faults = ["--nemesis", "kill-one", "--interval", "4s", "--time-limit", "7s"];
    let output = folder.run(&system, &[&["--workload", "txn", "--keys=3"], &faults[..]].concat());
    ended(&output, 0);
    let told = text(&output.stdout);
    assert!(told.contains("strict-serializable"), "{told}");
    let results = results(&folder);
    for name in ["strict-serializable", "durability", "convergence", "load"] {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {told}");
    }
    let history = folder.latest().join("history.jsonl");
    let history = history.to_str().expect("a path");
    let again = folder.harness(&["check", "--model", "list-append", history]);
    ended(&again, 0);
    ended(&folder.harness(&["check", history]), 0);
}

#[test]
fn transactions_whose_parts_others_come_between_are_convicted_by_a_small_cycle() {
    let folder = Folder::new();
    let system = promising(&folder, "--torn", "sound", r#""snapshot-isolation""#);
    ended(&folder.run(&system, &LOAD), 1);
    let accused = check(&results(&folder), "snapshot-isolation");
    assert_eq!(accused["verdict"], "invalid", "{accused}");
    let found = &accused["counterexample"];
    assert_eq!(found["rechecked"], true, "{found}");
    assert!(found["ops"].as_array().is_some_and(|ops| (1..=6).contains(&ops.len())), "{found}");
    assert!(found["ops"][0]["node"].is_u64(), "who was asked is told: {found}");
    let page = std::fs::read_to_string(folder.latest().join("report.html")).expect("a page");
    assert!(page.contains("T1: ") && page.contains("append k"), "the transactions are drawn");
    let history = folder.latest().join("history.jsonl");
    let isolation = ["--model", "list-append", "--condition", "snapshot-isolation"];
    let history = history.to_str().expect("a path");
    ended(&folder.harness(&[&["check"], &isolation[..], &[history]].concat()), 1);
    // The same, where nothing is promised.
    ended(&folder.run(&system, &[&LOAD[..], &["--promise", "nothing"]].concat()), 0);
    let measured = check(&results(&folder), "strict-serializable");
    assert_eq!(measured["evidence"]["kept"], false, "{measured}");
}

#[test]
fn a_promise_that_does_not_fit_the_workload_is_refused_before_anything_starts() {
    let folder = Folder::new();
    let system = folder.system("", "sound", "");
    for (more, word) in [
        (["--workload", "txn", "--promise", "linearizable-updates"], "snapshot-isolation"),
        (["--workload", "set", "--promise", "serializable"], "linearizable-updates"),
        (["--workload", "txn", "--promise", "repeatable-read"], "no promise"),
    ] {
        let refused = folder.run(&system, &more);
        ended(&refused, 254);
        assert!(text(&refused.stderr).contains(word), "{more:?}: {}", text(&refused.stderr));
    }
    let wrong = promising(&folder, "", "sound", r#""repeatable-read""#);
    let refused = folder.run(&wrong, &LOAD);
    ended(&refused, 254);
    let said = text(&refused.stderr);
    assert!(said.contains("promises.txn") && said.contains("snapshot-isolation"), "{said}");
    for (workload, why) in [("txn", "a transaction reads first"), ("watch", "does not watch")] {
        let built_in = folder.harness(&["run", "--workload", workload]);
        ended(&built_in, 254);
        assert!(text(&built_in.stderr).contains(why), "{}", text(&built_in.stderr));
    }
}

#[test]
fn an_answer_that_is_not_what_was_asked_is_a_failure_of_the_harness() {
    let folder = Folder::new();
    let output = folder.run(&folder.system("", "shorter", ""), &LOAD);
    ended(&output, 255);
    let said = text(&output.stderr);
    assert!(said.contains("micro-operations that were asked for"), "{said}");
}
