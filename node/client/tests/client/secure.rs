//! SASL and TLS, against what a server does.

use std::sync::Arc;

use bytes::Bytes;
use md5::{Digest, Md5};
use node_client::{ErrorCode, Keeper, KeeperError, KeeperOptions, Sasl, State, Tls, TlsError};
use node_wire::client::{OpCode, SaslPacket};
use node_wire::jute::Reader;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::fake::{Fake, PATIENCE, Side, connected, data, in_time, state};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the server answers to a response of `ann` with the password `secret`; none where it is not hers.
fn judged(response: &str) -> Option<String> {
    let value = |key: &str| {
        let rest = response.split(&format!("{key}=")).nth(1)?;
        Some(rest.trim_start_matches('"').split(['"', ',']).next()?.to_owned())
    };
    let (realm, nonce, cnonce) = (value("realm")?, value("nonce")?, value("cnonce")?);
    let mut a1 = Md5::digest(format!("ann:{realm}:secret")).to_vec();
    a1.extend(format!(":{nonce}:{cnonce}").bytes());
    let a1 = hex(&Md5::digest(&a1));
    let digest = |method: &str| {
        let a2 = hex(&Md5::digest(format!("{method}:zookeeper/zk-sasl-md5")));
        hex(&Md5::digest(format!("{a1}:{nonce}:00000001:{cnonce}:auth:{a2}")))
    };
    let is_hers = value("username")? == "ann" && value("response")? == digest("AUTHENTICATE");
    is_hers.then(|| format!("rspauth={}", digest("")))
}

async fn challenge(side: &mut Side) {
    let request = side.asked(OpCode::Sasl).await;
    let token = "realm=\"zk-sasl-md5\",nonce=\"n0nce\",charset=utf-8,algorithm=md5-sess";
    let packet = SaslPacket { token: Some(token.into()) };
    side.answer(request.xid, 0, 0, |w| packet.encode(w)).await;
}

async fn response(side: &mut Side) -> (i32, String) {
    let request = side.asked(OpCode::Sasl).await;
    let packet = SaslPacket::decode(&mut Reader::new(request.body)).expect("a token");
    let token = packet.token.expect("a token");
    (request.xid, String::from_utf8(token.to_vec()).expect("text"))
}

fn with(password: &str) -> KeeperOptions {
    let sasl = Some(Sasl::digest_md5("ann", password));
    KeeperOptions { sasl, patience: Some(PATIENCE), ..KeeperOptions::default() }
}

#[tokio::test]
async fn a_user_is_proven_on_every_connection_before_anything_is_asked() {
    let fake = Fake::bind().await;
    let keeper = Keeper::start(fake.addr, with("secret")).expect("a list");
    for _ in 0..2 {
        let mut side = fake.serve().await;
        challenge(&mut side).await;
        let (xid, response) = response(&mut side).await;
        let answer = judged(&response).expect("it is she");
        side.answer(xid, 0, 0, |w| SaslPacket { token: Some(answer.into()) }.encode(w)).await;
        let server = async {
            let request = side.asked(OpCode::GetData).await;
            assert!(request.xid > xid, "no number is used twice");
            side.answer(request.xid, 1, 0, |w| data("a").encode(w)).await;
        };
        let (read, ()) = tokio::join!(keeper.get_data("/a"), server);
        read.expect("answered");
        drop(side);
        state(&keeper, |state| matches!(state, State::Suspended { .. })).await;
    }
}

#[tokio::test]
async fn neither_a_wrong_password_nor_a_server_that_does_not_know_it_makes_a_session() {
    let fake = Fake::bind().await;
    let server = async {
        let mut side = fake.serve().await;
        challenge(&mut side).await;
        let (xid, response) = response(&mut side).await;
        assert_eq!(judged(&response), None);
        let token = Some(Bytes::new());
        side.answer(xid, 0, ErrorCode::AuthFailed.code(), |w| SaslPacket { token }.encode(w)).await;
        side.ended().await;
    };
    let (refused, ()) = tokio::join!(Keeper::connect(fake.addr, with("guess")), server);
    assert!(matches!(refused, Err(KeeperError::AuthFailed)), "{refused:?}");

    let server = async {
        let mut side = fake.serve().await;
        challenge(&mut side).await;
        let (xid, _) = response(&mut side).await;
        let token = Some(Bytes::from_static(b"rspauth=0"));
        side.answer(xid, 0, 0, |w| SaslPacket { token }.encode(w)).await;
        side.ended().await;
    };
    let (refused, ()) = tokio::join!(Keeper::connect(fake.addr, with("secret")), server);
    assert!(matches!(refused, Err(KeeperError::AuthFailed)), "{refused:?}");
}

