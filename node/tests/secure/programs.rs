//! `node lock` and its like, which show who they are.

use std::path::Path;
use std::process::Command;

use crate::common::NODE;
use crate::member::{fixture, stores};
use crate::sasl::guarded;
use crate::tls::secure;

/// Runs a lock's command with these flags. Gives its exit status and what it said.
fn lock(server: &str, flags: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(NODE)
        .args(["lock", "/lock", "--wait", "10s", "--session-timeout", "4s", "--server", server])
        .args(flags)
        .args(["--", "true"])
        .env("RUST_LOG", "off")
        .output()
        .expect("started");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn file(dir: &Path, text: &str) -> String {
    let file = dir.join("password");
    std::fs::write(&file, text).expect("written");
    file.to_str().expect("text").to_owned()
}

#[test]
fn a_program_speaks_tls_and_shows_its_certificate() {
    let (_member, addr) = secure(&stores("member.pem", "trust.pem"));
    let [trust, ann] = ["trust.pem", "ann.pem"].map(|name| fixture(name).display().to_string());
    let server = addr.to_string();
    let trusts = ["--tls-trust", &trust, "--tls-name", "localhost"];
    let shows = [&trusts[..], &["--tls-identity", &ann]].concat();
    let (status, said) = lock(&server, &shows);
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = lock(&server, &[&shows[..], &["--acl", "auth::cdrwa"]].concat());
    assert_eq!(status, Some(0), "a certificate is an identity: {said}");
    for flags in [&[][..], &trusts] {
        let (status, said) = lock(&server, flags);
        assert_eq!(status, Some(125), "{flags:?}: {said}");
    }
}

#[test]
fn a_program_proves_a_user_by_sasl() {
    let guarded = guarded("sessionRequireClientSASLAuth=true\n");
    let (server, dir) = (guarded.addr.to_string(), tempfile::tempdir().expect("a directory"));
    let right = file(dir.path(), "secret\n");
    let shown = ["--sasl-user", "ann", "--sasl-password-file", &right, "--acl", "sasl:ann:cdrwa"];
    let (status, said) = lock(&server, &shown);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(lock(&server, &[]).0, Some(125));
    let wrong = file(dir.path(), "wrong");
    let (status, said) = lock(&server, &["--sasl-user", "ann", "--sasl-password-file", &wrong]);
    assert_eq!(status, Some(125), "{said}");
    assert!(said.contains("refused the identity") && said.contains("--sasl-user"), "{said}");
}
