//! The clients that `harness init` writes, without the systems that they are for.

use std::path::Path;
use std::process::Command;
use std::thread;

use super::ended;

/// What a server of PostgreSQL says before it takes a statement: nobody need log in, and it is ready.
const POSTGRES: &str = r"R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I";
/// And one of ZooKeeper: a session of 30 s, and its number.
const ZOOKEEPER: &str =
    r"\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00u0\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00";

/// What is begun with, which file names the client, what a member says first, and the functions that can't
/// be tried: their request follows the answer to another one, or has no value by which it is known. The
/// client of NATS asks for a stream before anything else, so it is tried with members (`installed/nats.rs`).
const CLIENTS: [(&str, &str, &str, &[&str]); 5] = [
    ("system", "system.toml", "", &[]),
    ("etcd", "etcd.toml", "", &["append", "txn", "release"]),
    ("postgres", "compose.yaml", POSTGRES, &["txn", "transfer"]),
    ("redis", "redis.toml", "", &["dequeue"]),
    ("zookeeper", "compose.yaml", ZOOKEEPER, &["cas", "append", "txn"]),
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

/// Begins from what is written of a system, and tries its client.
fn is_believed(name: &str, file: &str, greeting: &str, untried: &[&str]) {
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
        let begins = |function: &&str| line.starts_with(&format!("? {function}"));
        assert!(untried.iter().any(begins), "{name}: {line}\n{told}");
    }
    assert!(told.contains("✓ the end of its input"), "{name}: {told}");
}

#[test]
fn the_clients_that_are_written_can_be_believed_and_send_nothing_twice() {
    // They wait, most of the time.
    thread::scope(|scope| {
        for (name, file, greeting, untried) in CLIENTS {
            scope.spawn(move || is_believed(name, file, greeting, untried));
        }
    });
}

/// A client that calls it a failure when the connection breaks behind its request, which is no client's to
/// say. So many bytes go before the value, in the write before it or in the same one.
const LIAR: &str = r#"
import json, socket, sys
before, apart = int(sys.argv[1]), sys.argv[2] == "apart"
print(json.dumps({"f": "hello", "protocol": 1, "functions": ["write"]}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    answer = {"type": "fail", "error": "unsupported"}
    try:
        if request["f"] == "write":
            host, port = request["member"].rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=request["timeout_ms"] / 1000) as member:
                member.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                pieces = ["x" * before, str(request["value"])]
                for piece in pieces if apart else ["".join(pieces)]:
                    member.sendall(piece.encode())
                answer = {"type": "ok"} if member.recv(9) else {"type": "fail", "error": "closed"}
    except ConnectionRefusedError:
        answer = {"type": "fail", "error": "not-sent"}
    except OSError as error:
        answer = {"type": "fail", "error": str(error)}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
"#;

/// Tries a client that lies, with so many bytes before the value.
fn is_found(folder: &Path, before: &str, writes: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(["client", "check", "--", "python3", "liar.py", before, writes]);
    let tried = command.current_dir(folder).output().expect("the harness starts");
    ended(&tried, 1);
    let told = super::text(&tried.stdout);
    let is_found = told
        .lines()
        .any(|line| line.starts_with("✗ write, the connection is reset behind the request: fail, though"));
    assert!(is_found, "{before} bytes, {writes}: {told}");
}

#[test]
fn a_client_that_says_fail_of_a_request_that_left_is_found_whatever_goes_before_its_value() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("liar.py"), LIAR).expect("written");
    thread::scope(|scope| {
        for before in ["10", "68", "100", "10000"] {
            let folder = folder.path();
            scope.spawn(move || ["together", "apart"].map(|writes| is_found(folder, before, writes)));
        }
    });
}
