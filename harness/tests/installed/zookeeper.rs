//! Apache ZooKeeper, broken, proven and judged by what it promises; and replaced by the bundled node.

use std::path::Path;
use std::process::Output;

use harness_systems::zookeeper::ZooKeeper;

use super::{check, json, machine, text};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    super::run(folder, &[&["--rate", "200"], arguments].concat())
}

#[test]
fn apache_zookeeper_is_broken_proven_and_judged_by_what_it_promises() {
    let Some(_machine) = machine(&ZooKeeper::Apache) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let faults = [
        "--system",
        "zookeeper",
        "--nemesis",
        "kill-leader,partition-leader",
        "--interval",
        "12s",
        "--time-limit",
        "32s",
    ];
    let output = run(folder.path(), &faults);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], 2, "{results}");
    assert_eq!(check(&results, "linearizable-updates")["verdict"], "valid");
    let elections = results["elections"].as_array().expect("elections");
    for fault in ["F1", "F2"] {
        let election = elections.iter().find(|election| election["fault"] == fault);
        let election = election.unwrap_or_else(|| panic!("{fault}: {elections:?}"));
        assert!(election["election_ms"].is_number() && election["sync_ms"].is_number(), "{election}");
    }
    let run = json(folder.path(), "run.json");
    let name = run["system"]["name"].as_str().unwrap_or_default();
    assert!(name.starts_with("Apache ZooKeeper 3."), "{run}");
    assert_eq!(run["promise"]["what"], "linearizable-updates", "{run}");
    let member = folder.path().join("runs/latest/nodes/1");
    let cfg = std::fs::read_to_string(member.join("zoo.cfg")).expect("its configuration");
    assert!(cfg.contains("tickTime=500\n"), "{cfg}");
    let log = std::fs::read_to_string(member.join("log")).expect("its log");
    assert!(log.contains("QuorumPeer - LOOKING"), "{log}");
}

#[test]
fn members_of_a_mixed_ensemble_are_replaced_by_the_other_kind_while_it_serves() {
    let Some(_machine) = machine(&ZooKeeper::Apache) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let faults =
        ["--system", "mixed:1", "--nemesis", "replace-rolling", "--time-limit", "30s", "--seed", "5"];
    let output = run(folder.path(), &faults);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    assert_eq!(results["faults"]["verified"], results["faults"]["planned"], "{results}");
    let faults = std::fs::read_to_string(folder.path().join("runs/latest/faults.jsonl")).expect("faults");
    for line in faults.lines().filter(|line| line.contains("\"verified-healed\"")) {
        assert!(line.contains(" serves as "), "{line}");
    }
    assert!(faults.contains("by node") || faults.contains("by Apache ZooKeeper"), "{faults}");
}

#[test]
fn without_apache_zookeeper_a_run_is_refused_before_anything_is_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--system", "zookeeper", "--zookeeper", "nowhere.jar"]);
    assert_eq!(output.status.code(), Some(254), "{}", text(&output));
    assert!(text(&output).contains("--zookeeper"), "{}", text(&output));
    assert!(!folder.path().join("runs").exists());
}
