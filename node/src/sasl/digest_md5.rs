//! DIGEST-MD5 (RFC 2831), the server's side, as Java's server offers it for ZooKeeper: realm and host
//! `zk-sasl-md5`, service `zookeeper`, `auth` and no protection of what follows.
//!
//! The mechanism is old and weak: whoever sees an exchange can guess passwords from it, and whoever holds the
//! connection can take it over. It belongs behind TLS. A nonce is good for one exchange on one connection, so
//! that nothing can be replayed.

use std::collections::BTreeMap;

use md5::{Digest, Md5};

/// What clients hash as the realm, and dial as the host.
const HOST: &str = "zk-sasl-md5";

/// Service and host.
const URI: &str = "zookeeper/zk-sasl-md5";

/// No response is longer: names and digests. Java's limit too.
const MAX_RESPONSE: usize = 4096;

/// One exchange.
#[derive(Debug)]
pub struct Server {
    nonce: String,
}

impl Server {
    /// With a nonce that nobody saw before.
    #[must_use]
    pub fn new(nonce: String) -> Self {
        Self { nonce }
    }

    /// What is asked.
    #[must_use]
    pub fn challenge(&self) -> String {
        format!("realm=\"{HOST}\",nonce=\"{}\",charset=utf-8,algorithm=md5-sess", self.nonce)
    }

    /// Judges the response. Gives the user's name, and what proves to the client that the password is known
    /// here.
    ///
    /// # Errors
    /// A reason, for the log: the client hears only that it failed.
    pub fn verify<'a>(
        self,
        response: &[u8],
        password: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<(String, String), &'static str> {
        if response.len() > MAX_RESPONSE {
            return Err("a response that is too long");
        }
        let directives = directives(response)?;
        let get = |key: &str| directives.get(key).map(Vec::as_slice);
        let text = |key: &str| get(key).and_then(|value| std::str::from_utf8(value).ok());
        if get("nonce") != Some(self.nonce.as_bytes()) {
            return Err("a nonce that is not the challenge's");
        }
        if text("nc") != Some("00000001") {
            return Err("a count of responses that is not one");
        }
        if !matches!(text("qop"), None | Some("auth")) {
            return Err("a quality of protection that was not offered");
        }
        if !text("digest-uri").is_some_and(|uri| uri.eq_ignore_ascii_case(URI)) {
            return Err("a response for another service");
        }
        let user = match text("charset") {
            None => get("username").map(|name| name.iter().copied().map(char::from).collect()),
            Some("utf-8") => text("username").map(str::to_owned),
            Some(_) => return Err("a charset that is not known"),
        };
        let user: String = user.ok_or("a response without a user's name")?;
        let cnonce = get("cnonce").ok_or("a response without a nonce of its own")?;
        let claimed = get("response").ok_or("a response without its digest")?;
        let realm = get("realm").unwrap_or_default();
        let authzid = get("authzid");
        if authzid.is_some_and(|authzid| authzid != user.as_bytes()) {
            return Err("a user who wants to be another");
        }
        let known = password(&user);
        // Somebody whom nobody knows costs as much time as somebody with a wrong password.
        let exchange = Said { user: &user, password: known.unwrap_or_default(), realm, cnonce, authzid };
        let (expected, answer) = exchange.digests(&self.nonce);
        if !is_same(expected.as_bytes(), claimed) || known.is_none() {
            return Err("no such user, or another password");
        }
        Ok((user, format!("rspauth={answer}")))
    }
}

/// What goes into the digests.
struct Said<'a> {
    user: &'a str,
    password: &'a str,
    realm: &'a [u8],
    cnonce: &'a [u8],
    authzid: Option<&'a [u8]>,
}

