//! The digest scheme: what a client that gave a name and a password is called.
//!
//! Nobody keeps the password. The identity, and what an access control list holds, is the name, a colon, and
//! the SHA-1 of name, colon and password in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytestring::ByteString;
use sha1::{Digest, Sha1};

/// The identity of whoever gave `name:password`. Bytes that are no text are replaced as Java replaces them.
#[must_use]
pub fn digest_identity(credentials: &[u8]) -> ByteString {
    let text = String::from_utf8_lossy(credentials);
    let name = text.split_once(':').map_or(text.as_ref(), |(name, _)| name);
    ByteString::from(format!("{name}:{}", STANDARD.encode(Sha1::digest(text.as_bytes()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_what_zookeepers_documentation_shows() {
        assert_eq!(digest_identity(b"super:test"), "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
    }

    #[test]
    fn a_name_ends_at_the_first_colon() {
        assert!(digest_identity(b"a:b:c").starts_with("a:"));
        assert!(digest_identity(b"alone").starts_with("alone:"));
    }
}
