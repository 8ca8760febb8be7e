//! SASL on the port for clients: who proves a name, who does not, and who must.

use std::net::SocketAddr;

use bytes::Bytes;
use bytestring::ByteString;
use md5::{Digest, Md5};
use node_wire::client::{Acl, CreateRequest, OpCode, PERM_ALL, PathWatch, SaslPacket};

use crate::member::{Member, free_port, refused};
use crate::talk::{Talk, plain};

const REFUSED: i32 = -115;
const REQUIRED: i32 = -124;
const NO_AUTH: i32 = -102;

const PROVIDER: &str = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n";

/// A member with two users, and these keys.
pub(crate) struct Guarded {
    _member: Member,
    _dir: tempfile::TempDir,
    pub(crate) addr: SocketAddr,
}

pub(crate) fn guarded(keys: &str) -> Guarded {
    let dir = tempfile::tempdir().expect("a directory");
    let jaas = dir.path().join("jaas.conf");
    let users = "Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  \
                 user_ann=\"secret\"\n  user_root=\"toor\";\n};\n";
    std::fs::write(&jaas, users).expect("written");
    let addr = free_port();
    let keys = format!("clientPort={}\n{PROVIDER}{keys}", addr.port());
    let member = Member::start(&keys, &[&format!("-Djava.security.auth.login.config={}", jaas.display())]);
    Guarded { _member: member, _dir: dir, addr }
}

type Plain = Talk<std::net::TcpStream>;

fn session(guarded: &Guarded) -> Plain {
    Talk::new(plain(guarded.addr)).expect("a session")
}

