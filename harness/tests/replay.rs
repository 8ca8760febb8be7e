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
                             partition-bridge,reject-leader,kill-leader,kill-one,kill-all,\
                             pause-leader,clock-bump";

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
    for (nemesis, mutant) in [("partition-leader", "commit-alone"), ("pause-leader", "sync-without-quorum")] {
        let arguments = ["run", "--cluster", "sim", "--seed", "2", "--nemesis", nemesis, "--mutant", mutant];
        run(folder.path(), mutant, 1, &arguments);
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
fn a_folder_that_can_not_be_written_is_judged_and_drawn_on_the_screen() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "--cluster", "sim", "--seed", "3", "--nodes", "3", "--time-limit", "2s"];
    let run = run(folder.path(), "runs", 0, &arguments);
    let before = bytes(&run, "results.json");
    // What is in the way of a draft is as good as a disk that takes none.
    for name in ["results.json.new", "junit.xml.new", "report.html.new"] {
        std::fs::create_dir(run.join(name)).expect("in the way");
    }
    for command in ["check", "report"] {
        let output = harness(folder.path(), &[command, "runs/latest"]);
        assert_eq!(output.status.code(), Some(0), "{command}: {}", text(&output));
        let said = text(&output);
        assert!(said.contains("not all of this was written") && said.contains("VALID"), "{said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("VALID"), "{said}");
    }
    assert!(bytes(&run, "results.json") == before);
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
    refused("runs/latest", "there is no nemesis `earthquake`");
    std::fs::remove_file(run.join("schedule.json")).expect("removed");
    refused("runs/latest", "has no schedule.json");
}

/// Rewrites a part of a folder's `run.json`.
fn edited(run: &Path, edit: impl Fn(&mut Value)) {
    let mut info = json(run.join("run.json"));
    edit(&mut info);
    std::fs::write(run.join("run.json"), info.to_string()).expect("written");
}

/// A Java that leaves a trace when it is run.
fn tracing_java(folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let program = folder.join("home/bin/java");
    std::fs::create_dir_all(program.parent().expect("a folder")).expect("made");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", folder.join("it-ran").display()))
        .expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    folder.join("home")
}

#[test]
fn a_folder_from_a_stranger_runs_nothing_and_opens_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "--cluster", "sim", "--seed", "3", "--nodes", "3", "--time-limit", "2s"];
    let run = run(folder.path(), "runs", 0, &arguments);
    let java_home = tracing_java(folder.path());
    let replay = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(["replay", "runs/latest"]).args(more).env("JAVA_HOME", &java_home);
        command.current_dir(folder.path()).output().expect("the harness starts")
    };
    let original = json(run.join("run.json"));
    for (flags, asked) in [
        ("--system zookeeper --set classpath=rp", "--set classpath=rp"),
        ("--cluster docker --image evil:latest", "--image evil:latest"),
        ("--cluster docker --image evil --image-command sh", "--image evil --image-command sh"),
        ("--cluster docker --publish 0.0.0.0", "--publish 0.0.0.0"),
        ("--cluster docker --pull missing", "--pull missing"),
        ("--system ./system.toml", "--system ./system.toml"),
        ("--system=system.toml", "--system system.toml"),
        ("--system runs/latest/compose.yaml", "--system runs/latest/compose.yaml"),
    ] {
        let command = format!("harness run {flags} --nodes 3 --time-limit 2s --seed 3");
        edited(&run, |info| {
            info["repeat"] = command.clone().into();
            info["cluster"] = if flags.contains("docker") { "docker" } else { "process" }.into();
        });
        let output = replay(&[]);
        assert_eq!(output.status.code(), Some(254), "{flags}: {}", text(&output));
        assert!(text(&output).contains(&format!("asks for {asked}.")), "{flags}: {}", text(&output));
    }
    for flags in ["--store elsewhere", "--base-port 2181", "--format json", "--name other"] {
        edited(&run, |info| {
            info["repeat"] = format!("harness run {flags} --nodes 3 --time-limit 2s --seed 3").into();
        });
        let output = replay(&[]);
        assert_eq!(output.status.code(), Some(254), "{flags}: {}", text(&output));
        assert!(text(&output).contains("which no folder of ours has"), "{flags}: {}", text(&output));
    }
    assert!(!folder.path().join("it-ran").exists(), "something of the folder's was run");
    // Whoever types it means it.
    edited(&run, |info| {
        info["repeat"] =
            "harness run --system zookeeper --set classpath=rp --nodes 3 --time-limit 2s --seed 3".into();
        info["cluster"] = "process".into();
        info["interval_ms"] = 10_000.into();
    });
    let output = replay(&["--set", "classpath=mine"]);
    assert_eq!(output.status.code(), Some(254), "{}", text(&output));
    assert!(folder.path().join("it-ran").exists(), "{}", text(&output));
    std::fs::write(run.join("run.json"), original.to_string()).expect("written");
}

