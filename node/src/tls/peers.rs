//! TLS between members, on the ports for votes and for learners.
//!
//! Both ends show a certificate that the trust store must vouch for, and both compare its names with who the
//! other is meant to be: whoever dialled, with the host that it dialled; whoever was dialled, with the
//! address of the other end and the hosts of the ensemble. (ZooKeeper asks the name service backwards for the
//! latter; here the names stand in the configuration.)
//!
//! An ensemble changes over without standing still: first every member takes both kinds of connections
//! (`portUnification`), then each dials with TLS (`sslQuorum`), then none takes the plain kind any more.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, CommonState, DigitallySignedStruct, Error, ServerConfig, SignatureScheme};
use tokio::net::TcpStream;

use super::certificate::Certificate;
use super::channel::Channel;
use super::handshaker::{Handshaker, Side};
use super::hosts::is_for;
use super::settings::{Properties, Settings};
use super::verifier::Trust;
use super::{Guard, HANDSHAKE, TlsError, server};

/// What the keys for members begin with.
const MEMBERS: &str = "ssl.quorum.";

/// How long a handshake may take at most that this member began: there is something else to be tried.
const DIAL: Duration = Duration::from_secs(1);

/// A socket, and the connection on it where it has TLS.
pub(crate) type Link = (TcpStream, Option<Channel>);

/// What both ends of connections between members are told. Read anew when files change, if that is asked for.
#[derive(Clone, Debug)]
struct Contexts {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Contexts {
    fn new(said: &Properties) -> Result<Self, TlsError> {
        let settings = Settings::new(said, MEMBERS);
        let failed = |source| TlsError::Library { prefix: MEMBERS, source };
        let provider = settings.provider()?;
        let trust = Arc::new(Trust::new(settings.trust_store()?.trusted()?, &provider).map_err(failed)?);
        let key = settings.key_store()?.identity()?;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&settings.versions()?)
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OfServers { trust }))
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        client.resumption = rustls::client::Resumption::disabled();
        client.enable_sni = false;
        Ok(Self { server: server(&settings)?, client: Arc::new(client) })
    }
}

/// TLS between members.
#[derive(Debug)]
pub struct PeerTls {
    contexts: Mutex<Contexts>,
    /// Whether this member dials with TLS.
    dials: bool,
    /// What it takes from those that dial.
    guard: Guard,
    patience: Duration,
    verifies_names: bool,
    /// The files that are looked at again, if any are.
    watched: Vec<PathBuf>,
}

impl PeerTls {
    /// From the keys `ssl.quorum.*`, and what `sslQuorum`, `portUnification` and `sslQuorumReloadCertFiles`
    /// say. None where members speak without TLS and take nothing else.
    ///
    /// # Errors
    /// When a store can't be used, or a value is not of its kind.
    pub(crate) fn new(
        said: &Properties,
        dials: bool,
        unified: bool,
        reloads: bool,
    ) -> Result<Option<Self>, TlsError> {
        let guard = match (dials, unified) {
            (false, false) => return Ok(None),
            (_, true) => Guard::Either,
            (true, false) => Guard::Secure,
        };
        let settings = Settings::new(said, MEMBERS);
        let watched =
            if reloads { vec![settings.key_store()?.path, settings.trust_store()?.path] } else { Vec::new() };
        Ok(Some(Self {
            contexts: Mutex::new(Contexts::new(said)?),
            dials,
            guard,
            patience: settings.patience()?,
            verifies_names: settings.verifies_names()?,
            watched,
        }))
    }

    fn contexts(&self) -> MutexGuard<'_, Contexts> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When each watched file was last written. Empty where none is watched.
    pub(crate) fn written(&self) -> Vec<Option<SystemTime>> {
        let written = |path: &PathBuf| std::fs::metadata(path).and_then(|file| file.modified()).ok();
        self.watched.iter().map(written).collect()
    }

    /// Reads the stores again. Connections that stand are left alone; when something can't be read,
    /// everything stays as it was.
    ///
    /// # Errors
    /// As for [`PeerTls::new`].
    pub(crate) fn reload(&self, said: &Properties) -> Result<(), TlsError> {
        let contexts = Contexts::new(said)?;
        *self.contexts() = contexts;
        Ok(())
    }

    /// Makes a connection that this member dialled what it should be. `host` is who the other end must be.
    pub(crate) async fn dialled(
        &self,
        handshaker: &Handshaker,
        stream: TcpStream,
        host: &str,
    ) -> io::Result<Link> {
        if !self.dials {
            return Ok((stream, None));
        }
        let peer = stream.peer_addr()?.ip().to_canonical();
        let name = ServerName::try_from(host.to_owned()).unwrap_or_else(|_| ServerName::from(peer));
        let side = Side::Dials(Arc::clone(&self.contexts().client), name);
        let (stream, connection) = handshaker.welcome(stream, side, self.patience.min(DIAL)).await?;
        self.check(&connection, peer, std::iter::once(host))?;
        Ok((stream, Some(Channel::new(connection))))
    }

    /// Makes a connection that somebody dialled what it should be. `hosts` are those of the ensemble.
    pub(crate) async fn accepted(
        &self,
        handshaker: &Handshaker,
        stream: TcpStream,
        hosts: &[String],
    ) -> io::Result<Link> {
        if self.guard == Guard::Either {
            let mut first = [0];
            let peeked = tokio::time::timeout(self.patience, stream.peek(&mut first)).await;
            peeked.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            if first != [HANDSHAKE] {
                return Ok((stream, None));
            }
        }
        let peer = stream.peer_addr()?.ip().to_canonical();
        let side = Side::Accepts(Arc::clone(&self.contexts().server));
        let (stream, connection) = handshaker.welcome(stream, side, self.patience).await?;
        self.check(&connection, peer, hosts.iter().map(String::as_str))?;
        Ok((stream, Some(Channel::new(connection))))
    }

    /// Compares the names of the other end's certificate. One that need not show any may be anybody.
    fn check<'a>(
        &self,
        connection: &CommonState,
        peer: IpAddr,
        mut hosts: impl Iterator<Item = &'a str>,
    ) -> io::Result<()> {
        let leaf = connection.peer_certificates().and_then(|chain| chain.first());
        let Some(leaf) = leaf.filter(|_| self.verifies_names) else { return Ok(()) };
        let other = |reason: String| io::Error::new(io::ErrorKind::PermissionDenied, reason);
        let leaf = Certificate::read(leaf).map_err(other)?;
        if is_for(&leaf, &peer.to_canonical().to_string()) || hosts.any(|host| is_for(&leaf, host)) {
            return Ok(());
        }
        Err(other(format!(
            "the certificate {} names neither {peer} nor a host that is meant \
                (ssl.quorum.hostnameVerification)",
            leaf.subject()
        )))
    }
}

/// Verifies whoever was dialled. That it is the one who was meant is compared afterwards: the library knows
/// one name at a time and no common names.
#[derive(Debug)]
struct OfServers {
    trust: Arc<Trust>,
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let by_library = || {
            let parsed = ParsedCertificate::try_from(leaf)?;
            let algorithms = self.trust.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.trust.roots, chain, now, algorithms)
        };
        self.trust.judge(leaf, now, by_library)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.tls12(message, leaf, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust.tls13(message, leaf, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.algorithms.supported_schemes()
    }
}
