//! Key stores: the files in which configurations of ZooKeeper name keys and trusted certificates.
//!
//! Three kinds are read: Java's own JKS, PKCS#12, and PEM. What a file is, is told by how it begins and not
//! by its name: for years keytool has written PKCS#12 into files that are called `.jks`, and Java reads
//! either under either name. A type that was configured must only not contradict it.

mod jks;
mod pem;
mod pkcs12;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::error::{StoreError, TlsError};

/// No store of ours or of anybody's is larger. A file that is, was named by mistake.
const MAX_STORE: u64 = 16 << 20;

/// What one file holds.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Private keys in PKCS#8, PKCS#1 or SEC1, each with its chain, the key's own certificate first.
    pub(super) keys: Vec<(PrivateKeyDer<'static>, Vec<CertificateDer<'static>>)>,
    /// Certificates to trust.
    pub(super) trusted: Vec<CertificateDer<'static>>,
}

/// A store as it is configured.
pub(super) struct Store {
    /// The key that names it.
    pub(super) key: String,
    pub(super) path: PathBuf,
    pub(super) password: Option<String>,
    pub(super) kind: Option<Kind>,
}

/// What a file can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Jks,
    Pkcs12,
    Pem,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Jks => "JKS",
            Self::Pkcs12 => "PKCS12",
            Self::Pem => "PEM",
        }
    }

    /// As the type keys spell it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "JKS" => Some(Self::Jks),
            "PKCS12" => Some(Self::Pkcs12),
            "PEM" => Some(Self::Pem),
            _ => None,
        }
    }

    fn of(bytes: &[u8]) -> Result<Self, StoreError> {
        if bytes.starts_with(&jks::MAGIC) {
            return Ok(Self::Jks);
        }
        if bytes.starts_with(&jks::JCEKS_MAGIC) {
            return Err(StoreError::UnknownKind("a JCEKS store"));
        }
        // A sequence, which is what every file of PKCS#12 is. So is BCFKS, which is told apart when it is
        // decoded.
        if bytes.first() == Some(&0x30) {
            return Ok(Self::Pkcs12);
        }
        if bytes.windows(pem::BEGIN.len()).any(|window| window == pem::BEGIN) {
            return Ok(Self::Pem);
        }
        Err(StoreError::UnknownKind("a file that is neither of them"))
    }
}

impl Store {
    fn failed(&self, reason: StoreError) -> TlsError {
        TlsError::Store { key: self.key.clone(), path: self.path.clone(), reason }
    }

    fn open(&self) -> Result<Contents, TlsError> {
        let bytes = read(&self.path).map_err(|source| TlsError::File {
            key: self.key.clone(),
            path: self.path.clone(),
            source,
        })?;
        self.decode(&bytes).map_err(|reason| self.failed(reason))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Contents, StoreError> {
        let found = Kind::of(bytes)?;
        // Java takes JKS and PKCS#12 under each other's names, and files are named so.
        if let Some(said) = self.kind
            && (said == Kind::Pem) != (found == Kind::Pem)
        {
            return Err(StoreError::OtherKind { said: said.name(), found: found.name() });
        }
        let password = self.password.as_deref();
        match found {
            Kind::Jks => jks::decode(bytes, password),
            Kind::Pkcs12 => pkcs12::decode(bytes, password),
            Kind::Pem => pem::decode(bytes, password),
        }
    }

    /// The first key of the store with its certificates, sound and in its time.
    pub(super) fn identity(&self) -> Result<CertifiedKey, TlsError> {
        let contents = self.open()?;
        certified(contents).map_err(|reason| self.failed(reason))
    }

    /// The certificates that are trusted, at least one.
    pub(super) fn trusted(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let trusted = self.open()?.trusted;
        let checked = trusted.iter().try_for_each(|certificate| Certificate::read(certificate).map(drop));
        let bad = |reason: String| self.failed(StoreError::BadCertificate(reason));
        checked.map_err(bad)?;
        if trusted.is_empty() { Err(self.failed(StoreError::NoTrusted)) } else { Ok(trusted) }
    }
}

/// How many keys and trusted certificates a key store of Java's own kind (JKS) holds.
///
/// # Errors
/// When it is damaged, or protected by another password.
pub fn java_key_store(bytes: &[u8], password: Option<&str>) -> Result<(usize, usize), StoreError> {
    let contents = jks::decode(bytes, password)?;
    Ok((contents.keys.len(), contents.trusted.len()))
}

fn certified(contents: Contents) -> Result<CertifiedKey, StoreError> {
    let usable = contents.keys.into_iter().find(|(_, chain)| !chain.is_empty());
    let (key, chain) = usable.ok_or(StoreError::NoKey)?;
    let own = chain.first().ok_or(StoreError::NoKey)?;
    let read = Certificate::read(own).map_err(StoreError::BadCertificate)?;
    let now = rustls::pki_types::UnixTime::now();
    read.is_in_time(now).map_err(|when| when.into_store_error(&read))?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key)
        .map_err(|error| StoreError::UnusableKey(error.to_string()))?;
    let of_certificate = SubjectPublicKeyInfoDer::from(read.public_key().to_vec());
    if key.public_key().is_some_and(|of_key| of_key != of_certificate) {
        return Err(StoreError::OtherKey);
    }
    Ok(CertifiedKey::new(chain.clone(), key))
}

/// The whole file, unless it is no store by its size alone.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_STORE + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_STORE {
        return Err(std::io::Error::other("it is too large to be a store of keys"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
