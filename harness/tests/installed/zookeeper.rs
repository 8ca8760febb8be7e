//! Apache ZooKeeper, broken, proven and judged by what it promises; and replaced by the bundled node.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::PoisonError;

use harness_zookeeper::ZooKeeper;

use super::image::Image;
use super::{MACHINE, check, json, machine, text};

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
    assert_eq!(check(&results, "ordered-sequential")["verdict"], "valid");
    let elections = results["elections"].as_array().expect("elections");
    for fault in ["F1", "F2"] {
        let election = elections.iter().find(|election| election["fault"] == fault);
        let election = election.unwrap_or_else(|| panic!("{fault}: {elections:?}"));
        assert!(election["election_ms"].is_number() && election["sync_ms"].is_number(), "{election}");
    }
    let run = json(folder.path(), "run.json");
    let name = run["system"]["name"].as_str().unwrap_or_default();
    assert!(name.starts_with("Apache ZooKeeper 3."), "{run}");
    assert_eq!(run["promise"]["what"], "ordered-sequential", "{run}");
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
    let output = run(folder.path(), &["--system", "zookeeper", "--set", "classpath=nowhere.jar"]);
    assert_eq!(output.status.code(), Some(254), "{}", text(&output));
    assert!(text(&output).contains("--set classpath="), "{}", text(&output));
    assert!(!folder.path().join("runs").exists());
}

/// A run by the files of `harness init zookeeper`. Cuts and kills must be proven, and promises hold.
#[test]
fn what_takes_the_variables_of_zookeepers_image_holds_by_files_in_containers() {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(image) = Image::of_node("harness-test/zookeeper:installed") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let harness = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).env("ZOOKEEPER_IMAGE", image.0);
        command.output().expect("the harness starts")
    };
    let written = harness(&["init", "zookeeper"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written));
    let faults = ["--nemesis", "kill-leader,partition-leader", "--interval", "12s", "--time-limit", "32s"];
    let run = ["run", "--system", "./compose.yaml", "--rate", "150"];
    for (workload, own) in
        [("register", &["linearizable-updates", "version-order"][..]), ("txn", &["strict-serializable"])]
    {
        let output = harness(&[&run[..], &faults, &["--workload", workload]].concat());
        // A machine too busy to show anything is no violation; what was shown must hold.
        assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
        let results = json(folder.path(), "results.json");
        for name in own.iter().chain(&["durability", "convergence"]) {
            assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {}", text(&output));
        }
        assert_eq!(results["faults"]["verified"], 2, "{}", text(&output));
        assert!(results["elections"].as_array().is_some_and(|all| all.len() >= 2), "{}", text(&output));
    }
}
