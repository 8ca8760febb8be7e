//! What operators see of a member: words, the admin server, metrics, and how it stops. Over real sockets.

#[path = "../common/alone.rs"]
mod alone;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/ports.rs"]
mod ports;
mod print;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use node_client::ConnectOptions;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use common::{NODE, Node, PATIENCE};
use ports::free_ports;

/// A member with everything that operators look at.
struct Member {
    node: Node,
    clients: String,
    admin: SocketAddr,
    metrics: SocketAddr,
}

fn free_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_ports(1)))
}

fn start(dir: &Path) -> Member {
    let (admin, metrics) = (free_port(), free_port());
    let flags = [
        "-D4lw.commands.whitelist=*".to_owned(),
        "-Dzookeeper.admin.serverAddress=127.0.0.1".to_owned(),
        format!("-Dzookeeper.admin.serverPort={}", admin.port()),
        "-DmetricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
            .to_owned(),
        "-DmetricsProvider.httpHost=127.0.0.1".to_owned(),
        format!("-DmetricsProvider.httpPort={}", metrics.port()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let node = Node::spawn(Command::new(NODE), dir, "127.0.0.1:0", &flags);
    let clients = node.event("serving")["client"].as_str().expect("an address").to_owned();
    Member { node, clients, admin, metrics }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn options() -> ConnectOptions {
    ConnectOptions { deadline: PATIENCE, ..ConnectOptions::default() }
}

/// Everything that is said until the other side hangs up.
fn said(to: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(to).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.write_all(bytes).expect("written");
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an end");
    String::from_utf8(text).expect("text")
}

/// Status and body of a page.
fn page(from: SocketAddr, path: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    let answer = said(&from.to_string(), request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).expect("a status").to_owned(), body.to_owned())
}

fn command(member: &Member, name: &str) -> Value {
    let (status, body) = page(member.admin, &format!("/commands/{name}"));
    assert_eq!(status, "200", "{name}");
    serde_json::from_str(&body).expect(name)
}

#[test]
fn every_word_is_answered_in_its_form() {
    let dir = tempfile::tempdir().expect("a directory");
    let member = start(dir.path());
    let word = |word: &str| said(&member.clients, word.as_bytes());
    runtime().block_on(async {
        let client = node_client::connect(member.clients.clone(), options()).await.expect("connected");
        client.create("/e", "x", 1).await.expect("an ephemeral");
        let table = [
            ("ruok", "imok"),
            ("isro", "rw"),
            ("gtmk", "306"),
            ("crst", "Connection stats reset.\n"),
            ("srst", "Server stats reset.\n"),
            ("wchc", "\n"),
            ("wchp", "\n"),
            ("wchs", "0 connections watching 0 paths\nTotal watches:0\n"),
            ("hash", ""),
        ];
        for (name, answer) in table {
            assert_eq!(word(name), answer, "{name}");
        }
        let dump = word("dump");
        let lines: Vec<&str> = dump.lines().collect();
        assert_eq!(&lines[..2], ["SessionTracker dump:", "Session Sets (1)/(1):"], "{dump}");
        assert!(lines[2].starts_with("1 expire at ") && lines[3].starts_with("\t0x"), "{dump}");
        assert!(dump.contains("\nSessions with Ephemerals (1):\n0x") && dump.contains(":\n\t/e\n"), "{dump}");
        let cons = word("cons");
        assert!(
            cons.starts_with(" /127.0.0.1:") && cons.contains(",sid=0x") && cons.ends_with(")\n\n"),
            "{cons}"
        );
        assert!(word("envi").starts_with("Environment:\nzookeeper.version=3.8.0-"));
        assert!(word("conf").contains("\nmaxClientCnxns=60\n"));
        assert!(word("dirs").starts_with("datadir_size: "));
        for name in ["srvr", "stat"] {
            assert!(word(name).contains("\nMode: standalone\n"), "{name}");
        }
        assert!(word("mntr").contains("zk_ephemerals_count\t1\n"));
        let mask = [b"stmk".as_slice(), &42_i64.to_be_bytes()].concat();
        assert_eq!(said(&member.clients, &mask), "42");
        assert_eq!(word("gtmk"), "42");
    });
}

#[test]
fn every_command_of_the_admin_server_has_zookeepers_fields() {
    let dir = tempfile::tempdir().expect("a directory");
    let member = start(dir.path());
    runtime().block_on(async {
        let client = node_client::connect(member.clients.clone(), options()).await.expect("connected");
        client.create("/e", "x", 1).await.expect("an ephemeral");
        let table = [
            (
                "configuration",
                "client_port data_dir data_log_dir tick_time max_client_cnxns min_session_timeout \
              max_session_timeout server_id client_port_listen_backlog",
            ),
            ("connections", "connections secure_connections"),
            ("connection_stat_reset", ""),
            ("dirs", "datadir_size logdir_size"),
            ("dump", "expiry_time_to_session_ids session_id_to_ephemeral_paths"),
            ("environment", "zookeeper.version host.name os.name"),
            ("get_trace_mask", "tracemask"),
            ("hash", "digests"),
            ("initial_configuration", "initial_configuration"),
            ("is_read_only", "read_only"),
            ("last_snapshot", "zxid timestamp"),
            ("leader", ""),
            ("monitor", "version server_state znode_count watch_count avg_readlatency p99_updatelatency"),
            ("observer_connection_stat_reset", ""),
            ("observers", "synced_observers observers"),
            ("ruok", ""),
            ("server_stats", "version read_only server_stats client_response proposal_stats node_count"),
            ("set_trace_mask?traceMask=7", "tracemask"),
            ("stat_reset", ""),
            ("stats", "version read_only server_stats node_count connections secure_connections"),
            ("system_properties", "zookeeper.admin.serverPort"),
            ("voting_view", "current_config"),
            ("watch_summary", "num_connections num_paths num_total_watches"),
            ("watches", "session_id_to_watched_paths"),
            ("watches_by_path", "path_to_session_ids"),
            ("zabstate", "voting zabstate"),
        ];
        for (name, fields) in table {
            let answer = command(&member, name);
            let expected = name.split('?').next().expect("a name");
            assert_eq!(answer["command"], expected, "{answer}");
            if name != "leader" {
                assert_eq!(answer["error"], Value::Null, "{answer}");
            }
            for field in fields.split_whitespace() {
                assert!(answer.get(field).is_some(), "{name} has no {field}: {answer}");
            }
        }
        let connections = command(&member, "cons");
        assert_eq!(connections["command"], "connections", "by its other name");
        assert_eq!(connections["connections"].as_array().map(Vec::len), Some(1), "{connections}");
        assert_eq!(
            command(&member, "dump")["session_id_to_ephemeral_paths"].as_object().map(|all| all.len()),
            Some(1)
        );
        assert_eq!(command(&member, "nonsense")["error"], "Unknown command: nonsense");
        let (status, index) = page(member.admin, "/commands");
        assert!(status == "200" && index.contains("<a href=\"/commands/zabstate\">zabstate</a>"), "{index}");
        assert_eq!(page(member.admin, "/elsewhere").0, "404");
    });
}

#[test]
fn strangers_to_the_admin_server_cost_nobody_anything() {
    let dir = tempfile::tempdir().expect("a directory");
    let member = start(dir.path());
    let admin = member.admin.to_string();
    // They say half of something, and stay.
    let half: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(&admin).expect("connected");
            stream.write_all(b"GET /commands/ruok HTTP/1.1\r\nHost:").expect("written");
            stream
        })
        .collect();
    let long = [b"GET /".as_slice(), &vec![b'a'; 64 << 10], b" HTTP/1.1\r\n\r\n"].concat();
    for bytes in [&long[..], b"\x16\x03\x01\x00\xff\x01\x00", b"nothing like it\r\n\r\n"] {
        let mut stream = TcpStream::connect(&admin).expect("connected");
        // It may have hung up before all is written.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let post = said(
        &admin,
        b"POST /commands/ruok HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    assert!(post.starts_with("HTTP/1.1 405 "), "{post}");
    assert_eq!(command(&member, "ruok")["error"], Value::Null);
    assert_eq!(said(&member.clients, b"ruok"), "imok");
    drop(half);
}

#[test]
fn metrics_have_the_names_that_dashboards_ask_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let member = start(dir.path());
    runtime().block_on(async {
        let client = node_client::connect(member.clients.clone(), options()).await.expect("connected");
        for n in 0..10 {
            client.create(format!("/n{n}"), "x", 0).await.expect("created");
            client.exists(format!("/n{n}")).await.expect("asked");
        }
        let (status, text) = page(member.metrics, "/metrics");
        assert_eq!(status, "200");
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse::<f64>().ok()).unwrap_or_else(|| {
                panic!(
                    "{name} is not in \
                {text}"
                )
            })
        };
        let above_zero = "znode_count num_alive_connections packets_received packets_sent \
            approximate_data_size uptime quorum_size proposal_count commit_count election_time_count \
            fsynctime_count fsynctime_sum updatelatency_count readlatency_count global_sessions \
            connection_request_count bytes_received_count response_bytes looking_count \
            open_file_descriptor_count max_file_descriptor_count leader_uptime process_resident_memory_bytes";
        for name in above_zero.split_whitespace() {
            assert!(value(name) > 0.0, "{name} in {text}");
        }
        let zero = "watch_count outstanding_requests ephemerals_count synced_followers learners \
            pending_syncs snap_count diff_count unrecoverable_error_count connection_rejected local_sessions";
        for name in zero.split_whitespace() {
            assert!(value(name).abs() < 0.5, "{name} in {text}");
        }
        // Ten creates and the session; the pings of a client may come on top of ten reads.
        assert!((value("updatelatency_count") - 11.0).abs() < 0.5, "{text}");
        assert!(value("readlatency_count") >= 10.0, "{text}");
        assert!(value("commit_count") >= 11.0 && value("readlatency{quantile=\"0.99\",}") >= 0.0);
        assert_eq!(page(member.metrics, "/other").0, "404");
    });
}