/// A system's file whose client leaves a trace when it is run.
const TRACING_SYSTEM: &str = "name = \"mine\"\n[member]\ncommand = [\"sleep\", \"9\"]\npeers = 1\n\
    ready = { http = \"/\" }\n[client]\ncommand = [\"sh\", \"-c\", \"touch it-ran\"]\n";

#[test]
fn a_system_that_a_folder_brings_along_runs_nothing_until_it_is_typed() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "--cluster", "sim", "--seed", "5", "--nemesis", "kill-one", "--time-limit", "8s"];
    let run = run(folder.path(), "runs", 0, &[&arguments[..], &["--interval", "2s"]].concat());
    std::fs::write(run.join("system.toml"), TRACING_SYSTEM).expect("written");
    edited(&run, |info| {
        info["repeat"] = "harness run --nodes 5 --system ./system.toml --cluster process --nemesis kill-one \
                          --interval 2s --time-limit 8s --seed 5"
            .into();
        info["cluster"] = "process".into();
    });
    let results = std::fs::read_to_string(run.join("results.json")).expect("results");
    std::fs::write(run.join("results.json"), results.replace("\"valid\"", "\"invalid\"")).expect("written");
    for command in ["replay", "shrink"] {
        let refused = harness(&run, &[command, "."]);
        assert_eq!(refused.status.code(), Some(254), "{command}: {}", text(&refused));
        assert!(text(&refused).contains("asks for --system ./system.toml."), "{}", text(&refused));
        assert!(!run.join("it-ran").exists(), "{command} ran the client that the folder names");
        let typed = harness(&run, &[command, ".", "--system", "./system.toml", "--store", "mine"]);
        assert!(run.join("it-ran").exists(), "whoever types it means it: {}", text(&typed));
        std::fs::remove_file(run.join("it-ran")).expect("removed");
    }
}

#[test]
fn a_folder_that_was_edited_half_way_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--nemesis", "kill-one", "--time-limit", "6s"];
    let arguments = [&["run", "--cluster", "sim", "--seed", "3", "--nodes", "3"][..], &faults].concat();
    let run = run(folder.path(), "runs", 0, &arguments);
    let refused = |advice: &str| {
        let output = harness(folder.path(), &["replay", "runs/latest"]);
        assert_eq!(output.status.code(), Some(254), "{}", text(&output));
        assert!(text(&output).contains(advice), "{advice}: {}", text(&output));
        assert!(!text(&output).contains('\u{1b}'), "{advice}: what acts on a terminal is not shown");
    };
    let info = json(run.join("run.json"));
    for (field, value) in [
        ("rate", Value::from(1e308)),
        ("keys", 4_000_000_000_u32.into()),
        ("concurrency", 1.into()),
        ("time_limit_ms", 1.into()),
        ("interval_ms", 1.into()),
        ("overlap", true.into()),
        ("mutant", "commit-alone".into()),
        ("nemeses", vec!["kill-all"].into()),
        ("cluster", "kubernetes".into()),
    ] {
        edited(&run, |info| info[field] = value.clone());
        let advice = match field {
            "cluster" => "unknown variant `kubernetes`, expected one of".to_owned(),
            field => format!("`{field}` is not what the command"),
        };
        refused(&advice);
        std::fs::write(run.join("run.json"), info.to_string()).expect("written");
    }
    for (field, advice) in [("name", "the name in its run.json"), ("repeat", "the command in its run.json")] {
        edited(&run, |info| info[field] = "\u{1b}[2J".into());
        refused(advice);
        std::fs::write(run.join("run.json"), info.to_string()).expect("written");
    }
    let schedule = json(run.join("schedule.json"));
    for (field, value) in
        [("start_ms", Value::from(u64::MAX)), ("hold_ms", u64::MAX.into()), ("id", "\u{1b}[2J".into())]
    {
        let mut schedule = schedule.clone();
        schedule["faults"][0][field] = value;
        std::fs::write(run.join("schedule.json"), schedule.to_string()).expect("written");
        refused("makes no sense");
    }
}

