//! The clients of the systems that are files, each in a conversation with a member that answers what is
//! written here. Whatever a member says, a client answers each request and lives on: with `fail` where the
//! operation certainly had no effect, and with `info` where nobody knows.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use harness_systems::files;
use serde_json::{Value, json};

/// What a member says, in order: each is its answer to one request, on whichever connection it comes.
type Answers = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// Answers what comes over one connection, and closes it when there is nothing left to say.
fn serve(mut stream: TcpStream, greeting: &[u8], answers: &Answers) {
    let mut said = Vec::new();
    let mut part = [0; 1 << 16];
    let _ = stream.write_all(greeting);
    while let Ok(length @ 1..) = stream.read(&mut part) {
        said.extend(&part[..length]);
        if said.starts_with(b"POST") && said.ends_with(b"\r\n\r\n") {
            // A head, whose body is on its way.
            continue;
        }
        said.clear();
        let Some(answer) = answers.lock().expect("no panic").pop_front() else { return };
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// A member that begins each connection with this greeting.
fn member(greeting: &'static [u8], answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answers = Arc::clone(&answers);
            thread::spawn(move || serve(stream, greeting, &answers));
        }
    });
    address
}

/// What the client of that system answers to these requests at a member, with these variables set.
fn asked(system: &str, variables: &[(&str, &str)], member: &str, requests: &[Value]) -> Vec<Value> {
    let files = files::ALL.iter().find(|files| files.name == system).expect("a system");
    let (_, text) = files.files.iter().find(|(name, _)| name.ends_with("client.py")).expect("a client");
    let mut command = Command::new("python3");
    command.args(["-c", text]).envs(variables.iter().copied());
    let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    let mut to_it = client.stdin.take().expect("piped");
    let mut lines = BufReader::new(client.stdout.take().expect("piped")).lines();
    assert!(lines.next().expect("a hello").expect("text").contains("hello"));
    let mut answers = Vec::new();
    for (id, request) in (1..).zip(requests) {
        let mut line = json!({"id": id, "key": 1, "value": null, "member": member, "timeout_ms": 5000});
        let (whole, own) = (line.as_object_mut().expect("an object"), request.as_object().expect("one"));
        whole.extend(own.clone());
        writeln!(to_it, "{line}").expect("it reads");
        let Some(Ok(answer)) = lines.next() else { panic!("{system}: it ended over {line}") };
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["id"], id);
        answers.push(answer);
    }
    drop(to_it);
    assert!(client.wait().expect("it ends").success());
    answers
}

fn kinds(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["type"].as_str().expect("a type")).collect()
}

fn words(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn the_client_of_redis_outlives_answers_that_make_no_sense() {
    let said = words(&["$3\r\nabc\r\n", "$-1\r\n", "*1\r\n*1\r\n$1\r\n7\r\n", "what\r\n", "$1\r\n7\r\n"]);
    let requests = [
        json!({"f": "read", "of": "register"}),
        json!({"f": "send", "of": "log", "value": 7}),
        json!({"f": "poll", "of": "log", "value": [0, 9]}),
        json!({"f": "write", "of": "register", "value": 7}),
        json!({"f": "read", "of": "register"}),
    ];
    let answers = asked("redis", &[], &member(b"", said), &requests);
    assert_eq!(kinds(&answers), ["info", "info", "info", "info", "ok"]);
    assert_eq!(answers[4]["value"], 7);
}

#[test]
fn the_client_of_nats_outlives_answers_that_make_no_sense() {
    // By its subject for the answer it is a message that was handed out, which needs no inbox.
    let message = |text: &str| format!("MSG a 1 $JS.ACK.b {}\r\n{text}\r\n", text.len());
    let none = "HMSG a 1 $JS.ACK.b 16 16\r\nNATS/1.0 404\r\n\r\n\r\n";
    let (pong, made) = ("PONG\r\n", message("{}"));
    let said = [
        // The stream can't be made: there is no answer, or it is no JSON. Nothing else has left.
        pong,
        none,
        pong,
        &message("{"), //
        pong,
        &made,
        none,
        pong,
        &made,
        &message("{}"),
        pong,
        &made,
        &message(r#"{"message":{"seq":1}}"#),
        pong,
        &made,
        &message(r#"{"stream":"H","seq":7}"#),
    ];
    let write = json!({"f": "write", "of": "register", "value": 7});
    let read = json!({"f": "read", "of": "register"});
    let requests = [write.clone(), write.clone(), write.clone(), read.clone(), read, write];
    let answers = asked("nats", &[], &member(b"INFO {}\r\n", words(&said)), &requests);
    assert_eq!(kinds(&answers), ["fail", "fail", "info", "info", "info", "ok"]);
    assert!(answers[..2].iter().all(|answer| answer["error"] == "not-sent"), "{answers:?}");
}

#[test]
fn the_client_of_etcd_outlives_answers_that_make_no_sense() {
    let http = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let said = [http("{}"), http("[]"), "what?\r\n".to_owned(), http("{}")];
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let requests = [
        json!({"f": "txn", "of": "lists", "value": [["append", 1, 7]]}),
        json!({"f": "read", "of": "register"}),
        json!({"f": "write", "of": "register", "value": 7}),
        json!({"f": "read", "of": "register"}),
    ];
    let answers = asked("etcd", &[], &member(b"", words(&said)), &requests);
    assert_eq!(kinds(&answers), ["info", "info", "info", "ok"]);
}

#[test]
fn the_client_of_zookeeper_outlives_answers_that_make_no_sense() {
    let frame =
        |body: Vec<u8>| [&u32::try_from(body.len()).expect("short").to_be_bytes()[..], &body].concat();
    // To the request of that number: a node whose data is this, at its first version.
    let node = |number: u32, data: &[u8]| {
        let length = u32::try_from(data.len()).expect("short");
        let stat = vec![0; 68];
        let head = [&number.to_be_bytes()[..], &[0; 12], &length.to_be_bytes()].concat();
        frame([head, data.to_vec(), stat].concat())
    };
    let greeting = || frame(vec![0; 36]);
    let said = vec![
        greeting(),
        node(1, b"{\"a\": 1}"),
        greeting(),
        [frame([&1_u32.to_be_bytes()[..], &[0; 12]].concat()), node(2, b"7")].concat(),
    ];
    let requests = [json!({"f": "append", "of": "list", "value": 7}), json!({"f": "read", "of": "register"})];
    let answers = asked("zookeeper", &[], &member(b"", said), &requests);
    assert_eq!(kinds(&answers), ["info", "ok"]);
}

#[test]
fn the_client_that_is_begun_from_outlives_answers_that_make_no_sense() {
    let said = words(&["what?\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7"]);
    let read = json!({"f": "read", "of": "register"});
    let answers = asked("system", &[], &member(b"", said), &[read.clone(), read]);
    assert_eq!(kinds(&answers), ["info", "ok"]);
}

/// A message of PostgreSQL's.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// A row of columns as text; none is NULL.
fn row(columns: &[Option<&str>]) -> Vec<u8> {
    let mut body = u16::try_from(columns.len()).expect("few").to_be_bytes().to_vec();
    for column in columns {
        let length = column.map_or(-1, |text| i32::try_from(text.len()).expect("short"));
        body.extend(length.to_be_bytes());
        body.extend(column.unwrap_or_default().as_bytes());
    }
    message(b'D', &body)
}

/// An answer of these rows, from within a transaction (`T`) or not (`I`).
fn rows(state: u8, rows: &[&[Option<&str>]]) -> Vec<u8> {
    let mut answer: Vec<u8> = rows.iter().flat_map(|columns| row(columns)).collect();
    answer.extend(message(b'C', b"SELECT 1\0"));
    answer.extend(message(b'Z', &[state]));
    answer
}

/// What a server of PostgreSQL says first.
fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'Z', b"I")].concat()
}

