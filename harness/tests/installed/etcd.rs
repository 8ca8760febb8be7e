//! etcd, broken, proven and judged; and accused where a client has a bug.

use std::path::Path;
use std::process::{Command, Output};

use harness_systems::etcd::Etcd;

use super::image::{Image, which};
use super::{MACHINE, check, json, machine, text};

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

/// A run by the files of `harness init etcd`, whose cuts and kills must be proven and whose promises hold.
fn by_the_files(image: &str, system: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let harness = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).env("ETCD_IMAGE", image);
        command.output().expect("the harness starts")
    };
    assert_eq!(harness(&["init", "etcd"]).status.code(), Some(0));
    let tried = harness(&["client", "check", "--system", "etcd.toml"]);
    assert_eq!(tried.status.code(), Some(0), "{}", text(&tried));
    let faults = ["--nemesis", "kill-leader,partition-leader", "--interval", "8s", "--time-limit", "20s"];
    let output = harness(&[&["run", "--rate", "150"], system, &faults].concat());
    // A machine too busy to show anything is no violation; what was shown must hold.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    for name in ["linearizable", "session-order", "durability", "convergence"] {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {}", text(&output));
    }
    assert_eq!(results["faults"]["verified"], 2, "{}", text(&output));
    // A leader that is cut off goes on claiming to lead for a while, so there may be one more.
    assert!(results["elections"].as_array().is_some_and(|all| all.len() >= 2), "{}", text(&output));
}

#[test]
fn etcd_by_files_and_a_client_of_lines_holds_as_processes() {
    if which("etcd").is_none() {
        eprintln!("skipped: etcd is not installed");
        return;
    }
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    by_the_files("", &["--system", "./etcd.toml", "--nodes", "3"]);
}

#[test]
fn etcd_by_files_and_a_client_of_lines_holds_in_containers() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(image) = Image::made("harness-test/etcd:installed", &[("etcd", &["etcd"])]) else { return };
    by_the_files(image.0, &["--system", "./compose.yaml"]);
}

/// A run of watchers by the files of `harness init etcd`, with something else in the client's text.
fn watched(wrong: Option<(&str, &str)>, more: &[&str]) -> (Output, serde_json::Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let harness = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).output().expect("the harness starts")
    };
    assert_eq!(harness(&["init", "etcd"]).status.code(), Some(0));
    if let Some((right, wrong)) = wrong {
        let client = folder.path().join("etcd_client.py");
        let written = std::fs::read_to_string(&client).expect("a client");
        assert!(written.contains(right), "{right}");
        std::fs::write(&client, written.replace(right, wrong)).expect("written");
    }
    let usual = ["run", "--system", "./etcd.toml", "--nodes", "3", "--workload", "watch", "--rate", "150"];
    let output = harness(&[&usual[..], &["--keys", "2", "--seed", "7"], more].concat());
    let results = json(folder.path(), "results.json");
    (output, check(&results, "watch").clone())
}

#[test]
fn watchers_of_etcd_are_told_every_change_though_its_leader_is_broken_and_a_client_that_skips_is_found() {
    if which("etcd").is_none() {
        eprintln!("skipped: etcd is not installed");
        return;
    }
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let faults = ["--nemesis", "kill-leader,pause-leader", "--interval", "8s", "--time-limit", "20s"];
    let (output, watch) = watched(None, &faults);
    // A machine too busy to show anything is no violation; what was shown must hold.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    assert_eq!(watch["verdict"], "valid", "{}", text(&output));
    assert!(watch["evidence"]["resumed"].as_u64().is_some_and(|resumed| resumed > 10), "{watch}");
    let late = ("str(revision + 1)", "str(revision + 2)");
    let (output, watch) = watched(Some(late), &["--time-limit", "6s"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_eq!(watch["evidence"]["kind"], "a change was lost", "{watch}");
}

/// Two of its leases held at once is what the literature says of its lock, and the token is what helps.
#[test]
fn a_lock_of_etcd_is_held_by_two_once_its_holder_was_stopped_and_one_minds_its_clock() {
    if which("etcd").is_none() {
        eprintln!("skipped: etcd is not installed");
        return;
    }
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let harness = |client: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).env("ETCD_LOCK", client);
        command.output().expect("the harness starts")
    };
    assert_eq!(harness("", &["init", "etcd"]).status.code(), Some(0));
    let system = ["run", "--system", "./etcd.toml", "--nodes", "3", "--promise", "linearizable"];
    let load = ["--workload", "lock", "--keys", "2", "--rate", "100", "--concurrency", "8"];
    let faults = ["--nemesis", "pause-holder", "--time-limit", "20s", "--seed", "7"];
    let lock = |client: &str| harness(client, &[&system[..], &load, &faults].concat());
    // An acquire whose answer was lost holds unseen, on a machine that is very busy: then nobody is accused.
    let mut accused = lock("");
    for _ in 0..2 {
        if accused.status.code() != Some(0) {
            break;
        }
        accused = lock("");
    }
    assert_eq!(accused.status.code(), Some(1), "{}", text(&accused));
    let results = json(folder.path(), "results.json");
    for (name, verdict) in [("exclusion", "invalid"), ("guarded-store", "valid"), ("tokens", "valid")] {
        assert_eq!(check(&results, name)["verdict"], verdict, "{name}: {}", text(&accused));
    }
    let certain = lock("certain");
    assert!(matches!(certain.status.code(), Some(0 | 2)), "{}", text(&certain));
    let results = json(folder.path(), "results.json");
    assert_eq!(check(&results, "exclusion")["verdict"], "valid", "{}", text(&certain));
}

/// What the client of transactions must not leave out: a comparison for what was only read.
#[test]
fn transactions_of_etcd_are_strictly_serializable_and_write_skew_where_their_client_compares_too_little() {
    if which("etcd").is_none() {
        eprintln!("skipped: etcd is not installed");
        return;
    }
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let harness = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).output().expect("the harness starts")
    };
    assert_eq!(harness(&["init", "etcd"]).status.code(), Some(0));
    let run = ["run", "--system", "./etcd.toml", "--nodes", "3", "--workload", "txn", "--rate", "150"];
    let faults = ["--nemesis", "kill-leader,partition-leader", "--interval", "8s", "--time-limit", "20s"];
    let output = harness(&[&run[..], &faults].concat());
    // A machine too busy to show anything is no violation; what was shown must hold.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    for name in ["strict-serializable", "durability", "convergence"] {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {}", text(&output));
    }
    assert_eq!(results["faults"]["verified"], 2, "{}", text(&output));
    let client = folder.path().join("etcd_client.py");
    let sound = std::fs::read_to_string(&client).expect("a client");
    let of_all = "\n                for key in keys]";
    let wrong = sound.replace(of_all, "\n                for key in sorted(changed)]");
    assert_ne!(sound, wrong);
    std::fs::write(&client, wrong).expect("written");
    let accused = harness(&[&run[..], &["--keys", "3", "--time-limit", "8s"]].concat());
    assert_eq!(accused.status.code(), Some(1), "{}", text(&accused));
    let results = json(folder.path(), "results.json");
    let found = check(&results, "strict-serializable");
    assert!(found["evidence"]["anomalies"]["G2-item"].is_u64(), "{found}");
    let weaker = ["check", "--model", "list-append", "--condition", "snapshot-isolation"];
    let weaker = harness(&[&weaker[..], &["runs/latest/history.jsonl"]].concat());
    assert_eq!(weaker.status.code(), Some(0), "{}", text(&weaker));
}
