//! Runs through the binary on systems that have to be installed; each test says when its system is not.

mod etcd;
mod image;
mod nats;
mod postgres;
mod process_1;
mod redis;
mod registry;
mod templates;
mod zookeeper;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use harness::config::usually_wanted;
use harness_systems::System;
use serde_json::Value;

/// One run at a time.
static MACHINE: Mutex<()> = Mutex::new(());
/// A small ensemble under a light load.
const SMALL: &str = "--cluster process --nodes 3 --concurrency 12 --keys 2 --op-timeout 1s";

/// The machine for a run, where this system is installed.
fn machine(system: &dyn System) -> Option<MutexGuard<'static, ()>> {
    match system.install(&usually_wanted(system, 3)) {
        Ok(_) => Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.arg("run").args(SMALL.split_ascii_whitespace()).args(arguments).current_dir(folder);
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
