//! Java's own key store, versions 1 and 2.
//!
//! A list of entries behind a header, and behind it a SHA-1 over the password, a constant and all the rest. A
//! private key is hidden by a stream of SHA-1 blocks that begins with a salt and the password (Sun's key
//! protector, 1.3.6.1.4.1.42.2.17.1.1); its own SHA-1 tells whether the password was right. Neither resists
//! whoever has the file and time: the file's permissions must. Formats as OpenJDK's JavaKeyStore and
//! KeyProtector have them.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha1::{Digest, Sha1};
use x509_parser::asn1_rs::{FromDer, OctetString, Sequence};
use x509_parser::x509::AlgorithmIdentifier;

use super::Contents;
use crate::tls::error::StoreError;

/// How a store begins.
pub(super) const MAGIC: [u8; 4] = [0xfe, 0xed, 0xfe, 0xed];

/// How its cousin with other encryption begins.
pub(super) const JCEKS_MAGIC: [u8; 4] = [0xce, 0xce, 0xce, 0xce];

const PRIVATE_KEY: u32 = 1;
const TRUSTED_CERTIFICATE: u32 = 2;

/// Sun's key protector.
const PROTECTOR: &str = "1.3.6.1.4.1.42.2.17.1.1";

/// Stands between password and entries in what is digested.
const WHITENER: &[u8] = b"Mighty Aphrodite";

/// A SHA-1, and a salt.
const BLOCK: usize = 20;

pub(super) fn decode(bytes: &[u8], password: Option<&str>) -> Result<Contents, StoreError> {
    let password = password.map(utf16);
    let end = bytes.len().checked_sub(BLOCK).ok_or(StoreError::Damaged("no digest"))?;
    let (body, digest) = bytes.split_at(end);
    if let Some(password) = &password
        && Sha1::new().chain_update(password).chain_update(WHITENER).chain_update(body).finalize().as_slice()
            != digest
    {
        return Err(StoreError::WrongPassword);
    }
    let mut reader = Reader { rest: body };
    reader.take(MAGIC.len())?;
    let version = reader.int()?;
    if !(1..=2).contains(&version) {
        return Err(StoreError::Damaged("its version is neither 1 nor 2"));
    }
    let count = reader.int()?;
    let mut contents = Contents::default();
    for _ in 0..count {
        let kind = reader.int()?;
        reader.text()?;
        // When it was made.
        reader.take(8)?;
        match kind {
            PRIVATE_KEY => {
                let protected = reader.block()?;
                let length = reader.int()?;
                let mut chain = Vec::new();
                for _ in 0..length {
                    chain.push(reader.certificate(version)?);
                }
                let password = password.as_deref().ok_or(StoreError::NoPassword)?;
                let key = PrivatePkcs8KeyDer::from(reveal(protected, password)?);
                contents.keys.push((PrivateKeyDer::Pkcs8(key), chain));
            }
            TRUSTED_CERTIFICATE => contents.trusted.push(reader.certificate(version)?),
            _ => return Err(StoreError::Damaged("an entry of an unknown kind")),
        }
    }
    Ok(contents)
}

/// The password as Java digests it.
fn utf16(password: &str) -> Vec<u8> {
    password.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// The PKCS#8 behind the protection.
fn reveal(protected: &[u8], password: &[u8]) -> Result<Vec<u8>, StoreError> {
    let damaged = |_| StoreError::Damaged("a key without its frame");
    let (_, frame) = Sequence::from_der(protected).map_err(damaged)?;
    let (rest, algorithm) = AlgorithmIdentifier::from_der(&frame.content)
        .map_err(|_| StoreError::Damaged("a key without its kind of protection"))?;
    let (_, hidden) = OctetString::from_der(rest).map_err(damaged)?;
    let oid = algorithm.algorithm.to_id_string();
    if oid != PROTECTOR {
        return Err(StoreError::UnknownEncryption(oid));
    }
    let hidden = hidden.as_ref();
    if hidden.len() < 2 * BLOCK {
        return Err(StoreError::Damaged("a key shorter than its salt and digest"));
    }
    let (salt, rest) = hidden.split_at(BLOCK);
    let (hidden, check) = rest.split_at(rest.len() - BLOCK);
    let mut key = Vec::with_capacity(hidden.len());
    let mut block: Vec<u8> = salt.to_vec();
    for chunk in hidden.chunks(BLOCK) {
        block = Sha1::new().chain_update(password).chain_update(&block).finalize().to_vec();
        key.extend(chunk.iter().zip(&block).map(|(hidden, mask)| hidden ^ mask));
    }
    if Sha1::new().chain_update(password).chain_update(&key).finalize().as_slice() != check {
        return Err(StoreError::WrongPassword);
    }
    Ok(key)
}

/// Lengths are believed only as far as there are bytes.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(StoreError::Damaged("it ends early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn int(&mut self) -> Result<u32, StoreError> {
        let bytes = self.take(4)?;
        bytes.try_into().map(u32::from_be_bytes).map_err(|_| StoreError::Damaged("it ends early"))
    }

    fn block(&mut self) -> Result<&'a [u8], StoreError> {
        let length = usize::try_from(self.int()?).map_err(|_| StoreError::Damaged("a length"))?;
        self.take(length)
    }

    /// Two bytes of length and the text, which is looked at by nobody.
    fn text(&mut self) -> Result<&'a [u8], StoreError> {
        let length = self.take(2)?;
        let length =
            length.try_into().map(u16::from_be_bytes).map_err(|_| StoreError::Damaged("a length"))?;
        self.take(usize::from(length))
    }

    fn certificate(&mut self, version: u32) -> Result<CertificateDer<'static>, StoreError> {
        if version == 2 && self.text()? != b"X.509" {
            return Err(StoreError::Damaged("a certificate that is not X.509"));
        }
        Ok(CertificateDer::from(self.block()?.to_vec()))
    }
}
