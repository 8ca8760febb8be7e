//! A client that talks over anything that carries bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use bytes::Bytes;
use node_wire::client::{ConnectRequest, ConnectResponse, OpCode, ReplyHeader, WhoAmIResponse};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{Reader, Writer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::PATIENCE;
use crate::frames::Frames;
use crate::member::fixture;

/// A connection with TLS.
pub(crate) type Sealed = StreamOwned<ClientConnection, TcpStream>;

/// What carries bytes both ways.
pub(crate) trait Carrier: Read + Write {}

impl<T: Read + Write> Carrier for T {}

pub(crate) fn plain(addr: SocketAddr) -> TcpStream {
    dial(addr).expect("connected")
}

/// The same where perhaps nobody listens.
pub(crate) fn dial(addr: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect(addr).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    Some(stream)
}

/// What a client trusts and shows. `show` is a PEM file with a key and its certificate.
pub(crate) fn trusting(show: Option<&str>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(fixture("trust.pem")).expect("a certificate");
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let Some(file) = show else { return Arc::new(builder.with_no_client_auth()) };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(fixture(file)).expect("a file").collect();
    let key = PrivateKeyDer::from_pem_file(fixture(file)).expect("a key");
    let key = provider.key_provider.load_private_key(key).expect("a usable key");
    // Shown as it is: whether it fits is the member's to judge.
    let shown = rustls::sign::CertifiedKey::new(chain.expect("certificates"), key);
    Arc::new(builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(shown))))
}

/// A connection whose handshake is still to be done, with the first bytes.
pub(crate) fn sealed(addr: SocketAddr, config: Arc<ClientConfig>) -> Sealed {
    let name = "localhost".try_into().expect("a name");
    StreamOwned::new(ClientConnection::new(config, name).expect("possible"), plain(addr))
}

/// Everything that is answered to these bytes, or why nothing is.
pub(crate) fn said(mut carrier: impl Carrier, bytes: &[u8]) -> Result<String, std::io::Error> {
    carrier.write_all(bytes)?;
    carrier.flush()?;
    let mut text = Vec::new();
    carrier.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A session.
pub(crate) struct Talk<C> {
    frames: Frames<C>,
    xid: i32,
}

impl<C: Carrier> Talk<C> {
    /// A new session over a connection. `None` when it ends instead.
    pub(crate) fn new(carrier: C) -> Option<Self> {
        let mut talk = Self { frames: Frames::new(carrier), xid: 0 };
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: Zxid::ZERO,
            timeout_ms: 30_000,
            session: SessionId::NONE,
            password: Bytes::from_static(&[0; 16]),
            read_only: None,
        };
        talk.frames.send(|w| request.encode(w))?;
        let response = ConnectResponse::decode(&mut Reader::new(talk.frames.next()?)).ok()?;
        assert!(response.timeout_ms > 0, "a session");
        Some(talk)
    }

    /// Asks without waiting for the answer.
    pub(crate) fn post(&mut self, op: OpCode, body: impl FnOnce(&mut Writer<'_>)) -> Option<i32> {
        self.xid += 1;
        self.frames.request(self.xid, op, body)?;
        Some(self.xid)
    }

    /// The next answer: its error and the rest of it. `None` when the connection is lost.
    pub(crate) fn answer(&mut self, xid: i32) -> Option<(i32, Reader)> {
        let mut r = Reader::new(self.frames.next()?);
        let header = ReplyHeader::decode(&mut r).expect("a header");
        assert_eq!(header.xid, xid, "replies come in order");
        Some((header.err, r))
    }

    pub(crate) fn ask(&mut self, op: OpCode, body: impl FnOnce(&mut Writer<'_>)) -> Option<(i32, Reader)> {
        let xid = self.post(op, body)?;
        self.answer(xid)
    }

    /// The identities of this connection, scheme and name.
    pub(crate) fn who_am_i(&mut self) -> Vec<(String, String)> {
        let (error, mut body) = self.ask(OpCode::WhoAmI, |_| {}).expect("an answer");
        assert_eq!(error, 0);
        let known = WhoAmIResponse::decode(&mut body).expect("identities").clients;
        known.into_iter().map(|info| (info.scheme.to_string(), info.user.to_string())).collect()
    }
}