/// An authority's certificate, and certificates with keys that it signed, all in PEM.
struct Pki {
    authority: String,
    server: rcgen::CertifiedKey<rcgen::KeyPair>,
    client: String,
}

fn pki() -> Pki {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("signed").pem();
    let issuer = rcgen::Issuer::new(params, key);
    let signed = |name: &str| {
        let signing_key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let cert = params.signed_by(&signing_key, &issuer).expect("signed");
        rcgen::CertifiedKey { cert, signing_key }
    };
    let client = signed("ann");
    let client = client.cert.pem() + &client.signing_key.serialize_pem();
    Pki { authority, server: signed("localhost"), client }
}

/// Takes TLS off the connections to a port, and hands them on to a server without.
async fn sealed(fake: &Fake, pki: &Pki) -> u16 {
    let mut roots = RootCertStore::empty();
    for certificate in rustls_pem(&pki.authority) {
        roots.add(certificate).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivateKeyDer::try_from(pki.server.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(vec![pki.server.cert.der().clone()], key)
        .expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let behind = fake.addr;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let Ok(mut sealed) = acceptor.accept(stream).await else { continue };
            tokio::spawn(async move {
                let mut plain = TcpStream::connect(behind).await.expect("connected");
                // It ends when either side does.
                let _ = tokio::io::copy_bidirectional(&mut sealed, &mut plain).await;
            });
        }
    });
    port
}

fn rustls_pem(text: &str) -> Vec<rustls::pki_types::CertificateDer<'static>> {
    use rustls::pki_types::pem::PemObject;
    rustls::pki_types::CertificateDer::pem_slice_iter(text.as_bytes())
        .map(|read| read.expect("PEM"))
        .collect()
}

#[tokio::test]
async fn what_goes_through_tls_is_what_was_sent_however_much_it_is() {
    let (fake, pki) = (Fake::bind().await, pki());
    let port = sealed(&fake, &pki).await;
    let tls = Tls::from_pem(pki.authority.as_bytes(), Some(pki.client.as_bytes())).expect("settings");
    let options = KeeperOptions { tls: Some(tls), ..KeeperOptions::default() };
    let keeper = Keeper::start(format!("localhost:{port}"), options).expect("a list");
    let mut side = fake.serve().await;
    connected(&keeper).await;
    for size in [0, 1, 16_384, 1_000_000] {
        let big = Bytes::from(vec![7; size]);
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let (keeper, big) = (keeper.clone(), big.clone());
                tokio::spawn(async move { keeper.set_data("/big", big, -1).await })
            })
            .collect();
        for _ in &calls {
            let request = side.asked(OpCode::SetData).await;
            assert_eq!(request.body.len(), 4 + "/big".len() + 4 + size + 4);
            side.answer(request.xid, 1, 0, |w| node_client::Stat::default().encode(w)).await;
        }
        for call in calls {
            in_time(call).await.expect("no panic").expect("answered");
        }
    }
}

#[tokio::test]
async fn a_server_of_another_authority_or_name_is_not_believed() {
    let (fake, pki_of_server) = (Fake::bind().await, pki());
    let port = sealed(&fake, &pki_of_server).await;
    let own = pki_of_server.authority.as_bytes();
    for (trust, host) in [(pki().authority.as_bytes(), "localhost"), (own, "127.0.0.1")] {
        let tls = Some(Tls::from_pem(trust, Some(pki_of_server.client.as_bytes())).expect("settings"));
        let patience = Some(std::time::Duration::from_millis(300));
        let options = KeeperOptions { tls, patience, ..KeeperOptions::default() };
        let refused = Keeper::connect(format!("{host}:{port}"), options).await.expect_err("not believed");
        assert!(refused.to_string().contains("certificate"), "{refused}");
    }
    let tls = Tls::from_pem(own, Some(pki_of_server.client.as_bytes())).expect("settings");
    let tls = Some(tls.with_name("localhost".try_into().expect("a name")));
    let options = KeeperOptions { tls, ..KeeperOptions::default() };
    let keeper = Keeper::start(format!("127.0.0.1:{port}"), options).expect("a list");
    let _side = fake.serve().await;
    connected(&keeper).await;
}

#[test]
fn settings_that_cannot_become_tls_are_refused() {
    let pki = pki();
    let authority = pki.authority.as_bytes();
    assert!(matches!(Tls::from_pem(b"", None), Err(TlsError::NoCertificate)));
    assert!(matches!(Tls::from_pem(authority, Some(authority)), Err(TlsError::Pem(_))), "no key");
    Tls::from_pem(authority, None).expect("nothing to show");
}
