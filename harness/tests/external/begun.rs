//! The clients that `harness init` writes, without the systems that they are for.

use std::process::Command;

use super::ended;

/// What a server of PostgreSQL says before it takes a statement: nobody need log in, and it is ready.
const POSTGRES: &str = r"R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I";
/// And one of ZooKeeper: a session of 30 s, and its number.
const ZOOKEEPER: &str =
    r"\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00u0\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00";

/// Functions that can't be tried, because their request follows the answer to another one. Of those whose
/// members are broken off by the first bytes, or shake hands more than once, that is any.
type Untried = Option<&'static [&'static str]>;

/// What is begun with, which file names the client, and what a member says first. That of NATS asks for a
/// stream before anything else, so it is tried with members (`installed/nats.rs`).
const CLIENTS: [(&str, &str, &str, Untried); 4] = [
    ("etcd", "etcd.toml", "", None),
    ("postgres", "compose.yaml", POSTGRES, Some(&["txn"])),
    ("redis", "redis.toml", "", None),
    ("zookeeper", "compose.yaml", ZOOKEEPER, Some(&["cas", "append", "txn"])),
];

#[test]
fn a_client_of_which_nothing_was_tried_is_not_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let harness = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(arguments).current_dir(folder.path()).output().expect("the harness starts")
    };
    ended(&harness(&["init", "nats"]), 0);
    // A member speaks first, and nobody says what.
    let tried = harness(&["client", "check", "--system", "nats.toml"]);
    ended(&tried, 2);
    assert!(super::text(&tried.stdout).contains("--greeting"), "{}", super::text(&tried.stdout));
}

#[test]
fn the_clients_that_are_written_can_be_believed_and_send_nothing_twice() {
    for (name, file, greeting, untried) in CLIENTS {
        let folder = tempfile::tempdir().expect("a folder");
        let harness = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
            command.args(arguments).current_dir(folder.path()).output().expect("the harness starts")
        };
        ended(&harness(&["init", name]), 0);
        let tried = harness(&["client", "check", "--system", file, "--greeting", greeting]);
        ended(&tried, 0);
        let told = super::text(&tried.stdout);
        for line in told.lines().filter(|line| line.starts_with(['?', '!', '✗'])) {
            let begins = |function: &&str| line.starts_with(&format!("? {function},"));
            let excused = untried.is_none_or(|functions| functions.iter().any(begins));
            assert!(excused && line.starts_with('?'), "{name}: {line}\n{told}");
        }
        assert!(told.contains("✓ the end of its input"), "{name}: {told}");
    }
}
