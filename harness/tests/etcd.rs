//! Runs on etcd through the binary, where it is installed; each says when it is not.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// One run at a time.
static MACHINE: Mutex<()> = Mutex::new(());
/// A small ensemble under a light load.
const SMALL: [&str; 12] = [
    "--system",
    "etcd",
    "--nodes",
    "3",
    "--rate",
    "150",
    "--concurrency",
    "12",
    "--keys",
    "2",
    "--op-timeout",
    "1s",
];

/// The machine for a run, where etcd is installed.
fn machine() -> Option<MutexGuard<'static, ()>> {
    match Command::new("etcd").arg("--version").output() {
        Ok(_) => Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(error) => {
            eprintln!("skipped: there is no etcd ({error})");
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
fn etcd_is_broken_proven_and_judged_linearizable() {
    let Some(_machine) = machine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let faults = ["--nemesis", "kill-leader,partition-leader", "--time-limit", "20s", "--seed", "7"];
    let output = run(folder.path(), &faults);
    let results = json(folder.path(), "results.json");
    // A machine too busy to show anything is no violation; what was shown must hold.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    for name in ["linearizable", "version-order", "session-order", "durability", "convergence"] {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {}", text(&output));
    }
    assert_eq!(results["faults"]["verified"], 2, "{}", text(&output));
    assert!(
        json(folder.path(), "run.json")["system"]["name"].as_str().expect("a name").starts_with("etcd 3.")
    );
    let elections = results["elections"].as_array().expect("elections");
    assert!(!elections.is_empty(), "a leader was killed, and another cut off: {}", text(&output));
}

#[test]
fn a_client_that_answers_from_a_cache_is_accused_with_a_small_counterexample() {
    let Some(_machine) = machine() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--plant", "cached-reads", "--time-limit", "4s", "--seed", "7"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    let linearizable = check(&results, "linearizable");
    assert_eq!(linearizable["verdict"], "invalid", "{}", text(&output));
    let operations = linearizable["counterexample"]["ops"].as_array().expect("a counterexample");
    assert!((2..=6).contains(&operations.len()), "{linearizable}");
}
