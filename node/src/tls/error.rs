//! Why there is no TLS. Every message says which key or file is meant and what to do, because whoever reads
//! it has a member that does not start.

use std::io;
use std::path::PathBuf;

/// Why key stores and settings make no TLS. Messages fit after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A key that TLS can't do without was not given.
    #[error("find {key}: {why}")]
    Missing {
        /// The key.
        key: String,
        /// What it is for.
        why: &'static str,
    },
    /// A value is not of its key's kind.
    #[error("read {key}={value}: {want} is wanted")]
    Value {
        /// The key.
        key: String,
        /// What it was given.
        value: String,
        /// What it takes.
        want: String,
    },
    /// A file can't be read.
    #[error("read {path} ({key}): {source}", path = .path.display())]
    File {
        /// The key that names it.
        key: String,
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A store is there and does not give what it should.
    #[error("use the store {path} ({key}): {reason}", path = .path.display())]
    Store {
        /// The key that names it.
        key: String,
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: StoreError,
    },
    /// What was read does not go together, as the library says.
    #[error("set up TLS from the keys {prefix}*: {source}")]
    Library {
        /// What all the keys begin with.
        prefix: &'static str,
        /// What it said.
        source: rustls::Error,
    },
}

/// What is wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The password does not open it, or it was changed behind the back of whoever knows the password.
    #[error("the password does not open it: correct the password key or the passwordPath file")]
    WrongPassword,
    /// An encrypted key, and no password.
    #[error("it is encrypted and there is no password: add the password key or passwordPath")]
    NoPassword,
    /// It ends too early, or says lengths that can't be.
    #[error("it is damaged ({0}): restore the file")]
    Damaged(&'static str),
    /// A kind of store that is not read.
    #[error("{0} is not read here: convert it to JKS, PKCS12 or PEM")]
    UnknownKind(&'static str),
    /// Its content is not what its type says.
    #[error("the type says {said} and the file is {found}: correct the type key")]
    OtherKind {
        /// As configured.
        said: &'static str,
        /// As it begins.
        found: &'static str,
    },
    /// No private key with a certificate.
    #[error("it holds no private key with a certificate: this end must show who it is")]
    NoKey,
    /// A private key that can't be used.
    #[error("its private key can't be used ({0}): RSA from 2048 bits, P-256, P-384 or Ed25519 is wanted")]
    UnusableKey(String),
    /// The key is not the certificate's.
    #[error("its private key belongs to another certificate: put the key beside its own certificate")]
    OtherKey,
    /// No certificate to trust.
    #[error("it holds no trusted certificate: import the authority's (keytool -importcert)")]
    NoTrusted,
    /// A certificate can't be read.
    #[error("a certificate in it can't be read ({0}): restore it")]
    BadCertificate(String),
    /// The certificate's time has not come.
    #[error("its certificate {subject} is valid from {from} on: correct the clock, or wait")]
    NotYetValid {
        /// Whose.
        subject: String,
        /// From when.
        from: String,
    },
    /// The certificate's time is over.
    #[error("its certificate {subject} expired at {until}: renew it")]
    Expired {
        /// Whose.
        subject: String,
        /// Until when.
        until: String,
    },
    /// The kind of encryption is not known.
    #[error("its encryption is not known here ({0}): convert it with `openssl pkcs8 -topk8` or keytool")]
    UnknownEncryption(String),
}
