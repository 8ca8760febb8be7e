//! What the keys of TLS say, once for clients (`ssl.`) and once for members (`ssl.quorum.`).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};

use super::error::TlsError;
use super::store::{Kind, Store};
use super::verifier::ClientAuth;

/// How long a handshake may take, as in ZooKeeper.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(5);

/// The longest that may be asked for: a slot must come free again.
const MAX_PATIENCE: Duration = Duration::from_secs(600);

/// Every key by its canonical name, with its value.
pub(crate) type Properties = BTreeMap<String, String>;

/// The keys of one kind of port.
pub(super) struct Settings<'a> {
    said: &'a Properties,
    pub(super) prefix: &'static str,
}

impl<'a> Settings<'a> {
    pub(super) fn new(said: &'a Properties, prefix: &'static str) -> Self {
        Self { said, prefix }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.said.get(&self.key(name)).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn wrong(&self, name: &str, value: &str, want: impl Into<String>) -> TlsError {
        TlsError::Value { key: self.key(name), value: value.to_owned(), want: want.into() }
    }

    /// The store with this end's key.
    pub(super) fn key_store(&self) -> Result<Store, TlsError> {
        self.store("keyStore", "this member must show its own certificate, add the key")
    }

    /// The store with the certificates that are trusted.
    pub(super) fn trust_store(&self) -> Result<Store, TlsError> {
        self.store("trustStore", "it says whose certificates are believed, add the key")
    }

    fn store(&self, name: &str, why: &'static str) -> Result<Store, TlsError> {
        let key = format!("{name}.location");
        let path = self.get(&key).ok_or_else(|| TlsError::Missing { key: self.key(&key), why })?;
        let kind = match self.get(&format!("{name}.type")) {
            None => None,
            Some(text) => Some(Kind::parse(text).ok_or_else(|| {
                self.wrong(&format!("{name}.type"), text, "JKS, PKCS12 or PEM (BCFKS is not read here)")
            })?),
        };
        let password = self.password(name)?;
        Ok(Store { key: self.key(&key), path: PathBuf::from(path), password, kind })
    }

    /// From a file where one is named, as ZooKeeper has it; without the end of its line.
    fn password(&self, store: &str) -> Result<Option<String>, TlsError> {
        let name = format!("{store}.passwordPath");
        let Some(path) = self.get(&name) else {
            return Ok(self.get(&format!("{store}.password")).map(str::to_owned));
        };
        let text = fs::read_to_string(path).map_err(|source| TlsError::File {
            key: self.key(&name),
            path: PathBuf::from(path),
            source,
        })?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }

    pub(super) fn client_auth(&self) -> Result<ClientAuth, TlsError> {
        match self.get("clientAuth").map(str::to_ascii_lowercase).as_deref() {
            None | Some("need") => Ok(ClientAuth::Need),
            Some("want") => Ok(ClientAuth::Want),
            Some("none") => Ok(ClientAuth::None),
            Some(value) => Err(self.wrong("clientAuth", value, "need, want or none")),
        }
    }

    pub(super) fn verifies_names(&self) -> Result<bool, TlsError> {
        match self.get("hostnameVerification").map(str::to_ascii_lowercase).as_deref() {
            None | Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(value) => Err(self.wrong("hostnameVerification", value, "true or false")),
        }
    }

    pub(super) fn patience(&self) -> Result<Duration, TlsError> {
        let name = "handshakeDetectionTimeoutMillis";
        let Some(value) = self.get(name) else { return Ok(DEFAULT_PATIENCE) };
        let patience = value.parse().ok().map(Duration::from_millis);
        let bounded = patience.filter(|patience| !patience.is_zero() && *patience <= MAX_PATIENCE);
        bounded.ok_or_else(|| self.wrong(name, value, "a number of milliseconds up to 600000"))
    }

    /// The versions of the protocol. Older ones than 1.2 are not there, whoever asks for them.
    pub(super) fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        let both = vec![&TLS13, &TLS12];
        let known = |text: &str| match text.to_ascii_lowercase().as_str() {
            "tlsv1.2" => Some(&TLS12),
            "tlsv1.3" => Some(&TLS13),
            _ => None,
        };
        if let Some(list) = self.get("enabledProtocols") {
            let versions: Vec<_> = list.split(',').filter_map(|text| known(text.trim())).collect();
            return if versions.is_empty() {
                Err(self.wrong("enabledProtocols", list, "a list with TLSv1.2 or TLSv1.3 in it"))
            } else {
                Ok(versions)
            };
        }
        match self.get("protocol") {
            None => Ok(both),
            Some(text) if text.eq_ignore_ascii_case("TLS") => Ok(both),
            Some(text) => known(text)
                .map(|version| vec![version])
                .ok_or_else(|| self.wrong("protocol", text, "TLSv1.2, TLSv1.3 or TLS")),
        }
    }

    /// The cryptography, with the suites that are wanted in the order in which they are.
    pub(super) fn provider(&self) -> Result<Arc<CryptoProvider>, TlsError> {
        let mut provider = ring::default_provider();
        let Some(list) = self.get("ciphersuites") else { return Ok(Arc::new(provider)) };
        let wanted = list.split(',').map(str::trim);
        let named = |name: &str| {
            provider.cipher_suites.iter().find(|suite| java_name(suite) == name.to_ascii_uppercase()).copied()
        };
        let suites: Vec<_> = wanted.filter_map(named).collect();
        if suites.is_empty() {
            let all: Vec<String> = provider.cipher_suites.iter().map(java_name).collect();
            return Err(self.wrong(
                "ciphersuites",
                list,
                format!("a list with one of {} in it", all.join(", ")),
            ));
        }
        provider.cipher_suites = suites;
        Ok(Arc::new(provider))
    }
}

/// Those of TLS 1.3 have another name in the library.
fn java_name(suite: &rustls::SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.strip_prefix("TLS13_").map_or_else(|| name.to_owned(), |rest| format!("TLS_{rest}"))
}
