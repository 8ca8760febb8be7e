//! TLS between members.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use node_wire::client::{Acl, CreateRequest, OpCode, PathWatch};

use crate::common::{Node, PATIENCE};
use crate::member::{fixture, start_in, stores};
use crate::ports::free_ports;
use crate::talk::{Talk, dial, plain, sealed, trusting};

/// Three members, each in its own process.
struct Three {
    dir: tempfile::TempDir,
    /// For clients, for learners, for votes.
    ports: Vec<[SocketAddr; 3]>,
    nodes: Vec<Option<Node>>,
}

/// The keys of TLS between members.
fn tls(more: &str) -> String {
    let stores = stores("member.jks", "trust.jks").replace("ssl.", "ssl.quorum.");
    format!("{stores}{more}")
}

const BOTH: &str = "portUnification=true\n";
const DIALS: &str = "sslQuorum=true\n";

impl Three {
    fn new() -> Self {
        let base = free_ports(9);
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let ports = (0..3).map(|member| [0, 3, 6].map(|kind| at(base + kind + member))).collect();
        let nodes = (0..3).map(|_| None).collect();
        Self { dir: tempfile::tempdir().expect("a directory"), ports, nodes }
    }

    /// All three with the same keys.
    fn start(keys: &str) -> Self {
        let mut three = Self::new();
        for index in 0..3 {
            three.restart(index, keys);
        }
        three
    }

    /// Starts a member, with these keys from now on, over what it has on disk.
    fn restart(&mut self, index: usize, keys: &str) {
        self.nodes[index] = None;
        let dir = self.dir.path().join(index.to_string());
        std::fs::create_dir_all(&dir).expect("a directory");
        let mut text = format!(
            "clientPort={}\nclientPortAddress=127.0.0.1\ninitLimit=10\nsyncLimit=5\n{keys}",
            self.ports[index][0].port()
        );
        for (index, [_, quorum, election]) in self.ports.iter().enumerate() {
            let (quorum, election) = (quorum.port(), election.port());
            text += &format!("server.{}=localhost:{quorum}:{election}\n", index + 1);
        }
        self.nodes[index] = Some(start_in(&dir, &text, &["--id", &(index + 1).to_string()]));
    }

    /// Waits until a member answers a write.
    fn writes(&mut self, index: usize, path: &str) {
        let deadline = Instant::now() + PATIENCE;
        let create = CreateRequest {
            path: path.to_owned().into(),
            data: None,
            acl: vec![Acl::world_anyone()],
            flags: 0,
        };
        loop {
            let answer =
                self.try_session(index).and_then(|mut talk| talk.ask(OpCode::Create, |w| create.encode(w)));
            match answer {
                // It may have been made by an attempt whose answer was lost.
                Some((0 | -110, _)) => return,
                _ if Instant::now() < deadline => {}
                _ => panic!("member {} does not serve{}", index + 1, self.ended(index)),
            }
        }
    }

    fn try_session(&self, index: usize) -> Option<Talk<std::net::TcpStream>> {
        Talk::new(dial(self.ports[index][0])?)
    }

    /// How a member ended and why, where it did.
    fn ended(&mut self, index: usize) -> String {
        let node = self.nodes[index].as_mut().expect("started");
        let Ok(Some(status)) = node.child.try_wait() else { return String::new() };
        let mut said = String::new();
        let _ = node.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
        format!(": {status}: {said}")
    }

    fn reads(&self, index: usize, path: &str) {
        let deadline = Instant::now() + PATIENCE;
        let read = PathWatch { path: path.to_owned().into(), watch: false };
        loop {
            let answer =
                self.try_session(index).and_then(|mut talk| talk.ask(OpCode::GetData, |w| read.encode(w)));
            match answer {
                Some((0, _)) => return,
                _ => assert!(Instant::now() < deadline, "member {} does not have {path}", index + 1),
            }
        }
    }
}

