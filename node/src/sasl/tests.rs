//! The exchange, with users from a file.

use super::digest_md5::tests::response;
use super::*;

fn users(more: &[(&str, &str)]) -> Result<Option<Users>, SaslError> {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("jaas.conf");
    let text = "Server { org.apache.zookeeper.server.auth.DigestLoginModule required\n\
                user_ann=\"secret\" user_root=\"toor\"; };\n\
                Other { com.sun.security.auth.module.Krb5LoginModule required; };";
    fs::write(&file, text).expect("written");
    let mut said = Properties::new();
    said.insert(
        "authProvider.1".to_owned(),
        "org.apache.zookeeper.server.auth.SASLAuthenticationProvider".into(),
    );
    said.insert(JAAS_FILE.to_owned(), file.display().to_string());
    said.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    Users::new(&said)
}

fn known(more: &[(&str, &str)]) -> Users {
    users(more).expect("sound").expect("users")
}

fn step(exchange: &mut Exchange, users: &Users, token: &[u8]) -> Proof {
    exchange.step(Some(users), token, || Ok("n0nce".to_owned()))
}

/// What comes of a client that answers the challenge so.
fn answered(users: &Users, response: &str) -> Proof {
    let mut exchange = Exchange::default();
    let Proof::Token { token: Some(challenge), who } = step(&mut exchange, users, b"") else {
        panic!("no challenge")
    };
    let challenge = String::from_utf8_lossy(&challenge).into_owned();
    assert!(
        challenge.contains("nonce=\"n0nce\"") && challenge.contains("realm=\"zk-sasl-md5\""),
        "{challenge}"
    );
    assert_eq!(who, []);
    step(&mut exchange, users, response.as_bytes())
}

fn sasl(id: &str) -> Id {
    Id { scheme: ByteString::from_static("sasl"), id: ByteString::from(id) }
}

#[test]
fn who_knows_the_password_is_who_it_says() {
    let Proof::Token { token: Some(token), who } =
        answered(&known(&[]), &response("ann", "secret", "n0nce", "c0nce"))
    else {
        panic!("refused")
    };
    assert!(token.starts_with(b"rspauth="));
    assert_eq!(who, [sasl("ann")]);
}

#[test]
fn everybody_else_is_nobody() {
    let users = known(&[]);
    let good = response("ann", "secret", "n0nce", "c0nce");
    for wrong in [
        response("ann", "guess", "n0nce", "c0nce"),
        response("nobody", "", "n0nce", "c0nce"),
        response("", "", "n0nce", "c0nce"),
        // Heard in another exchange.
        response("ann", "secret", "old", "c0nce"),
        good.replace("nc=00000001", "nc=00000002"),
        good.replace("qop=auth", "qop=auth-int"),
        good.replace("zookeeper/", "imap/"),
        good.replace("charset=utf-8", "charset=latin-1"),
        good.replace("username=\"ann\"", "username=\"root\""),
        format!("{good},authzid=\"root\""),
        format!("{good},nonce=\"n0nce\""),
        good.replace("cnonce=\"c0nce\"", "x=\"c0nce\""),
        "x".repeat(5000),
        String::new(),
        "response".to_owned(),
    ] {
        assert_eq!(answered(&users, &wrong), Proof::Failed, "{wrong}");
    }
}

#[test]
fn an_exchange_is_good_for_once() {
    let users = known(&[]);
    let good = response("ann", "secret", "n0nce", "c0nce");
    let mut exchange = Exchange::default();
    assert_eq!(step(&mut exchange, &users, good.as_bytes()), Proof::Failed, "before the challenge");
    assert_eq!(step(&mut exchange, &users, b""), Proof::Failed, "behind a failure");
    let mut exchange = Exchange::default();
    step(&mut exchange, &users, b"");
    assert!(matches!(step(&mut exchange, &users, good.as_bytes()), Proof::Token { .. }));
    for token in [good.as_bytes(), b""] {
        assert_eq!(step(&mut exchange, &users, token), Proof::Failed, "behind the end");
    }
    assert_eq!(Exchange::default().step(None, b"", || Ok(String::new())), Proof::Failed, "without users");
}

#[test]
fn the_superuser_is_named_by_a_key() {
    let good = response("root", "toor", "n0nce", "c0nce");
    for key in ["superUser", "superUser.operations"] {
        let Proof::Token { who, .. } = answered(&known(&[(key, "root")]), &good) else { panic!("refused") };
        assert_eq!(who, [sasl("root"), Id::superuser()], "{key}");
    }
    let Proof::Token { who, .. } = answered(&known(&[("superUsers", "root")]), &good) else {
        panic!("refused")
    };
    assert_eq!(who, [sasl("root")]);
}

#[test]
fn a_failure_may_be_tolerated() {
    let users = known(&[(ALLOW_FAILED, "true")]);
    assert_eq!(answered(&users, &response("ann", "guess", "n0nce", "c0nce")), Proof::Tolerated);
}

#[test]
fn what_is_configured_is_there_or_told() {
    assert!(users(&[("authProvider.1", "a.b.Other")]).expect("sound").is_none(), "not asked for");
    assert!(users(&[(JAAS_FILE, "")]).expect("sound").is_none(), "no file");
    for (more, message) in [
        ((JAAS_FILE, "/nonexistent"), "read /nonexistent (java.security.auth.login.config): "),
        ((SECTION, "Srver"), "find the section Srver in "),
        ((SECTION, "Other"), "use com.sun.security.auth.module.Krb5LoginModule in "),
    ] {
        let error = users(&[more]).expect_err(message).to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(!format!("{:?}", known(&[])).contains("secret"), "no password is shown");
}
