//! Runs in the simulator, and run folders that are run again.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn harness(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(arguments).current_dir(folder).output().expect("the harness starts")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Makes a run in a store of its own, and gives its folder.
fn run(folder: &Path, store: &str, status: i32, arguments: &[&str]) -> PathBuf {
    let output = harness(folder, &[arguments, &["--store", store]].concat());
    assert_eq!(output.status.code(), Some(status), "{}", text(&output));
    folder.join(store).join("latest")
}

fn json(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON")
}

fn bytes(run: &Path, name: &str) -> Vec<u8> {
    std::fs::read(run.join(name)).expect("a file")
}

const EVERY_NEMESIS: &str = "partition-leader,partition-halves,partition-one,partition-oneway,partition-ring,\
                             partition-bridge,reject-leader,kill-leader,kill-one,kill-all,pause-leader,clock-bump";

#[test]
fn every_nemesis_is_proven_in_the_simulator_and_the_same_seed_gives_the_same_run_to_the_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments =
        ["run", "--cluster", "sim", "--seed", "11", "--nemesis", EVERY_NEMESIS, "--time-limit", "50s"];
    let one = run(folder.path(), "one", 0, &arguments);
    let results = json(one.join("results.json"));
    assert_eq!(results["verdict"], "valid");
    assert_eq!((&results["faults"]["planned"], &results["faults"]["verified"]), (&12.into(), &12.into()));
    for file in ["run.json", "schedule.json", "observed.json", "report.html", "junit.xml"] {
        assert!(one.join(file).is_file(), "{file}");
    }
    let other = run(folder.path(), "other", 0, &arguments);
    for file in ["history.jsonl", "faults.jsonl", "schedule.json"] {
        assert!(bytes(&one, file) == bytes(&other, file), "{file} differs");
    }
    let again = harness(folder.path(), &["check", "one/latest"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
}

#[test]
fn nemeses_that_overlap_are_proven_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let nemeses = "partition-one,kill-one,clock-bump";
    let arguments = ["run", "--cluster", "sim", "--seed", "2", "--overlap", "--nemesis", nemeses];
    let run = run(folder.path(), "runs", 0, &arguments);
    let results = json(run.join("results.json"));
    assert_eq!(results["faults"]["planned"], results["faults"]["verified"]);
}

#[test]
fn planted_bugs_are_convicted_in_the_simulator_by_what_clients_saw() {
    let folder = tempfile::tempdir().expect("a folder");
    for (nemesis, plant) in [("partition-leader", "commit-alone"), ("pause-leader", "sync-without-quorum")] {
        let arguments = ["run", "--cluster", "sim", "--seed", "2", "--nemesis", nemesis, "--plant", plant];
        run(folder.path(), plant, 1, &arguments);
    }
}

#[test]
fn a_replay_carries_out_the_schedule_of_the_folder_and_says_what_it_repeats() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "run",
        "--cluster",
        "sim",
        "--seed",
        "3",
        "--nodes",
        "3",
        "--nemesis",
        "kill-leader",
        "--time-limit",
        "10s",
    ];
    let first = run(folder.path(), "first", 0, &arguments);
    let second = run(folder.path(), "second", 0, &["replay", "first/latest"]);
    for file in ["history.jsonl", "faults.jsonl", "schedule.json"] {
        assert!(bytes(&first, file) == bytes(&second, file), "{file} differs");
    }
    let info = json(second.join("run.json"));
    assert_eq!(info["settings"]["repeats"], "first/latest");
    assert_eq!(info["repeat"], "harness replay first/latest");

    // What was planned is carried out, not what would be drawn; and a replay can be replayed.
    let mut schedule = json(second.join("schedule.json"));
    schedule["faults"].as_array_mut().expect("faults").truncate(1);
    std::fs::write(second.join("schedule.json"), schedule.to_string()).expect("written");
    let third = run(folder.path(), "third", 0, &["replay", "second/latest", "--cluster", "sim"]);
    assert_eq!(json(third.join("results.json"))["faults"]["planned"], 1);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "--cluster", "sim", "--seed", "3", "--nodes", "3", "--time-limit", "2s"];
    let run = run(folder.path(), "runs", 0, &arguments);
    let refused = |path: &str, advice: &str| {
        let output = harness(folder.path(), &["replay", path]);
        assert_eq!(output.status.code(), Some(254), "{}", text(&output));
        assert!(text(&output).contains(advice), "{advice}: {}", text(&output));
    };
    refused(".", "no run folder");
    let info = json(run.join("run.json"));
    let write = |value: &Value| std::fs::write(run.join("run.json"), value.to_string()).expect("written");
    for (part, value, advice) in [
        ("harness", "99.0.0", "is of a newer harness (version 99.0.0"),
        ("history format", "2", "is of a newer harness (history format 2"),
    ] {
        let mut newer = info.clone();
        newer["versions"][part] = value.into();
        write(&newer);
        refused("runs/latest", advice);
    }
    let mut other = info.clone();
    other["seed"] = 4.into();
    write(&other);
    refused("runs/latest", "contradicts itself");
    write(&info);
    let schedule = std::fs::read_to_string(run.join("schedule.json")).expect("a schedule");
    std::fs::write(
        run.join("schedule.json"),
        schedule.replace("\"nemeses\": []", "\"nemeses\": [\"earthquake\"]"),
    )
    .expect("written");
    refused("runs/latest", "can't be read by this build");
    std::fs::remove_file(run.join("schedule.json")).expect("removed");
    refused("runs/latest", "has no schedule.json");
}