impl Said<'_> {
    /// What the client must have said, and what it is answered (RFC 2831, 2.1.2.1).
    fn digests(&self, nonce: &str) -> (String, String) {
        let secret = Md5::new()
            .chain_update(latin(self.user))
            .chain_update(b":")
            .chain_update(self.realm)
            .chain_update(b":")
            .chain_update(latin(self.password))
            .finalize();
        let mut a1 = Md5::new();
        for part in [&secret[..], b":", nonce.as_bytes(), b":", self.cnonce] {
            a1.update(part);
        }
        if let Some(authzid) = self.authzid {
            a1.update(b":");
            a1.update(authzid);
        }
        let a1 = hex(&a1.finalize());
        let of = |method: &str| {
            let a2 = hex(&Md5::digest(format!("{method}:{URI}")));
            let mut digest = Md5::new();
            for part in
                [a1.as_bytes(), b":", nonce.as_bytes(), b":00000001:", self.cnonce, b":auth:", a2.as_bytes()]
            {
                digest.update(part);
            }
            hex(&digest.finalize())
        };
        (of("AUTHENTICATE"), of(""))
    }
}

/// Text of which every character is one of Latin-1 is hashed as that, other text as UTF-8.
fn latin(text: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
    bytes.unwrap_or_else(|| text.as_bytes().to_vec())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Compares without a hint in how long it takes.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// `key=value` pairs between commas, values in quotes or not. Each key once.
fn directives(response: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, &'static str> {
    let mut found = BTreeMap::new();
    let mut bytes = response.iter().copied().peekable();
    loop {
        while bytes.next_if(|byte| b", \t\r\n".contains(byte)).is_some() {}
        if bytes.peek().is_none() {
            return Ok(found);
        }
        let mut key = String::new();
        loop {
            match bytes.next() {
                Some(b'=') => break,
                Some(byte) if byte.is_ascii_graphic() => key.push(char::from(byte.to_ascii_lowercase())),
                Some(_) | None => return Err("a response that is no list of directives"),
            }
        }
        let mut value = Vec::new();
        if bytes.next_if_eq(&b'"').is_some() {
            loop {
                match bytes.next().ok_or("a directive that does not end")? {
                    b'"' => break,
                    b'\\' => value.push(bytes.next().ok_or("a directive that does not end")?),
                    byte => value.push(byte),
                }
            }
        } else {
            while let Some(byte) = bytes.next_if(|byte| !b", \t\r\n".contains(byte)) {
                value.push(byte);
            }
        }
        if found.insert(key, value).is_some() {
            return Err("a directive that stands twice");
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a client answers to a challenge with this nonce.
    pub(in crate::sasl) fn response(user: &str, password: &str, nonce: &str, cnonce: &str) -> String {
        let said = Said { user, password, realm: HOST.as_bytes(), cnonce: cnonce.as_bytes(), authzid: None };
        let (digest, _) = said.digests(nonce);
        format!(
            "charset=utf-8,username=\"{user}\",realm=\"{HOST}\",nonce=\"{nonce}\",nc=00000001,\
             cnonce=\"{cnonce}\",digest-uri=\"{URI}\",maxbuf=65536,response={digest},qop=auth"
        )
    }

    #[test]
    fn digests_are_those_of_the_formulas() {
        let said = Said {
            user: "ann",
            password: "secret",
            realm: HOST.as_bytes(),
            cnonce: b"OA6MHXh6VqTrRk",
            authzid: None,
        };
        let (client, server) = said.digests("OA6MG9tEQGm2hh");
        assert_eq!((client.as_str(), server.as_str()), COMPUTED);
    }

    /// By another program, from RFC 2831. Java's own client is tried in `node/tests/secure`.
    const COMPUTED: (&str, &str) = ("4293981184c27b88be3acaa0b576eabb", "9d8d5ed018bdd2866df7db04b6ab89b0");

    #[test]
    fn names_and_passwords_beyond_latin_are_hashed_as_utf8() {
        assert_eq!(latin("é"), [0xe9]);
        assert_eq!(latin("ф"), "ф".as_bytes());
    }

    #[test]
    fn what_is_no_list_of_directives_is_refused() {
        for bytes in [&b"nonce"[..], b"=\"", b"a=\"b", b"a=\"b\\", b"a=1,a=2", b"\xff=1", b"a b=1"] {
            assert!(directives(bytes).is_err(), "{bytes:?}");
        }
        let found = directives(b" A=\"x,\\\"y\" ,, b=z").expect("two");
        assert_eq!(found["a"], b"x,\"y");
        assert_eq!(found["b"], b"z");
    }
}
