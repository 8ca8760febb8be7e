//! Whose certificates are believed.
//!
//! Chains are built and verified by the library, and so is every signature. Two kinds of certificates that
//! Java takes, and that deployments of ZooKeeper have, it does not take, so they are judged here first:
//!
//! - one that stands in the trust store itself, byte by byte: it is trusted, whatever it says of itself (a
//!   self-signed one often says that it is an authority);
//! - one of version 1, which `openssl x509 -req` writes unless it is told otherwise: it has no extensions, so
//!   it can be nothing but a leaf, and must be signed by a trusted authority directly.
//!
//! Everything must be in its time.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{AlgorithmIdentifier, CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::certificate::{Certificate, OutOfTime};

/// Whether the one who dialled must, may or need not show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAuth {
    None,
    Want,
    Need,
}

/// What a trust store says.
#[derive(Debug)]
pub(super) struct Trust {
    trusted: Vec<CertificateDer<'static>>,
    pub(super) roots: Arc<RootCertStore>,
    of_clients: Arc<dyn ClientCertVerifier>,
    subjects: Vec<DistinguishedName>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    /// From certificates that could be read.
    pub(super) fn new(
        trusted: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone())?;
        }
        let subjects = roots.subjects();
        let roots = Arc::new(roots);
        let of_clients =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(provider))
                .build()
                .map_err(|error| Error::General(error.to_string()))?;
        let algorithms = provider.signature_verification_algorithms;
        Ok(Self { trusted, roots, of_clients, subjects, algorithms })
    }

    /// Judges a certificate, and lets the library judge what is neither of the two kinds above.
    pub(super) fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        now: UnixTime,
        by_library: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let read = Certificate::read(leaf).map_err(|_| CertificateError::BadEncoding)?;
        read.is_in_time(now).map_err(|when| match when {
            OutOfTime::NotYet => CertificateError::NotValidYet,
            OutOfTime::Over => CertificateError::Expired,
        })?;
        if self.trusted.iter().any(|trusted| trusted == leaf) {
            return Ok(());
        }
        if read.is_v3() { by_library() } else { self.is_issued(&read) }
    }

    /// A leaf of version 1 under a trusted authority.
    fn is_issued(&self, leaf: &Certificate<'_>) -> Result<(), Error> {
        let mut found = CertificateError::UnknownIssuer;
        for authority in &self.trusted {
            let Ok(authority) = Certificate::read(authority) else { continue };
            if authority.raw_subject() != leaf.raw_issuer() {
                continue;
            }
            if self.signed(leaf, &authority) {
                return Ok(());
            }
            found = CertificateError::BadSignature;
        }
        Err(found.into())
    }

    fn signed(&self, leaf: &Certificate<'_>, authority: &Certificate<'_>) -> bool {
        let leaf = leaf.parsed();
        let key = authority.parsed().public_key();
        let by = leaf.signature_algorithm.algorithm.as_bytes();
        let of = key.algorithm.algorithm.as_bytes();
        self.algorithms
            .all
            .iter()
            .filter(|known| is_named(known.signature_alg_id(), by) && is_named(known.public_key_alg_id(), of))
            .any(|known| {
                let message = leaf.tbs_certificate.as_ref();
                known
                    .verify_signature(&key.subject_public_key.data, message, &leaf.signature_value.data)
                    .is_ok()
            })
    }

    pub(super) fn tls12(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match version_1(leaf)? {
            None => verify_tls12_signature(message, leaf, dss, &self.algorithms),
            Some(key) => self.by_key(message, &key, dss),
        }
    }

    pub(super) fn tls13(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match version_1(leaf)? {
            None => verify_tls13_signature(message, leaf, dss, &self.algorithms),
            Some(key) => {
                rustls::crypto::verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms)
            }
        }
    }

    /// A signature of TLS 1.2 by a key without a certificate that the library reads.
    fn by_key(
        &self,
        message: &[u8],
        key: &SubjectPublicKeyInfoDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let (_, key) =
            SubjectPublicKeyInfo::from_der(key.as_ref()).map_err(|_| CertificateError::BadEncoding)?;
        let of = key.algorithm.algorithm.as_bytes();
        let known = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == dss.scheme);
        let valid = known.into_iter().flat_map(|(_, algorithms)| *algorithms).any(|known| {
            is_named(known.public_key_alg_id(), of)
                && known.verify_signature(&key.subject_public_key.data, message, dss.signature()).is_ok()
        });
        if valid {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }
}

/// The key of a certificate that is of an older version than the library reads.
fn version_1(leaf: &CertificateDer<'_>) -> Result<Option<SubjectPublicKeyInfoDer<'static>>, Error> {
    let read = Certificate::read(leaf).map_err(|_| CertificateError::BadEncoding)?;
    Ok((!read.is_v3()).then(|| SubjectPublicKeyInfoDer::from(read.public_key().to_vec())))
}

/// True for an algorithm whose identifier begins with this number.
fn is_named(identifier: AlgorithmIdentifier, number: &[u8]) -> bool {
    let Ok(length) = u8::try_from(number.len()) else { return false };
    identifier.strip_prefix(&[0x06, length]).is_some_and(|rest| rest.starts_with(number))
}

/// Verifies whoever dialled.
#[derive(Debug)]
pub(super) struct OfClients {
    pub(super) trust: Arc<Trust>,
    pub(super) auth: ClientAuth,
}

impl ClientCertVerifier for OfClients {
    fn offer_client_auth(&self) -> bool {
        self.auth != ClientAuth::None
    }

    fn client_auth_mandatory(&self) -> bool {
        self.auth == ClientAuth::Need
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.trust.subjects
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let by_library = || self.trust.of_clients.verify_client_cert(leaf, chain, now).map(drop);
        self.trust.judge(leaf, now, by_library)?;
        Ok(ClientCertVerified::assertion())
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