/// Sends a token. The answer is the server's, or the error.
fn token(talk: &mut Plain, token: &[u8]) -> Option<Result<Bytes, i32>> {
    let packet = SaslPacket { token: Some(Bytes::copy_from_slice(token)) };
    let (error, mut body) = talk.ask(OpCode::Sasl, |w| packet.encode(w))?;
    // Java's client reads a token whatever the error is.
    let token = SaslPacket::decode(&mut body).expect("a token").token.unwrap_or_default();
    Some(if error == 0 { Ok(token) } else { Err(error) })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a client answers to a challenge (RFC 2831).
fn response(challenge: &[u8], user: &str, password: &str) -> String {
    let challenge = String::from_utf8_lossy(challenge).into_owned();
    let nonce = challenge.split("nonce=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a nonce");
    let (realm, uri, cnonce) = ("zk-sasl-md5", "zookeeper/zk-sasl-md5", "c0ffee");
    let mut a1 = Md5::digest(format!("{user}:{realm}:{password}")).to_vec();
    a1.extend(format!(":{nonce}:{cnonce}").bytes());
    let a1 = hex(&Md5::digest(&a1));
    let a2 = hex(&Md5::digest(format!("AUTHENTICATE:{uri}")));
    let digest = hex(&Md5::digest(format!("{a1}:{nonce}:00000001:{cnonce}:auth:{a2}")));
    format!(
        "charset=utf-8,username=\"{user}\",realm=\"{realm}\",nonce=\"{nonce}\",nc=00000001,\
         cnonce=\"{cnonce}\",\
         digest-uri=\"{uri}\",response={digest},qop=auth"
    )
}

/// The whole exchange. Gives how it ended, and what was answered to the challenge.
fn prove(talk: &mut Plain, user: &str, password: &str) -> (Option<Result<Bytes, i32>>, String) {
    let challenge = token(talk, b"").expect("an answer").expect("a challenge");
    let response = response(&challenge, user, password);
    (token(talk, response.as_bytes()), response)
}

fn read(talk: &mut Plain, path: &'static str) -> Option<i32> {
    let read = PathWatch { path: path.into(), watch: false };
    Some(talk.ask(OpCode::GetData, |w| read.encode(w))?.0)
}

fn create(talk: &mut Plain, path: &'static str, owner: &'static str) -> i32 {
    let acl =
        Acl { perms: PERM_ALL, scheme: ByteString::from_static("sasl"), id: ByteString::from_static(owner) };
    let create = CreateRequest { path: path.into(), data: None, acl: vec![acl], flags: 0 };
    talk.ask(OpCode::Create, |w| create.encode(w)).expect("an answer").0
}

#[test]
fn a_name_that_was_proven_opens_what_lists_close() {
    let guarded = guarded("superUser=root\n");
    let mut ann = session(&guarded);
    let (ended, _) = prove(&mut ann, "ann", "secret");
    assert!(ended.expect("an answer").expect("proven").starts_with(b"rspauth="));
    assert!(ann.who_am_i().contains(&("sasl".to_owned(), "ann".to_owned())));
    assert_eq!(create(&mut ann, "/hers", "ann"), 0);
    assert_eq!(read(&mut ann, "/hers"), Some(0));
    let mut nobody = session(&guarded);
    assert_eq!(read(&mut nobody, "/hers"), Some(NO_AUTH));
    let mut root = session(&guarded);
    assert!(prove(&mut root, "root", "toor").0.expect("an answer").is_ok());
    assert_eq!(read(&mut root, "/hers"), Some(0));
}

#[test]
fn whoever_fails_hears_it_and_is_hung_up_on() {
    let guarded = guarded("");
    for (user, password) in [("ann", "guess"), ("nobody", ""), ("nobody", "secret")] {
        let mut talk = session(&guarded);
        assert_eq!(prove(&mut talk, user, password).0, Some(Err(REFUSED)), "{user}");
        assert_eq!(read(&mut talk, "/"), None, "{user}");
    }
    // An answer that was good once is not good for another challenge, nor a second time.
    let mut talk = session(&guarded);
    let (ended, heard) = prove(&mut talk, "ann", "secret");
    assert!(ended.expect("an answer").is_ok());
    let mut other = session(&guarded);
    token(&mut other, b"").expect("an answer").expect("a challenge");
    assert_eq!(token(&mut other, heard.as_bytes()), Some(Err(REFUSED)));
    assert_eq!(token(&mut talk, heard.as_bytes()), Some(Err(REFUSED)));
    let mut rash = session(&guarded);
    assert_eq!(token(&mut rash, b"PLAIN"), Some(Err(REFUSED)));
}

#[test]
fn where_sasl_is_required_nothing_else_is_answered() {
    let guarded = guarded("sessionRequireClientSASLAuth=true\n");
    let mut nobody = session(&guarded);
    assert_eq!(read(&mut nobody, "/"), Some(REQUIRED));
    assert_eq!(read(&mut nobody, "/"), None);
    let mut wrong = session(&guarded);
    assert_eq!(prove(&mut wrong, "ann", "guess").0, Some(Err(REQUIRED)));
    let mut ann = session(&guarded);
    assert!(prove(&mut ann, "ann", "secret").0.expect("an answer").is_ok());
    assert_eq!(read(&mut ann, "/"), Some(0));
}

#[test]
fn other_schemes_may_be_required() {
    let guarded = guarded("enforce.auth.enabled=true\nenforce.auth.schemes=sasl, ip\n");
    assert_eq!(read(&mut session(&guarded), "/"), Some(0), "an address is an identity");
}

#[test]
fn failures_may_be_tolerated() {
    let guarded = guarded("allowSaslFailedClients=true\n");
    let mut talk = session(&guarded);
    assert_eq!(prove(&mut talk, "ann", "guess").0, Some(Ok(Bytes::new())));
    assert_eq!(read(&mut talk, "/"), Some(0));
    assert!(talk.who_am_i().iter().all(|(scheme, _)| scheme == "ip"));
}

#[test]
fn what_cannot_be_required_stops_the_start() {
    for (keys, message) in [
        ("sessionRequireClientSASLAuth=true\n", "only clients that prove a name by SASL where nobody can"),
        ("enforce.auth.enabled=true\n", "enforce.auth.enabled=true without enforce.auth.schemes"),
        (
            "enforce.auth.enabled=true\nenforce.auth.schemes=key\n",
            "enforce.auth.schemes with key: choose from",
        ),
        ("quorum.auth.enableSasl=true\n", "members do not authenticate to each other"),
        (
            "authProvider.1=a.b.SASLAuthenticationProvider\njava.security.auth.login.config=/nonexistent\n",
            "failed to read /nonexistent (java.security.auth.login.config)",
        ),
    ] {
        let said = refused(&format!("clientPort=1\n{keys}"));
        assert!(said.contains(message), "{keys}: {said}");
    }
}
