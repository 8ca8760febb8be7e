//! The bench tests itself: a planted bug is found and told, and one that is not found is a failure.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn selftest(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.arg("selftest").args(arguments).current_dir(folder).output().expect("the harness starts")
}

#[test]
fn a_bug_that_is_known_to_be_found_soon_is_found_soon_and_the_clean_build_is_not_accused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = selftest(
        folder.path(),
        &["--quick", "--only", "commit-alone,sync-without-quorum", "--format", "json"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(table["bugs"].as_array().expect("rows").len(), 2);
    assert_eq!(table["bugs"][0]["inside"]["check"], "durability");
    assert_eq!(table["bugs"][1]["inside"]["found"], true);
    assert_eq!(table["clean"]["accused"], 0);
    assert!(table["clean"]["worlds"].as_u64().expect("a count") >= 300);
}

#[test]
fn a_bug_that_is_not_found_is_named_and_ends_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = selftest(folder.path(), &["--quick", "--only", "sync-without-quorum", "--seeds", "1"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("not found: sync-without-quorum (ZOOKEEPER-1675"), "{text}");
}

#[test]
fn bugs_of_another_protocol_are_found_and_its_clean_roles_are_not_accused() {
    let folder = tempfile::tempdir().expect("a folder");
    let few = ["--only", "no-adoption,leaves-holes", "--protocol", "paxos,multi-paxos", "--seeds", "100"];
    let output = selftest(folder.path(), &[&few[..], &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names: Vec<&Value> =
        table["bugs"].as_array().expect("rows").iter().map(|row| &row["mutant"]).collect();
    assert_eq!(names, ["no-adoption", "no-adoption", "leaves-holes"]);
    assert_eq!(table["bugs"][0]["rule"], "agreement");
    assert_eq!(table["clean"][1]["worlds"], 100);
    assert_eq!(table["clean"][1]["accused"], Value::Null);
    // The document agrees, until it says another thing.
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/paxos/MUTANTS.md");
    let output = selftest(folder.path(), &[&few[..], &["--against", document]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = std::fs::read_to_string(document).expect("a document").replace("seed", "world");
    std::fs::write(folder.path().join("old.md"), text).expect("written");
    let output = selftest(folder.path(), &[&few[..], &["--against", "old.md"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // Two worlds and no others are too few for one of them.
    let output = selftest(folder.path(), &["--protocol", "paxos", "--only", "first-only", "--seeds", "2"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("not found"), "{output:?}");
}