#[test]
fn the_client_of_postgresql_refuses_a_transfer_to_an_account_that_is_not_there() {
    let said = vec![
        welcome(),
        rows(b'T', &[&[Some("f")]]),
        rows(b'T', &[&[Some("0"), Some("100")]]),
        rows(b'I', &[]),
        rows(b'I', &[&[Some("f"), Some("100")]]),
    ];
    let requests =
        [json!({"f": "transfer", "of": "bank", "value": [0, 1, 5]}), json!({"f": "balances", "of": "bank"})];
    let answers = asked("postgres", &[], &member(b"", said), &requests);
    assert_eq!(kinds(&answers), ["fail", "ok"]);
    assert_eq!(answers[0]["error"], "refused: there is no such account");
    assert_eq!(answers[1]["value"], json!([100]));
}

#[test]
fn the_client_of_postgresql_outlives_answers_that_make_no_sense() {
    let said = vec![
        welcome(),
        rows(b'I', &[]),
        welcome(),
        // Begun, and not committed: the server rolls that back.
        rows(b'T', &[]),
        welcome(),
        rows(b'I', &[&[Some("f"), Some("many"), None]]),
        // No text, where the server says why it refuses the client.
        message(b'E', &[0xff, b'x', 0]),
        welcome(),
        rows(b'I', &[&[Some("f"), None]]),
    ];
    let requests = [
        json!({"f": "write", "of": "register", "value": 7}),
        json!({"f": "txn", "of": "lists", "value": [["append", 1, 7]]}),
        json!({"f": "read", "of": "register"}),
        json!({"f": "write", "of": "register", "value": 7}),
        json!({"f": "balances", "of": "bank"}),
    ];
    let answers = asked("postgres", &[], &member(b"", said), &requests);
    assert_eq!(kinds(&answers), ["info", "fail", "info", "fail", "ok"]);
    assert!(answers[1]["error"].as_str().expect("text").starts_with("not committed"), "{answers:?}");
    assert_eq!((&answers[3]["error"], &answers[4]["value"]), (&json!("not-sent"), &json!([])));
}

#[test]
fn where_the_primary_alone_is_read_a_standby_says_no() {
    let reads = ["register", "set", "list"].map(|of| json!({"f": "read", "of": of}));
    let balances = json!({"f": "balances", "of": "bank"});
    let requests: Vec<Value> = reads.into_iter().chain([balances]).collect();
    let standby = [Some("t"), None, None];
    let answers = |variables: &[(&str, &str)]| {
        let columns = [3, 2, 2, 2].map(|columns| rows(b'I', &[&standby[..columns]]));
        let said = [welcome()].into_iter().chain(columns).collect();
        let answers = asked("postgres", variables, &member(b"", said), &requests);
        kinds(&answers).join(" ")
    };
    assert_eq!(answers(&[("READS", "primary")]), "fail fail fail fail");
    assert_eq!(answers(&[]), "ok ok ok ok");
}

#[test]
fn a_client_whose_member_goes_answers_nevertheless() {
    for system in ["redis", "nats", "etcd", "zookeeper", "postgres", "system"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        // One connection is accepted and closed, and then nobody listens.
        thread::spawn(move || drop(listener.accept()));
        let write = json!({"f": "write", "of": "register", "value": 7});
        let answers = asked(system, &[], &address, &[write.clone(), write]);
        assert!(kinds(&answers).iter().all(|kind| *kind != "ok"), "{system}: {answers:?}");
    }
}
