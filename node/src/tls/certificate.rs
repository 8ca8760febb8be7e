//! What is read of a certificate: its time, its key, and whose it is.

use rustls::pki_types::UnixTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Version;

use super::error::StoreError;
use super::subject::rfc2253;

/// A certificate that could be read.
pub(super) struct Certificate<'a> {
    parsed: X509Certificate<'a>,
}

/// Why a certificate does not count now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutOfTime {
    NotYet,
    Over,
}

impl OutOfTime {
    pub(super) fn into_store_error(self, certificate: &Certificate<'_>) -> StoreError {
        let subject = certificate.subject();
        let validity = certificate.parsed.validity();
        match self {
            Self::NotYet => StoreError::NotYetValid { subject, from: validity.not_before.to_string() },
            Self::Over => StoreError::Expired { subject, until: validity.not_after.to_string() },
        }
    }
}

impl<'a> Certificate<'a> {
    /// Reads the whole of `der`. The error is a fragment.
    pub(super) fn read(der: &'a [u8]) -> Result<Self, String> {
        match X509Certificate::from_der(der) {
            Ok(([], parsed)) => Ok(Self { parsed }),
            Ok(_) => Err("something stands behind it".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The subject as Java's `X500Principal.getName()` writes it, which is what lists of ZooKeeper hold.
    pub(super) fn subject(&self) -> String {
        rfc2253(self.parsed.subject())
    }

    /// The subject as it stands there.
    pub(super) fn raw_subject(&self) -> &'a [u8] {
        self.parsed.tbs_certificate.subject.as_raw()
    }

    /// The issuer as it stands there.
    pub(super) fn raw_issuer(&self) -> &'a [u8] {
        self.parsed.tbs_certificate.issuer.as_raw()
    }

    /// The public key with its algorithm, as it stands there.
    pub(super) fn public_key(&self) -> &'a [u8] {
        self.parsed.tbs_certificate.subject_pki.raw
    }

    /// The library underneath verifies certificates of version 3 alone; tools write others to this day.
    pub(super) fn is_v3(&self) -> bool {
        self.parsed.version() == X509Version::V3
    }

    pub(super) fn parsed(&self) -> &X509Certificate<'a> {
        &self.parsed
    }

    pub(super) fn is_in_time(&self, now: UnixTime) -> Result<(), OutOfTime> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = self.parsed.validity();
        if now < validity.not_before.timestamp() {
            return Err(OutOfTime::NotYet);
        }
        if now > validity.not_after.timestamp() {
            return Err(OutOfTime::Over);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_told() {
        for bytes in [&b""[..], b"\x30", b"\x30\x03\x02\x01\x01", &[0xff; 64]] {
            assert!(Certificate::read(bytes).is_err());
        }
    }
}
