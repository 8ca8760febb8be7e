//! `node --ruok` and `node --serving`: what a health check in an image relies on.

#[path = "common/alone.rs"]
mod alone;
mod common;
#[path = "common/ports.rs"]
mod ports;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};

use common::{NODE, Node};

fn node(args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(NODE).args(args).envs(variables.iter().copied()).output().expect("started")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A server that answers one connection with a fixed text.
fn says(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut word = [0; 4];
        stream.read_exact(&mut word).expect("a word");
        stream.write_all(text.as_bytes()).expect("answered");
    });
    addr
}

#[test]
fn a_member_that_serves_is_healthy_in_both_ways() {
    let dir = tempfile::tempdir().expect("a directory");
    let member = Node::start(dir.path());
    let serving = member.event("serving");
    let addr = serving["client"].as_str().expect("an address").to_owned();
    for (flag, answer) in [("--ruok", "imok\n"), ("--serving", "standalone\n")] {
        let output = node(&[flag, &addr], &[]);
        assert!(output.status.success(), "{flag}: {}", stderr(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), answer);
        // The address may come from where the member has it, too.
        let port = addr.rsplit_once(':').expect("a port").1;
        let output = node(&[flag], &[("ZOO_DATA_DIR", "/nonexistent"), ("ZOO_PORT", port)]);
        assert!(output.status.success(), "{flag} by variables: {}", stderr(&output));
        let output = node(&[flag, "--client-addr", &addr], &[]);
        assert!(output.status.success(), "{flag} by flags: {}", stderr(&output));
    }
}

#[test]
fn a_member_without_a_quorum_lives_and_does_not_serve() {
    let dir = tempfile::tempdir().expect("a directory");
    let client = ports::free_ports(3);
    let (quorum, election) = (client + 1, client + 2);
    let (own, addr) = (format!("1=127.0.0.1:{quorum}:{election}"), format!("127.0.0.1:{client}"));
    // Nobody listens on the peer's ports.
    let member = Node::spawn(
        Command::new(NODE),
        dir.path(),
        &addr,
        &["--server", &own, "--server", "2=127.0.0.1:1:2"],
    );
    member.event("looking");
    let output = node(&["--ruok", &addr], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = node(&["--serving", &addr], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        format!(
            "node: failed to find {addr} serving, it said: This ZooKeeper instance is not currently serving \
             requests\n"
        )
    );
}

#[test]
fn other_answers_are_no() {
    for (flag, text) in [
        ("--ruok", "ruok is not executed because it is not in the whitelist.\n"),
        ("--ruok", ""),
        ("--serving", "Zookeeper version: 3.8.0\nMode: read-only\n"),
        ("--serving", "imok"),
    ] {
        let output = node(&[flag, &says(text).to_string()], &[]);
        assert_eq!(output.status.code(), Some(1), "{flag}: {text}");
    }
}

#[test]
fn silence_is_no_after_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("bound").to_string();
    let output = node(&["--serving", &addr], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), format!("node: failed to ask {addr} for `srvr`: timed out\n"));
}

#[test]
fn a_question_to_nobody_is_refused_with_what_to_do() {
    let output = node(&["--serving", "--data-dir", "d", "--client-addr", "127.0.0.1:0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("so give HOST:PORT"), "{}", stderr(&output));
    let output = node(&["--serving"], &[("ZOO_SERVERS", "zoo1")]);
    assert!(stderr(&output).contains("read the variable ZOO_SERVERS"), "{}", stderr(&output));
}
