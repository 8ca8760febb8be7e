//! TLS on the port for clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{Acl, CreateRequest, GetDataResponse, OpCode, PERM_ALL, PathWatch, SetDataRequest};

use crate::common::PATIENCE;
use crate::member::{Member, fixture, free_port, refused, stores};
use crate::talk::{Talk, plain, said, sealed, trusting};

/// A member whose clients must have TLS.
pub(crate) fn secure(keys: &str) -> (Member, SocketAddr) {
    let addr = free_port();
    let keys = format!("secureClientPort={}\nsecureClientPortAddress=127.0.0.1\n{keys}", addr.port());
    (Member::start(&keys, &[]), addr)
}

fn is_served(addr: SocketAddr, show: Option<&str>) -> bool {
    said(sealed(addr, trusting(show)), b"ruok").is_ok_and(|answer| answer == "imok")
}

#[test]
fn every_kind_of_store_serves_clients_with_tls() {
    for (key, trust) in [
        ("member.pem", "trust.pem"),
        ("member-encrypted.pem", "trust.jks"),
        ("member.jks", "trust.jks"),
        ("member-java.p12", "trust-java.p12"),
        ("member-openssl.p12", "trust-openssl.p12"),
        ("member-legacy.p12", "trust.pem"),
    ] {
        let (_member, addr) = secure(&stores(key, trust));
        assert!(is_served(addr, Some("ann.pem")), "{key} {trust}");
        let mut talk = Talk::new(sealed(addr, trusting(Some("ann.pem")))).expect("a session");
        assert_eq!(talk.ask(OpCode::Ping, |_| {}).expect("an answer").0, 0, "{key} {trust}");
    }
}

#[test]
fn where_only_tls_is_configured_nothing_else_is_served() {
    let (member, addr) = secure(&stores("member.pem", "trust.pem"));
    assert!(is_served(addr, Some("ann.pem")));
    // No word and no session come through without.
    assert_ne!(said(plain(addr), b"ruok").unwrap_or_default(), "imok");
    assert!(Talk::new(plain(addr)).is_none());
    // Nor is the usual port open, nor any other.
    let pid = member.node.child.id();
    assert_eq!(listening(pid), [addr.port()]);
}

/// The ports on which a process listens.
fn listening(pid: u32) -> Vec<u16> {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("a process")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let [local, state, inode] = [columns[1], columns[3], columns[9]];
            if state == "0A" && sockets.iter().any(|socket| socket == inode) {
                let port = local.rsplit(':').next().expect("a port");
                ports.push(u16::from_str_radix(port, 16).expect("hexadecimal"));
            }
        }
    }
    ports
}

#[test]
fn a_port_of_its_own_stands_beside_the_plain_one() {
    let (clear, addr) = (free_port(), free_port());
    let keys = format!(
        "clientPort={}\nsecureClientPort={}\n{}",
        clear.port(),
        addr.port(),
        stores("member.jks", "trust.jks")
    );
    let _member = Member::start(&keys, &[]);
    assert!(is_served(addr, Some("ann.pem")));
    assert_eq!(said(plain(clear), b"ruok").expect("answered"), "imok");
    assert_ne!(said(plain(addr), b"ruok").unwrap_or_default(), "imok");
    assert!(!is_served(clear, Some("ann.pem")), "a greeting of TLS is no request");
}

#[test]
fn a_unified_port_serves_both() {
    let addr = free_port();
    let keys = format!(
        "clientPort={}\nclient.portUnification=true\n{}",
        addr.port(),
        stores("member.jks", "trust.jks")
    );
    let _member = Member::start(&keys, &[]);
    assert!(is_served(addr, Some("ann.pem")));
    assert_eq!(said(plain(addr), b"ruok").expect("answered"), "imok");
    assert!(Talk::new(plain(addr)).is_some());
}

#[test]
fn a_certificate_is_asked_for_as_configured_and_is_who_its_subject_says() {
    let ann = ("x509".to_owned(), "CN=ann,O=Harness\\, Inc.,C=DE".to_owned());
    let (_member, addr) = secure(&stores("member.pem", "trust.pem"));
    assert!(!is_served(addr, None), "one is needed");
    let mut talk = Talk::new(sealed(addr, trusting(Some("ann.pem")))).expect("a session");
    assert!(talk.who_am_i().contains(&ann));
    // One of version 1, as openssl writes them.
    let mut old = Talk::new(sealed(addr, trusting(Some("old.pem")))).expect("a session");
    assert!(old.who_am_i().contains(&("x509".to_owned(), "CN=localhost,O=Harness".to_owned())));

    let keys = format!("{}ssl.clientAuth=want\n", stores("member.pem", "trust.pem"));
    let (_member, addr) = secure(&keys);
    let mut nobody = Talk::new(sealed(addr, trusting(None))).expect("a session");
    assert!(nobody.who_am_i().iter().all(|(scheme, _)| scheme == "ip"));
    let mut talk = Talk::new(sealed(addr, trusting(Some("ann.pem")))).expect("a session");
    assert!(talk.who_am_i().contains(&ann));
    // What another authority signed is refused even where nothing is needed.
    assert!(Talk::new(sealed(addr, trusting(Some(&stranger().file)))).is_none());
}

