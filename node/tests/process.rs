//! The binary: how it starts, what it tells, and how it ends.

#[path = "common/alone.rs"]
mod alone;
mod common;
#[path = "common/ports.rs"]
mod ports;

use std::fs;
use std::io::{BufReader, Read};
use std::net::TcpListener;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use node_client::ConnectOptions;
use rustix::process::{Pid, Signal, kill_process};

use common::{NODE, Node, PATIENCE};

fn signal(node: &Node, signal: Signal) {
    let pid = Pid::from_child(&node.child);
    kill_process(pid, signal).expect("a living process");
}

/// Waits for the end: how it ended, and what it said on stderr.
fn ended(mut node: Node) -> (ExitStatus, String) {
    let stderr = node.child.stderr.take().expect("piped");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = BufReader::new(stderr).read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let stderr = receiver.recv_timeout(PATIENCE).expect("it ends");
    (node.child.wait().expect("ended"), stderr)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn options() -> ConnectOptions {
    ConnectOptions { deadline: PATIENCE, ..ConnectOptions::default() }
}

#[test]
fn it_tells_each_transition_and_ends_well_on_sigterm() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Node::start(dir.path());
    assert_eq!(node.event("started")["pid"], node.child.id());
    assert_eq!(node.event("looking")["left"], serde_json::Value::Null);
    assert_eq!(node.event("elected")["leader"], 1);
    assert_eq!(node.event("established")["epoch"], 1);
    let serving = node.event("serving");
    let addr = serving["client"].as_str().expect("an address").to_owned();
    assert!(serving["zxid"].as_str().expect("a zxid").starts_with("0x"));
    runtime().block_on(async {
        let client = node_client::connect(addr, options()).await.expect("connected");
        client.create("/a", "x", 0).await.expect("created");
    });
    signal(&node, Signal::TERM);
    let (status, stderr) = ended(node);
    assert!(status.success(), "{status}: {stderr}");
}

#[test]
fn a_killed_member_comes_back_with_what_it_acknowledged_and_a_higher_epoch() {
    let dir = tempfile::tempdir().expect("a directory");
    for round in 1..=3 {
        let node = Node::start(dir.path());
        assert_eq!(node.event("established")["epoch"], round);
        let addr = node.event("serving")["client"].as_str().expect("an address").to_owned();
        runtime().block_on(async {
            let client = node_client::connect(addr, options()).await.expect("connected");
            client.create(format!("/n{round}"), "x", 0).await.expect("created");
            let mut names = client.get_children("/").await.expect("children").value;
            names.retain(|name| name.starts_with('n'));
            assert_eq!(names.len(), round);
        });
        signal(&node, Signal::KILL);
        ended(node);
    }
}

#[test]
fn a_busy_port_is_told_and_nothing_is_touched() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = taken.local_addr().expect("bound").to_string();
    let (status, stderr) = ended(Node::spawn(Command::new(NODE), &data, &addr, &[]));
    assert_eq!(status.code(), Some(1));
    assert_eq!(
        stderr,
        format!(
            "node: failed to listen for clients on {addr}: the port is in use; stop the other process or \
             choose another port\n"
        )
    );
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn two_processes_never_share_a_data_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = Node::start(dir.path());
    first.event("serving");
    let (status, stderr) = ended(Node::start(dir.path()));
    assert_eq!(status.code(), Some(1));
    for part in ["another process uses it", "stop that one first"] {
        assert!(stderr.contains(part), "{stderr}");
    }
}

#[test]
fn a_log_without_its_epoch_files_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Node::start(dir.path());
    let addr = node.event("serving")["client"].as_str().expect("an address").to_owned();
    runtime().block_on(async {
        let client = node_client::connect(addr, options()).await.expect("connected");
        client.create("/a", "x", 0).await.expect("created");
    });
    signal(&node, Signal::TERM);
    ended(node);
    fs::remove_file(dir.path().join("version-2/acceptedEpoch")).expect("it was there");
    let (status, stderr) = ended(Node::start(dir.path()));
    assert_eq!(status.code(), Some(1));
    assert!(stderr.contains("failed to find the file acceptedEpoch"), "{stderr}");
}

#[test]
fn a_disk_that_refuses_stops_the_member_before_anything_is_acknowledged() {
    let dir = tempfile::tempdir().expect("a directory");
    // The epoch files fit below the limit, the log does not. Without the trap the signal would kill.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"", NODE]);
    let node = Node::spawn(limited, dir.path(), "127.0.0.1:0", &[]);
    let addr = node.event("serving")["client"].as_str().expect("an address").to_owned();
    runtime().block_on(async {
        // A session is a transaction, so not even that is granted.
        let refused = node_client::connect(addr, options()).await.map(|client| client.session());
        assert!(refused.is_err(), "{refused:?} is not on the disk");
    });
    let reason = node.event("halt")["reason"].as_str().expect("a reason").to_owned();
    let (status, stderr) = ended(node);
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&reason) && reason.starts_with("failed to "), "{reason}: {stderr}");
}

/// Three members by flags alone.
fn three(dir: &std::path::Path) -> Vec<Node> {
    let base = ports::free_ports(9);
    let servers: Vec<String> = (0..3)
        .map(|index| format!("{}=127.0.0.1:{}:{}", index + 1, base + index, base + 3 + index))
        .collect();
    let start = |index: u16| {
        let id = (index + 1).to_string();
        let mut command = Command::new(NODE);
        command
            .args(["--events", "--id", &id, "--client-addr"])
            .arg(format!("127.0.0.1:{}", base + 6 + index));
        command.arg("--data-dir").arg(dir.join(&id));
        command.args(servers.iter().flat_map(|server| ["--server", server]));
        Node::listen(command)
    };
    (0..3).map(start).collect()
}

#[test]
fn a_leader_that_is_stopped_is_missed_long_before_one_that_is_stuck() {
    let dir = tempfile::tempdir().expect("a directory");
    let nodes = three(dir.path());
    let leaders: Vec<u64> =
        nodes.iter().map(|node| node.event("established")["leader"].as_u64().expect("a member")).collect();
    let leader = leaders[0];
    assert_eq!(leaders, [leader; 3]);
    let index = usize::try_from(leader).expect("few") - 1;
    signal(&nodes[index], Signal::STOP);
    let stopped = Instant::now();
    for (other, node) in nodes.iter().enumerate().filter(|(other, _)| *other != index) {
        let looking = node.event("looking");
        // The first is that of its start.
        let looking = if looking["left"].is_null() { node.event("looking") } else { looking };
        assert_eq!(looking["left"], leader, "member {}", other + 1);
    }
    // No thread speaks for a process that is stopped. A second is four peer time-outs.
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
    for (_, node) in nodes.iter().enumerate().filter(|(other, _)| *other != index) {
        assert_ne!(node.event("established")["leader"], leader);
    }
    signal(&nodes[index], Signal::CONT);
    assert_ne!(nodes[index].event("established")["leader"], leader);
}