#[test]
fn three_members_serve_over_tls_and_take_nothing_else() {
    let mut three = Three::start(&tls(DIALS));
    for index in 0..3 {
        three.writes(index, &format!("/{index}"));
    }
    for index in 0..3 {
        for written in 0..3 {
            three.reads(index, &format!("/{written}"));
        }
    }
    for [_, quorum, election] in &three.ports {
        // A greeting of each port, without TLS: the port for learners would say something to it, and that for
        // votes would keep the connection.
        let mut learner = plain(*quorum);
        learner.write_all(&[0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]).expect("written");
        assert_ends(learner);
        let mut voter = plain(*election);
        voter.write_all(&(-65536_i64).to_be_bytes()).expect("written");
        assert_ends(voter);
    }
}

/// The other end hangs up, with or without an alert before it, and says nothing else.
fn assert_ends(mut stream: impl Read) {
    let mut rest = Vec::new();
    // A reset is an end.
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest[0] == 0x15, "{rest:?}");
}

#[test]
fn only_certificates_that_are_trusted_and_name_a_member_come_in() {
    let mut three = Three::start(&tls(DIALS));
    three.writes(0, "/a");
    let election = three.ports[0][2];
    // Trusted, and made out to somebody else than a host of the ensemble.
    for show in [None, Some("ann.pem")] {
        let mut stream = sealed(election, trusting(show));
        let _ = stream.write_all(&(-65536_i64).to_be_bytes());
        assert_ends(stream);
    }
    // A member's certificate is let in: the port then waits for the rest of the greeting, and hangs up by
    // itself.
    let mut stream = sealed(election, trusting(Some("member.pem")));
    stream.write_all(&(-65536_i64).to_be_bytes()).expect("a handshake");
    assert!(stream.conn.peer_certificates().is_some());
}

#[test]
fn an_ensemble_changes_over_to_tls_member_by_member_and_keeps_what_it_has() {
    let mut three = Three::start("");
    three.writes(0, "/0");
    let mut step = 0;
    for keys in [tls(BOTH), tls(&format!("{BOTH}{DIALS}")), tls(DIALS)] {
        for index in 0..3 {
            three.restart(index, &keys);
            step += 1;
            three.writes(index, &format!("/{step}"));
        }
    }
    for index in 0..3 {
        for written in 0..=step {
            three.reads(index, &format!("/{written}"));
        }
    }
}

#[test]
fn stores_are_read_again_when_they_change() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = dir.path().join("member.pem");
    std::fs::copy(fixture("member.pem"), &store).expect("copied");
    let keys = format!(
        "ssl.quorum.keyStore.location={}\nssl.quorum.trustStore.location={}\nsslQuorumReloadCertFiles=true\n\
         ssl.quorum.hostnameVerification=false\n{DIALS}",
        store.display(),
        fixture("trust.pem").display()
    );
    let mut three = Three::start(&keys);
    three.writes(0, "/a");
    let shown = |election: SocketAddr| {
        let mut stream = sealed(election, trusting(Some("member.pem")));
        stream.write_all(&[0]).expect("a handshake");
        stream.conn.peer_certificates().expect("a certificate")[0].to_vec()
    };
    let before = shown(three.ports[0][2]);
    replace(&store, "old.pem");
    let deadline = Instant::now() + PATIENCE;
    // One of version 1, which members believe and this client does not.
    while shown_or_nothing(three.ports[0][2]) == Some(before.clone()) {
        assert!(Instant::now() < deadline, "the old certificate is still shown");
    }
    three.writes(1, "/b");
}

fn replace(store: &Path, by: &str) {
    let next = store.with_extension("next");
    std::fs::copy(fixture(by), &next).expect("copied");
    std::fs::rename(next, store).expect("renamed");
}

/// The certificate that a port shows, when the test's client believes it.
fn shown_or_nothing(election: SocketAddr) -> Option<Vec<u8>> {
    let mut stream = sealed(election, trusting(Some("member.pem")));
    stream.write_all(&[0]).ok()?;
    Some(stream.conn.peer_certificates()?.first()?.to_vec())
}
