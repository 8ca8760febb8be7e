//! PEM: certificates and a private key as text, in one file and in any order.
//!
//! The certificates of a key are its chain, its own first; without a key they are what is trusted. Keys may
//! be encrypted as PKCS#8 has it. OpenSSL's older way of encrypting the text itself is refused with what to
//! do, because it proves nothing about the password.

use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use x509_parser::pem::Pem;

use super::Contents;
use crate::tls::error::StoreError;

/// How every block begins.
pub(super) const BEGIN: &[u8] = b"-----BEGIN ";

/// How a text says that it is encrypted the old way.
const ENCRYPTED_TEXT: &[u8] = b"Proc-Type: 4,ENCRYPTED";

pub(super) fn decode(bytes: &[u8], password: Option<&str>) -> Result<Contents, StoreError> {
    if bytes.windows(ENCRYPTED_TEXT.len()).any(|window| window == ENCRYPTED_TEXT) {
        return Err(StoreError::UnknownEncryption("a key in OpenSSL's traditional format".to_owned()));
    }
    let mut certificates = Vec::new();
    let mut keys = Vec::new();
    for block in Pem::iter_from_buffer(bytes) {
        let block = block.map_err(|_| StoreError::Damaged("a block of PEM that is not whole"))?;
        match block.label.as_str() {
            "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => {
                certificates.push(CertificateDer::from(block.contents));
            }
            "PRIVATE KEY" => keys.push(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(block.contents))),
            "RSA PRIVATE KEY" => keys.push(PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(block.contents))),
            "EC PRIVATE KEY" => keys.push(PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(block.contents))),
            "ENCRYPTED PRIVATE KEY" => keys.push(decrypt(&block.contents, password)?),
            // Parameters of curves and the like stand beside keys.
            _ => {}
        }
    }
    let mut contents = Contents { keys: Vec::new(), trusted: certificates.clone() };
    if let Some(key) = keys.into_iter().next() {
        contents.keys.push((key, certificates));
    }
    Ok(contents)
}

fn decrypt(bytes: &[u8], password: Option<&str>) -> Result<PrivateKeyDer<'static>, StoreError> {
    let password = password.ok_or(StoreError::NoPassword)?;
    let info = EncryptedPrivateKeyInfoRef::try_from(bytes)
        .map_err(|error| StoreError::UnknownEncryption(error.to_string()))?;
    // A wrong password shows as padding that is wrong, or as a key that is none.
    let document = info.decrypt(password).map_err(|_| StoreError::WrongPassword)?;
    Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(document.as_bytes().to_vec())))
}
