//! TLS: whom the client believes, and what it shows.

use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::stream::Stream;

/// How servers are believed, and what is shown to them.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The text is no PEM, or has no private key where one is wanted.
    #[error("failed to read PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// Nobody would be believed.
    #[error("find a certificate to trust: there is none in the PEM")]
    NoCertificate,
    /// A certificate or a key can't be used.
    #[error("failed to use a certificate or its key: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// With settings of rustls.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>) -> Self {
        Self { config, name: None }
    }

    /// Believes servers whose certificates one of these authorities signed. Where an identity is given, a
    /// private key with its certificates, it is shown to servers that ask. Both are PEM.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn from_pem(trust: &[u8], identity: Option<&[u8]>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(trust) {
            roots.add(certificate?)?;
        }
        if roots.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(identity).collect();
                builder.with_client_auth_cert(chain?, PrivateKeyDer::from_pem_slice(identity)?)?
            }
        };
        Ok(Self::new(Arc::new(config)))
    }

    /// Expects this name in the certificate of every server, instead of the host that is dialled.
    #[must_use]
    pub fn with_name(self, name: ServerName<'static>) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Shakes hands with `host:port` over a connection to it.
    pub(crate) async fn seal(&self, stream: TcpStream, server: &str) -> io::Result<Stream> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => {
                let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                ServerName::try_from(host)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?
            }
        };
        let stream = TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await?;
        Ok(Stream::Tls(Box::new(stream)))
    }
}
