//! Who somebody is: responses of DIGEST-MD5, which anybody may send, and the operator's files with users and
//! keys.

use node::sasl::{Server, sections};
use node::tls::java_key_store;

use sha1::{Digest, Sha1};

use crate::meter::{Bound, within};
use crate::split;

/// Each directive is a node of a tree and two strings; what is hashed is there once more.
const RESPONSE: Bound = Bound { flat: 4096, per_byte: 256 };

/// Each option is two strings.
const FILE: Bound = Bound { flat: 4096, per_byte: 256 };

/// Keys and certificates are copied out, and a certificate takes at least 11 bytes and a pointer.
const STORE: Bound = Bound { flat: 4096, per_byte: 64 };

/// As the seeds have them.
const NONCE: &str = "4f6a61";
const USER: (&str, &str) = ("ann", "secret");

/// What clients answer to a challenge: nobody is let in by chance.
pub(super) fn digest(input: &[u8]) {
    for response in split(input) {
        let password = |user: &str| (user == USER.0).then_some(USER.1);
        let verified =
            within(RESPONSE, response.len(), || Server::new(NONCE.to_owned()).verify(response, password));
        if let Ok((user, _)) = verified {
            assert_eq!(user, USER.0, "who has no password is let in");
        }
        // Another challenge's response is good for nothing.
        let other = Server::new("0".to_owned()).verify(response, password);
        assert!(other.is_err(), "a response was taken twice");
    }
}

/// A file of Java's authentication service.
pub(super) fn jaas(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(names) = within(FILE, text.len(), || sections(text)) else { return };
    let decorated = format!("/* a\ncomment */ {text}\n// another");
    assert_eq!(sections(&decorated).as_ref(), Ok(&names), "a file says the same with comments");
}

/// A key store of Java's own kind: the password, and the file without the digest at its end.
pub(super) fn jks(input: &[u8]) {
    let mut pieces = split(input);
    let (Some(password), Some(body)) = (pieces.next(), pieces.next()) else { return };
    let Ok(password) = std::str::from_utf8(password) else { return };
    let utf16: Vec<u8> = password.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let digest =
        Sha1::new().chain_update(utf16).chain_update(b"Mighty Aphrodite").chain_update(body).finalize();
    let store = [body, &digest].concat();
    let opened = within(STORE, store.len(), || java_key_store(&store, Some(password)));
    // Without a password nothing is compared, and no key is shown.
    let looked_at = within(STORE, store.len(), || java_key_store(&store, None));
    if let Ok((keys, trusted)) = looked_at {
        assert_eq!((keys, Ok((keys, trusted))), (0, opened.map_err(drop)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn the_seed_with_the_right_password_is_let_in() {
        let input = std::fs::read(corpus("digest").join("seed-right")).expect("a seed");
        let response = split(&input).next().expect("a response");
        let verified =
            Server::new(NONCE.to_owned()).verify(response, |user| (user == USER.0).then_some(USER.1));
        assert_eq!(verified.map(|(user, _)| user), Ok(USER.0.to_owned()));
    }
}
