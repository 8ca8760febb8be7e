//! TLS on the ports for clients and for members, from the keys and the key stores of ZooKeeper.
//!
//! | module | knows |
//! |---|---|
//! | `settings` | what the keys say |
//! | `store` | key stores: JKS, PKCS#12, PEM |
//! | `certificate`, `subject` | what a certificate says |
//! | `hosts` | whether a certificate is made out to a host |
//! | `verifier` | whose certificate is believed |
//! | `peers` | the two ends of connections between members |
//! | `handshaker` | handshakes, on a thread of their own |
//! | `channel` | an established connection: bytes in, bytes out |
//! | `stream` | the same as a stream, for votes |
//!
//! All stores are read and all contradictions found before anything is started: what is here, is possible.
//! The protocol and the cryptography are the library's (rustls, with ring, so that the executable stays
//! static).
//!
//! A certificate is an identity: the subject of a client's becomes its identity of the scheme `x509`, and of
//! a member's the names are compared with the ensemble's hosts.
//!
//! Sessions are not resumed: a client comes rarely, and what it may do must be shown each time.

mod certificate;
pub(crate) mod channel;
mod error;
pub(crate) mod handshaker;
mod hosts;
pub(crate) mod peers;
mod settings;
mod store;
mod subject;
mod verifier;

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use node_wire::client::Id;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::{CommonState, ServerConfig};

pub use error::{StoreError, TlsError};
pub use peers::PeerTls;
pub(crate) use settings::Properties;
use settings::Settings;
pub use store::java_key_store;
use verifier::{ClientAuth, OfClients, Trust};

/// How a record of TLS that opens a connection begins. No length of a request and no word does.
pub(crate) const HANDSHAKE: u8 = 0x16;

/// What the keys for clients begin with.
const CLIENTS: &str = "ssl.";

/// Whose certificate makes a client the superuser.
const SUPER_USER: &str = "X509AuthenticationProvider.superUser";

/// Handshakes of clients that may be under way; -1 for any number.
const HANDSHAKE_LIMIT: &str = "netty.server.outstandingHandshake.limit";

/// The keys that are read here, each of the first behind `ssl.` and behind `ssl.quorum.`.
#[cfg(test)]
pub(crate) const KEYS: (&[&str], &[&str]) = (
    &[
        "ciphersuites",
        "clientAuth",
        "enabledProtocols",
        "handshakeDetectionTimeoutMillis",
        "hostnameVerification",
        "keyStore.location",
        "keyStore.password",
        "keyStore.passwordPath",
        "keyStore.type",
        "protocol",
        "trustStore.location",
        "trustStore.password",
        "trustStore.passwordPath",
        "trustStore.type",
    ],
    &[SUPER_USER, HANDSHAKE_LIMIT],
);

/// How connections on a port begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Without TLS.
    Plain,
    /// As the other end likes.
    Either,
    /// With TLS and in no other way.
    Secure,
}

/// TLS for clients.
#[derive(Debug)]
pub struct ClientTls {
    server: Arc<ServerConfig>,
    /// How long a handshake may take.
    pub(crate) patience: Duration,
    /// Handshakes that may be under way.
    pub(crate) handshakes: usize,
    super_user: Option<String>,
}

impl ClientTls {
    /// From the keys `ssl.*`.
    ///
    /// # Errors
    /// When a store can't be used, or a value is not of its kind.
    pub(crate) fn new(said: &Properties) -> Result<Self, TlsError> {
        let settings = Settings::new(said, CLIENTS);
        let limit = match said.get(HANDSHAKE_LIMIT) {
            None => -1,
            Some(value) => value.parse().map_err(|_| TlsError::Value {
                key: HANDSHAKE_LIMIT.to_owned(),
                value: value.clone(),
                want: "a number of handshakes, -1 for any".to_owned(),
            })?,
        };
        Ok(Self {
            server: server(&settings)?,
            patience: settings.patience()?,
            handshakes: usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX),
            super_user: said.get(SUPER_USER).filter(|user| !user.is_empty()).cloned(),
        })
    }

    /// What the listening end is told.
    pub(crate) fn server(&self) -> &Arc<ServerConfig> {
        &self.server
    }

    /// Who is at the other end, by its certificate; nobody without one.
    pub(crate) fn identities(&self, connection: &CommonState) -> Vec<Id> {
        let leaf = connection.peer_certificates().and_then(|chain| chain.first());
        let Some(leaf) = leaf.and_then(|leaf| certificate::Certificate::read(leaf).ok()) else {
            return Vec::new();
        };
        let subject = leaf.subject();
        let is_super = self.super_user.as_ref() == Some(&subject);
        let id = Id { scheme: ByteString::from_static("x509"), id: ByteString::from(subject) };
        if is_super { vec![id, Id::superuser()] } else { vec![id] }
    }
}

/// The listening end.
fn server(settings: &Settings<'_>) -> Result<Arc<ServerConfig>, TlsError> {
    let failed = |source| TlsError::Library { prefix: settings.prefix, source };
    let provider = settings.provider()?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&settings.versions()?)
        .map_err(failed)?;
    let key = settings.key_store()?.identity()?;
    let builder = match settings.client_auth()? {
        ClientAuth::None => builder.with_no_client_auth(),
        auth => {
            let trust = Arc::new(Trust::new(settings.trust_store()?.trusted()?, &provider).map_err(failed)?);
            builder.with_client_cert_verifier(Arc::new(OfClients { trust, auth }))
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