#[test]
fn a_stopping_member_answers_what_was_asked_and_tells_its_clients_to_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut member = start(dir.path());
    let acknowledged = runtime().block_on(async {
        let client = node_client::connect(member.clients.clone(), options()).await.expect("connected");
        let client = std::rc::Rc::new(client);
        let local = tokio::task::LocalSet::new();
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        for n in 0..500 {
            let (client, told) = (std::rc::Rc::clone(&client), told.clone());
            local.spawn_local(async move {
                let created = client.create(format!("/n{n}"), "x", 0).await;
                let _ = told.send((n, created.is_ok()));
            });
        }
        drop(told);
        local
            .run_until(async {
                let mut acknowledged = Vec::new();
                while let Some((n, done)) = heard.recv().await {
                    if acknowledged.is_empty() {
                        kill_process(Pid::from_child(&member.node.child), Signal::TERM).expect("it lives");
                    }
                    if done {
                        acknowledged.push(n);
                    }
                }
                acknowledged
            })
            .await
    });
    assert!(member.node.child.wait().expect("ended").success());
    assert!(!acknowledged.is_empty());
    assert!(TcpStream::connect(&member.clients).is_err(), "nobody is there");
    let again = start(dir.path());
    runtime().block_on(async {
        let client = node_client::connect(again.clients.clone(), options()).await.expect("connected");
        let names = client.get_children("/").await.expect("children").value;
        for n in acknowledged {
            assert!(names.iter().any(|name| **name == format!("n{n}")), "n{n} was acknowledged");
        }
    });
}

#[test]
fn without_a_whitelist_only_what_reads_cheaply_is_answered() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = Node::start(dir.path());
    let clients = node.event("serving")["client"].as_str().expect("an address").to_owned();
    assert_eq!(said(&clients, b"ruok"), "imok");
    assert_eq!(said(&clients, b"dump"), "dump is not executed because it is not in the whitelist.\n");
}
