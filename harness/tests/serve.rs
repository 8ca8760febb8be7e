//! The store in a browser: what a request is answered, and what nobody gets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server of a store, ended with the test.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_harness"))
            .args(["serve", "--store", "runs", "--port", "0"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the harness starts");
        let mut said = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut said).expect("it says where it is");
        let port = said.split(['/', ':']).find_map(|part| part.parse().ok());
        Self { child, port: port.unwrap_or_else(|| panic!("no port in {said}")) }
    }

    /// The whole answer to a request for a path.
    fn ask(&self, method: &str, path: &str, host: &str) -> String {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).expect("asked");
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).expect("answered");
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.ask("GET", path, &format!("127.0.0.1:{}", self.port))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn harness(folder: &Path, arguments: &[&str]) -> i32 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    let status = command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    status.status().expect("the harness starts").code().expect("a status")
}

#[test]
fn runs_are_listed_and_their_pages_and_files_are_read_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = ["run", "--cluster", "sim", "--nemesis", "kill-leader", "--time-limit", "6s", "--seed", "3"];
    assert_eq!(harness(folder.path(), &run), 0);
    std::fs::write(folder.path().join("secret"), "secret").expect("written");
    let served = Served::start(folder.path());
    let list = served.get("/");
    assert!(list.starts_with("HTTP/1.1 200") && list.contains("register-kill-leader"), "{list}");
    assert!(list.contains("✓ valid") && list.contains("1 of 1"), "{list}");
    let link = list.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
    let link = link.into_iter().find(|link| link.contains("register")).expect("a link to the run");
    let page = served.get(&format!("/{link}"));
    assert!(page.contains("text/html") && page.contains("</html>"), "the run's page");
    assert!(page.contains("default-src 'none'"), "which may load nothing");
    let on_disk = std::fs::read(folder.path().join("runs/latest/history.jsonl")).expect("a history");
    let history = served.get(&format!("/{link}history.jsonl"));
    let (head, body) = history.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("text/plain") && head.contains("nosniff"), "{head}");
    assert!(body.as_bytes() == on_disk, "the whole file");
    let head = served.ask("HEAD", &format!("/{link}history.jsonl"), &format!("localhost:{}", served.port));
    assert!(head.contains(&format!("content-length: {}", on_disk.len())), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "no body");
    assert!(served.get("/latest").starts_with("HTTP/1.1 308"), "a folder ends with a slash");
    let (name, start) = link.split_once('/').expect("a run below its name");
    let of_name = served.get(&format!("/{name}/"));
    assert!(of_name.contains(&format!("href=\"./{start}\"")), "a folder without a page: {of_name}");
    for path in ["/../secret", "/%2e%2e/secret", "/nowhere", &format!("/{link}lock")] {
        let answer = served.get(path);
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let host = format!("127.0.0.1:{}", served.port);
    assert!(served.ask("DELETE", "/", &host).starts_with("HTTP/1.1 405"));
    assert!(served.ask("GET", "/", "evil.example").starts_with("HTTP/1.1 421"));
}

#[test]
fn connections_that_ask_nothing_keep_nobody_out() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("runs")).expect("a store");
    let served = Served::start(folder.path());
    let silent: Vec<TcpStream> = (0..300)
        .map(|nth: u32| {
            let mut stream = TcpStream::connect(("127.0.0.1", served.port)).expect("it listens");
            if nth.is_multiple_of(2) {
                stream.write_all(b"GET / HTTP/1.1\r\nHost: ").expect("half a head");
            }
            stream
        })
        .collect();
    assert!(served.get("/").starts_with("HTTP/1.1 200"));
    // Each of them ends by itself: nobody waits for its head for ever.
    for mut stream in silent {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a bound");
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
}

#[test]
fn a_part_of_a_file_is_sent_where_it_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("runs/a/b")).expect("a store");
    std::fs::write(folder.path().join("runs/a/b/history.jsonl"), "0123456789").expect("written");
    let served = Served::start(folder.path());
    let ask = |range: &str| {
        served.ask("GET", "/a/b/history.jsonl", &format!("127.0.0.1:{}\r\n{range}", served.port))
    };
    let part = ask("Range: bytes=2-4");
    assert!(part.starts_with("HTTP/1.1 206") && part.ends_with("\r\n\r\n234"), "{part}");
    assert!(part.contains("content-range: bytes 2-4/10\r\n") && part.contains("content-length: 3"), "{part}");
    let end = ask("Range: bytes=-3");
    assert!(end.starts_with("HTTP/1.1 206") && end.ends_with("\r\n\r\n789"), "{end}");
    let beyond = ask("Range: bytes=10-");
    assert!(beyond.starts_with("HTTP/1.1 416") && beyond.contains("content-range: bytes */10"), "{beyond}");
    for range in ["Range: bytes=1-2,4-5", "Range: bytes=0-1\r\nIf-Range: \"x\"", "X: y"] {
        let whole = ask(range);
        assert!(whole.starts_with("HTTP/1.1 200") && whole.ends_with("\r\n\r\n0123456789"), "{whole}");
        assert!(whole.contains("accept-ranges: bytes"), "{whole}");
    }
}

#[test]
fn what_can_not_be_served_is_said_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(harness(folder.path(), &["serve", "--store", "nowhere"]), 254);
    std::fs::create_dir(folder.path().join("runs")).expect("made");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    assert_eq!(harness(folder.path(), &["serve", "--port", &port]), 254);
    let served = Served::start(folder.path());
    assert!(served.get("/").contains("There is no run yet"));
}
