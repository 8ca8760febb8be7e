//! Runs on Apache ZooKeeper through the binary, where Java and it are installed; each says when they are not.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use harness_systems::zookeeper::java::Java;
use serde_json::Value;

/// One run at a time.
static MACHINE: Mutex<()> = Mutex::new(());
/// A small ensemble under a light load.
const SMALL: [&str; 12] = [
    "--cluster",
    "process",
    "--nodes",
    "3",
    "--rate",
    "200",
    "--concurrency",
    "12",
    "--keys",
    "2",
    "--op-timeout",
    "1s",
];

/// The machine for a run, where Apache ZooKeeper is installed.
fn machine() -> Option<MutexGuard<'static, ()>> {
    match Java::find(None) {
        Ok(_) => Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.arg("run").args(SMALL).args(arguments).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("the harness starts")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

fn json(folder: &Path, file: &str) -> Value {
    let text = std::fs::read(folder.join("runs/latest").join(file)).expect(file);
    serde_json::from_slice(&text).expect("JSON")
}

fn check<'a>(results: &'a Value, name: &str) -> &'a Value {
    let checks = results["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}"))
}

#[test]
fn apache_zookeeper_is_broken_proven_and_judged_by_what_it_promises() {
    let Some(_machine) = machine() else { return };
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
    assert_eq!(run["system"]["reads_may_be_stale"], true, "{run}");
    let member = folder.path().join("runs/latest/nodes/1");
    let cfg = std::fs::read_to_string(member.join("zoo.cfg")).expect("its configuration");
    assert!(cfg.contains("tickTime=500\n"), "{cfg}");
    let log = std::fs::read_to_string(member.join("log")).expect("its log");
    assert!(log.contains("QuorumPeer - LOOKING"), "{log}");
}

#[test]
fn members_of_a_mixed_ensemble_are_replaced_by_the_other_kind_while_it_serves() {
    let Some(_machine) = machine() else { return };
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