/// A certificate that signs itself, in a file.
struct Stranger {
    _dir: tempfile::TempDir,
    file: String,
}

fn stranger() -> Stranger {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    // As `openssl req -x509` makes them.
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("signed").pem() + &key.serialize_pem();
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("stranger.pem");
    std::fs::write(&file, pem).expect("written");
    Stranger { _dir: dir, file: file.display().to_string() }
}

#[test]
fn a_certificate_in_the_trust_store_itself_is_trusted_whatever_it_says_of_itself() {
    let stranger = stranger();
    let keys = format!(
        "ssl.keyStore.location={}\nssl.trustStore.location={}\n",
        fixture("member.pem").display(),
        stranger.file
    );
    let (_member, addr) = secure(&keys);
    assert!(is_served(addr, Some(&stranger.file)));
    assert!(!is_served(addr, Some("ann.pem")));
}

#[test]
fn the_superusers_certificate_opens_what_lists_close() {
    let keys = format!(
        "X509AuthenticationProvider.superUser=CN=ann,O=Harness\\\\, Inc.,C=DE\n{}",
        stores("member.pem", "trust.pem")
    );
    let (_member, addr) = secure(&keys);
    let mut owner = Talk::new(sealed(addr, trusting(Some("old.pem")))).expect("a session");
    let acl = Acl {
        perms: PERM_ALL,
        scheme: ByteString::from_static("x509"),
        id: ByteString::from_static("CN=localhost,O=Harness"),
    };
    let create = CreateRequest { path: "/owned".into(), data: None, acl: vec![acl], flags: 0 };
    assert_eq!(owner.ask(OpCode::Create, |w| create.encode(w)).expect("an answer").0, 0);
    let read = PathWatch { path: "/owned".into(), watch: false };
    assert_eq!(owner.ask(OpCode::GetData, |w| read.encode(w)).expect("an answer").0, 0);
    let mut super_user = Talk::new(sealed(addr, trusting(Some("ann.pem")))).expect("a session");
    assert_eq!(super_user.ask(OpCode::GetData, |w| read.encode(w)).expect("an answer").0, 0);
    let mut other = Talk::new(sealed(addr, trusting(Some("member.pem")))).expect("a session");
    assert_eq!(other.ask(OpCode::GetData, |w| read.encode(w)).expect("an answer").0, -102);
}

#[test]
fn what_goes_through_is_what_was_sent_however_much_it_is() {
    let (_member, addr) = secure(&stores("member.pem", "trust.pem"));
    let mut talk = Talk::new(sealed(addr, trusting(Some("ann.pem")))).expect("a session");
    let create = CreateRequest { path: "/big".into(), data: None, acl: vec![Acl::world_anyone()], flags: 0 };
    assert_eq!(talk.ask(OpCode::Create, |w| create.encode(w)).expect("an answer").0, 0);
    for size in [0, 1, 16_383, 16_384, 16_385, 65_536, 1_000_000] {
        let data = Bytes::from((0..size).map(|n: u32| n.to_le_bytes()[n as usize % 3]).collect::<Vec<u8>>());
        let set = SetDataRequest { path: "/big".into(), data: Some(data.clone()), version: -1 };
        assert_eq!(talk.ask(OpCode::SetData, |w| set.encode(w)).expect("an answer").0, 0);
        let read = PathWatch { path: "/big".into(), watch: false };
        // More answers than a socket holds, none of them read before all are asked for.
        let asked: Vec<i32> =
            (0..16).map(|_| talk.post(OpCode::GetData, |w| read.encode(w)).expect("sent")).collect();
        for xid in asked {
            let (error, mut body) = talk.answer(xid).expect("an answer");
            assert_eq!(error, 0);
            let got = GetDataResponse::decode(&mut body).expect("data").data.unwrap_or_default();
            assert!(got == data, "{size} bytes");
        }
    }
}

