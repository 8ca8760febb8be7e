//! PKCS#12, as Java, OpenSSL and browsers write it. A library decodes and decrypts; here is what belongs
//! together.
//!
//! A key finds its certificate by the identifier that both carry, and the rest of its chain by issuers. Java
//! marks the certificates that it trusts; a file without any key and without marks (OpenSSL's `-nokeys`) can
//! only have been meant as a list of trusted ones.

use p12_keystore::{CertificateBag, Pkcs12Archive};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::Contents;
use crate::tls::error::StoreError;

/// No chain is longer; cycles end here.
const MAX_CHAIN: usize = 16;

pub(super) fn decode(bytes: &[u8], password: Option<&str>) -> Result<Contents, StoreError> {
    let Pkcs12Archive { keys, certs, secrets: _ } =
        Pkcs12Archive::from_pkcs12(bytes, password.unwrap_or_default())
            .map_err(|error| explain(&error, password))?;
    let mut contents = Contents::default();
    let alone = keys.is_empty();
    for key in keys {
        let id = key.local_key_id.as_ref().map(AsRef::as_ref);
        let own = certs.iter().find(|bag| id.is_some() && bag.local_key_id.as_deref() == id);
        let pkcs8 = PrivatePkcs8KeyDer::from(key.key.as_der().to_vec());
        let chain = own.map(|own| chain(own, &certs)).unwrap_or_default();
        contents.keys.push((PrivateKeyDer::Pkcs8(pkcs8), chain));
    }
    let trusted: Vec<&CertificateBag> = certs.iter().filter(|bag| bag.trusted).collect();
    let trusted = if trusted.is_empty() && alone { certs.iter().collect() } else { trusted };
    contents.trusted = trusted.into_iter().map(der).collect();
    Ok(contents)
}

fn chain(own: &CertificateBag, all: &[CertificateBag]) -> Vec<CertificateDer<'static>> {
    let mut chain = vec![own];
    while let Some(last) = chain.last().copied()
        && last.cert.subject() != last.cert.issuer()
        && chain.len() < MAX_CHAIN
        && let Some(issuer) = all.iter().find(|bag| bag.cert.subject() == last.cert.issuer())
    {
        chain.push(issuer);
    }
    chain.into_iter().map(der).collect()
}

fn der(bag: &CertificateBag) -> CertificateDer<'static> {
    CertificateDer::from(bag.cert.as_der().to_vec())
}

fn explain(error: &p12_keystore::error::Error, password: Option<&str>) -> StoreError {
    use p12_keystore::error::Error;
    match error {
        Error::MacError(_) | Error::UnpadError | Error::Pkcs5Error(_) => match password {
            None => StoreError::NoPassword,
            Some(_) => StoreError::WrongPassword,
        },
        Error::UnsupportedEncryptionScheme | Error::UnsupportedMacAlgorithm => {
            StoreError::UnknownEncryption(error.to_string())
        }
        Error::X509Error(reason) => StoreError::BadCertificate(reason.to_string()),
        _ => StoreError::Damaged("it is no PKCS#12 file"),
    }
}
