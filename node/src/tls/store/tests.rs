//! Stores as keytool and openssl make them (see `tests/stores/make`), and what is said of those that can't be
//! used.

use std::path::Path;

use super::*;

fn store(file: &str, password: Option<&str>, kind: Option<Kind>) -> Store {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(file);
    Store { key: "ssl.keyStore.location".to_owned(), path, password: password.map(str::to_owned), kind }
}

fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(store(file, None, None).path).expect("a fixture")
}

const SECRET: Option<&str> = Some("secret");

#[test]
fn a_key_with_its_chain_is_read_from_every_kind_of_store() {
    for (file, kind) in [
        ("member.pem", Some(Kind::Pem)),
        ("member-sec1.pem", None),
        ("member-encrypted.pem", None),
        ("member.jks", Some(Kind::Jks)),
        ("member-java.p12", Some(Kind::Pkcs12)),
        ("member-openssl.p12", None),
        ("member-legacy.p12", None),
        // As keytool names its files since Java 9, and as Java reads them.
        ("member-java.p12", Some(Kind::Jks)),
    ] {
        let identity = store(file, SECRET, kind).identity().expect(file);
        let subjects: Vec<String> =
            identity.cert.iter().map(|der| Certificate::read(der).expect(file).subject()).collect();
        assert_eq!(subjects, ["CN=localhost,OU=members,O=Harness", "CN=authority,O=Harness"], "{file}");
    }
    let subject = |file: &str| {
        let identity = store(file, SECRET, None).identity().expect(file);
        Certificate::read(&identity.cert[0]).expect(file).subject()
    };
    for file in ["ann.jks", "ann.pem"] {
        assert_eq!(subject(file), "CN=ann,O=Harness\\, Inc.,C=DE", "{file}");
    }
    assert_eq!(subject("old.pem"), "CN=localhost,O=Harness");
}

#[test]
fn trusted_certificates_are_read_from_every_kind_of_store() {
    for file in ["trust.pem", "trust.jks", "trust-java.p12", "trust-openssl.p12"] {
        let trusted = store(file, SECRET, None).trusted().expect(file);
        let subjects: Vec<String> =
            trusted.iter().map(|der| Certificate::read(der).expect(file).subject()).collect();
        assert_eq!(subjects, ["CN=authority,O=Harness"], "{file}");
    }
    // Java looks without a password too: only the keys are hidden.
    assert_eq!(store("trust.jks", None, None).trusted().expect("read").len(), 1);
}

#[test]
fn what_cannot_be_used_is_told_with_what_to_do() {
    for (file, password, kind, message) in [
        ("member.jks", Some("guess"), None, "the password does not open it"),
        ("member-java.p12", Some("guess"), None, "the password does not open it"),
        ("member-legacy.p12", Some("guess"), None, "the password does not open it"),
        ("member-encrypted.pem", Some("guess"), None, "the password does not open it"),
        ("member.jks", None, None, "there is no password"),
        ("member-java.p12", None, None, "there is no password"),
        ("member-encrypted.pem", None, None, "there is no password"),
        ("member.jceks", SECRET, None, "a JCEKS store is not read here"),
        ("make", SECRET, None, "is not read here: convert it to JKS, PKCS12 or PEM"),
        ("member.pem", SECRET, Some(Kind::Jks), "the type says JKS and the file is PEM"),
        ("member.jks", SECRET, Some(Kind::Pem), "the type says PEM and the file is JKS"),
        ("trust.pem", SECRET, None, "it holds no private key with a certificate"),
        ("trust.jks", SECRET, None, "it holds no private key with a certificate"),
        ("other-key.pem", SECRET, None, "its private key belongs to another certificate"),
        ("member-traditional.pem", SECRET, None, "openssl pkcs8 -topk8"),
        ("nothing-here.pem", SECRET, None, "No such file"),
    ] {
        let error = store(file, password, kind).identity().expect_err(file).to_string();
        assert!(error.contains(message) && error.contains("ssl.keyStore.location"), "{file}: {error}");
    }
    let error = store("member.jks", SECRET, None).trusted().expect_err("a key alone").to_string();
    assert!(error.contains("it holds no trusted certificate"), "{error}");
}

#[test]
fn a_certificate_counts_in_its_time_alone() {
    for (from, until, message) in [(1990, 2000, "expired at"), (3000, 4000, "is valid from")] {
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("signed").pem() + &key.serialize_pem();
        let contents = pem::decode(pem.as_bytes(), None).expect("sound");
        let error = certified(contents).expect_err("out of time").to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn damaged_stores_are_refused_wherever_they_are_cut_or_changed() {
    for file in ["member.jks", "trust.jks", "member-java.p12", "trust-java.p12", "member-encrypted.pem"] {
        let whole = bytes(file);
        let at = store(file, SECRET, None);
        for cut in (0..whole.len()).step_by(7) {
            // A text may be cut behind its last block, and what it says is then less.
            if !file.ends_with(".pem") {
                assert!(at.decode(&whole[..cut]).is_err(), "{file} cut at {cut}");
            }
            let mut changed = whole.clone();
            changed[cut] ^= 0x55;
            // It may be refused or not; it must not panic, nor believe a length.
            let _ = at.decode(&changed).map(certified);
            let _ = store(file, None, None).decode(&changed).map(certified);
        }
    }
}