#[test]
fn handshakes_that_stand_still_are_ended_and_hold_up_nobody_for_longer() {
    let keys = format!(
        "{}ssl.handshakeDetectionTimeoutMillis=300\nnetty.server.outstandingHandshake.limit=8\n",
        stores("member.pem", "trust.pem")
    );
    let (_member, addr) = secure(&keys);
    let mut half_open: Vec<TcpStream> = (0..8).map(|_| plain(addr)).collect();
    for stream in half_open.iter_mut().step_by(2) {
        // The beginning of a greeting that is never finished.
        stream.write_all(&[0x16, 3, 1, 0x40, 0]).expect("written");
    }
    // The ninth is turned away, or comes when their time is over.
    let deadline = Instant::now() + PATIENCE;
    while !is_served(addr, Some("ann.pem")) {
        assert!(Instant::now() < deadline, "the slots never came free");
    }
    for mut stream in half_open {
        let mut rest = Vec::new();
        // An alert may come first. Both an end and a reset are an end.
        let _ = stream.read_to_end(&mut rest);
    }
}

#[test]
fn versions_and_suites_are_those_that_are_configured() {
    let keys = format!(
        "ssl.enabledProtocols=TLSv1.2\n\
         ssl.ciphersuites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_NEVER\n{}",
        stores("member.pem", "trust.pem")
    );
    let (_member, addr) = secure(&keys);
    let mut stream = sealed(addr, trusting(Some("ann.pem")));
    stream.write_all(b"ruok").expect("a handshake");
    assert_eq!(stream.conn.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));
    let suite = stream.conn.negotiated_cipher_suite().expect("a suite").suite();
    assert_eq!(suite, rustls::CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384);
}

#[test]
fn what_cannot_become_tls_stops_the_start_before_anything_is_touched() {
    let port = "secureClientPort=1\n";
    let sound = stores("member.jks", "trust.jks");
    for (keys, message) in [
        (port.to_owned(), "find ssl.keyStore.location: this member must show its own certificate"),
        (
            format!("{port}ssl.keyStore.location={}\n", fixture("member.pem").display()),
            "find ssl.trustStore.location: it says whose certificates are believed",
        ),
        (
            format!("{port}{}", sound.replace("keyStore.password=secret", "keyStore.password=guess")),
            "the password does not open it",
        ),
        (
            format!("{port}ssl.keyStore.location=/nonexistent.jks\n"),
            "read /nonexistent.jks (ssl.keyStore.location)",
        ),
        (
            format!("{port}{sound}ssl.keyStore.type=BCFKS\n"),
            "read ssl.keyStore.type=BCFKS: JKS, PKCS12 or PEM",
        ),
        (format!("{port}{sound}ssl.keyStore.passwordPath=/nonexistent\n"), "ssl.keyStore.passwordPath"),
        (format!("{port}{sound}ssl.clientAuth=maybe\n"), "need, want or none is wanted"),
        (format!("{port}{sound}ssl.protocol=SSLv3\n"), "TLSv1.2, TLSv1.3 or TLS is wanted"),
        (format!("{port}{sound}ssl.enabledProtocols=TLSv1,TLSv1.1\n"), "a list with TLSv1.2 or TLSv1.3"),
        (format!("{port}{sound}ssl.ciphersuites=TLS_RSA_WITH_AES_128_CBC_SHA\n"), "TLS_AES_128_GCM_SHA256"),
        (format!("{port}{sound}ssl.handshakeDetectionTimeoutMillis=0\n"), "a number of milliseconds"),
        (format!("{port}{sound}ssl.ocsp=true\n"), "no lists of revoked certificates"),
        (format!("clientPort=1\n{port}{sound}"), "port 1 for clients with TLS and for clients without"),
    ] {
        let said = refused(&keys);
        assert!(said.contains(message) && !said.contains("secret"), "{keys}: {said}");
    }
}

#[test]
fn the_password_may_stand_in_a_file_and_keys_on_the_command_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let password = dir.path().join("password");
    std::fs::write(&password, "secret\n").expect("written");
    let addr = free_port();
    let flags = [
        format!("-Dzookeeper.ssl.keyStore.location={}", fixture("member.jks").display()),
        format!("-Dzookeeper.ssl.keyStore.passwordPath={}", password.display()),
        format!("-Dzookeeper.ssl.trustStore.location={}", fixture("trust.jks").display()),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let _member = Member::start(&format!("secureClientPort={}\n", addr.port()), &flags);
    assert!(is_served(addr, Some("ann.pem")));
}