#[test]
fn a_fault_that_was_written_into_the_schedule_by_hand_is_described_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--nemesis", "pause-leader", "--time-limit", "6s"];
    let arguments = [&["run", "--cluster", "sim", "--seed", "3", "--nodes", "3"][..], &faults].concat();
    let run = run(folder.path(), "runs", 0, &arguments);
    let mut schedule = json(run.join("schedule.json"));
    schedule["faults"][0]["kind"] = "kill-one".into();
    std::fs::write(run.join("schedule.json"), schedule.to_string()).expect("written");
    let output = harness(folder.path(), &["replay", "runs/latest", "--store", "again"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let info = json(folder.path().join("again/latest/run.json"));
    assert_eq!(info["kinds"]["kill-one"]["mechanism"], "kill", "{info}");
    let results = json(folder.path().join("again/latest/results.json"));
    let checks = results["checks"].as_array().expect("checks");
    assert!(
        checks.iter().any(|check| check["name"] == "recovery" && check["verdict"] == "valid"),
        "{results}"
    );
}

#[test]
fn nemeses_without_a_turn_are_told_at_the_start_and_are_no_part_of_what_is_claimed() {
    let folder = tempfile::tempdir().expect("a folder");
    let nemeses = ["--nemesis", "kill-leader,partition-halves", "--time-limit", "8s", "--nodes", "3"];
    let arguments = [&["run", "--cluster", "sim", "--seed", "3"][..], &nemeses].concat();
    let output = harness(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let run = folder.path().join("runs/latest");
    let info = json(run.join("run.json"));
    let (tried, not) =
        (info["nemeses"][0].as_str().expect("one"), info["not_tried"][0].as_str().expect("one"));
    let words =
        format!("1 of 2 nemeses get no turn in 8s and are not tried: {not}; lengthen to --time-limit 9s");
    assert!(text(&output).contains(&words), "{}", text(&output));
    assert_eq!(info["name"], format!("register-{tried}"));
    let results = json(run.join("results.json"));
    assert_eq!(results["not_tried"], serde_json::json!([not]));
    let notes = results["notes"].to_string();
    assert!(
        notes.contains(&format!("Not tried, and no part of this verdict: {not} (1 of 2 nemeses).")),
        "{notes}"
    );
    let cases = String::from_utf8(bytes(&run, "junit.xml")).expect("text");
    assert!(cases.contains(&format!("name=\"{tried} 1\"")), "{cases}");
    assert!(cases.contains("<skipped message=\"no fault of it came into force\""), "{cases}");
}

#[test]
fn members_that_do_not_come_back_after_a_fault_are_a_violation_in_the_simulator_too() {
    let folder = tempfile::tempdir().expect("a folder");
    for (nemesis, mutant, words) in [
        ("kill-one", "refuses-own-log", "does not recover on its own data"),
        ("partition-oneway", "no-abdication", "does not come back"),
    ] {
        let arguments = ["run", "--cluster", "sim", "--seed", "2", "--nemesis", nemesis, "--mutant", mutant];
        let run = run(folder.path(), mutant, 1, &arguments);
        let results = json(run.join("results.json"));
        let checks = results["checks"].as_array().expect("checks");
        let found = checks.iter().find(|found| found["name"] == "recovery").expect("the check");
        assert_eq!(found["verdict"], "invalid", "{mutant}: {found}");
        assert!(found["summary"].as_str().expect("words").contains(words), "{mutant}: {found}");
    }
}

#[test]
fn a_history_that_was_cut_within_a_long_fault_accuses_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "--cluster", "sim", "--seed", "3", "--nemesis", "partition-leader"];
    let long = ["--interval", "30s", "--time-limit", "60s"];
    let run = run(folder.path(), "runs", 0, &[&arguments[..], &long].concat());
    let asked = std::fs::read_to_string(run.join("faults.jsonl")).expect("faults");
    let asked: Value = serde_json::from_str(asked.lines().next().expect("a fault")).expect("JSON");
    let asked = asked["time"].as_u64().expect("a time");
    let history = std::fs::read_to_string(run.join("history.jsonl")).expect("a history");
    let lines: Vec<&str> = history.lines().collect();
    let time = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["time"].as_u64().unwrap_or(0);
    // While the leader is missed nothing is answered, and many wait.
    let missed = asked..(asked + 400_000_000);
    let cuts: Vec<usize> = (0..lines.len()).filter(|at| missed.contains(&time(lines[*at]))).collect();
    assert!(cuts.len() > 12, "{} lines", cuts.len());
    let judged = |lines: &[&str]| {
        std::fs::write(run.join("history.jsonl"), lines.join("\n") + "\n").expect("cut short");
        harness(folder.path(), &["check", "runs/latest"])
    };
    for cut in cuts.iter().step_by(cuts.len() / 6) {
        let output = judged(&lines[..*cut]);
        assert_eq!(output.status.code(), Some(2), "cut at line {cut}: {}", text(&output));
    }
    // Whole operations are missing: those that were asked for within the fault.
    let mut missing: Vec<u64> = Vec::new();
    let mut is_left = |line: &&&str| {
        let record: Value = serde_json::from_str(line).expect("JSON");
        let Some(process) = record["process"].as_u64() else { return true };
        let begins = record["type"] == "invoke";
        if begins && (asked..asked + 14_000_000_000).contains(&time(line)) {
            missing.push(process);
            return false;
        }
        match missing.iter().position(|missing| *missing == process).filter(|_| !begins) {
            Some(at) => {
                missing.swap_remove(at);
                false
            }
            None => true,
        }
    };
    let left: Vec<&str> = lines.iter().filter(|line| is_left(line)).copied().collect();
    let output = judged(&left);
    assert_eq!(output.status.code(), Some(2), "operations are missing: {}", text(&output));
}

#[test]
fn a_violation_is_made_smaller_up_to_its_moment_and_one_that_is_not_seen_again_is_said_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let bug = "run --cluster sim --seed 3 --time-limit 16s --rate 200 --nemesis partition-leader \
               --name broken --mutant commit-alone";
    let run = run(folder.path(), "runs", 1, &bug.split_whitespace().collect::<Vec<_>>());
    let shrink = |run: &Path| {
        let words = ["shrink", &run.display().to_string(), "--store", "small", "--format", "json"];
        harness(folder.path(), &words)
    };
    let output = shrink(&run);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let small: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let time = &small["workload_ms"];
    assert!(time[1].as_u64() < time[0].as_u64(), "what comes behind is cut off: {small}");
    assert!(small["faults"][1].as_u64() < small["faults"][0].as_u64(), "{small}");
    // A check that accuses in no smaller run is never seen again.
    let file = run.join("results.json");
    let mut results: Value = json(file.clone());
    for check in results["checks"].as_array_mut().expect("checks") {
        if check["verdict"] == "invalid" {
            check["name"] = "made-up".into();
        }
    }
    std::fs::write(&file, results.to_string()).expect("written");
    let output = shrink(&run);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let small: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(small["seen"], false, "{small}");
}
