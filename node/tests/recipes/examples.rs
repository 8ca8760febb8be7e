//! The client's examples, run as whoever copies them runs them.
//!
//! `cargo test --workspace` builds them beside the tests. Where the tests of this package alone were built
//! they may not be there, and are left out.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::time::timeout;

use crate::members::{Ensemble, PATIENCE};
use crate::{all, run};

const EXAMPLES: [&str; 12] = [
    "election",
    "standby",
    "lock",
    "read_write_lock",
    "semaphore",
    "barrier",
    "double_barrier",
    "queue",
    "counter",
    "group",
    "cache",
    "discovery",
];

fn executable(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let path = test.parent()?.parent()?.join("examples").join(name);
    path.is_file().then_some(path)
}

#[test]
fn every_example_ends_well_on_three_members() {
    let ensemble = Ensemble::start(3);
    let servers = all(&ensemble);
    let mut missing = Vec::new();
    for name in EXAMPLES {
        let Some(executable) = executable(name) else {
            missing.push(name);
            continue;
        };
        let mut command = tokio::process::Command::new(executable);
        command.arg(&servers).stdin(Stdio::null()).kill_on_drop(true);
        run(async {
            let ended = timeout(PATIENCE, command.output()).await;
            let output = ended.unwrap_or_else(|_| panic!("{name} does not end")).expect("it runs");
            let said = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {}\n{said}{errors}", output.status);
            assert!(!said.is_empty(), "{name} says what it does");
        });
    }
    assert!(missing.is_empty() || missing.len() == EXAMPLES.len(), "not built: {}", missing.join(", "));
    if !missing.is_empty() {
        eprintln!("left out, not built: {}", missing.join(", "));
    }
}
