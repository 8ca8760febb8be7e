//! etcd, broken, proven and judged; and accused where a client has a bug.

use std::path::Path;
use std::process::Output;

use harness_systems::etcd::Etcd;

use super::{check, json, machine, text};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    super::run(folder, &[&["--system", "etcd", "--rate", "150"], arguments].concat())
}

#[test]
fn etcd_is_broken_proven_and_judged_linearizable() {
    let Some(_machine) = machine(&Etcd) else { return };
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
    let Some(_machine) = machine(&Etcd) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--mutant", "cached-reads", "--time-limit", "4s", "--seed", "7"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    let linearizable = check(&results, "linearizable");
    assert_eq!(linearizable["verdict"], "invalid", "{}", text(&output));
    let operations = linearizable["counterexample"]["ops"].as_array().expect("a counterexample");
    assert!((2..=6).contains(&operations.len()), "{linearizable}");
}
