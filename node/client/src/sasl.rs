//! DIGEST-MD5 (RFC 2831), the client's side, as Java's client speaks it with ZooKeeper: service `zookeeper`,
//! host `zk-sasl-md5`, `auth` and no protection of what follows.
//!
//! The mechanism is old and weak: whoever sees an exchange can guess passwords from it. It belongs behind
//! TLS.

use std::fmt;

use bytes::{Bytes, BytesMut};
use md5::{Digest, Md5};
use node_wire::client::{OpCode, ReplyHeader, SaslPacket, put_frame};
use node_wire::jute::Reader;

use crate::error::ConnectError;
use crate::handshake::next_frame;
use crate::stream::Stream;

/// Service and host.
const URI: &str = "zookeeper/zk-sasl-md5";

/// A user with a password, to be proven on each connection before anything is asked.
#[derive(Clone)]
pub struct Sasl {
    user: String,
    password: String,
}

impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Passwords are nobody's business.
        f.debug_struct("Sasl").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Sasl {
    /// DIGEST-MD5 with this user and password.
    pub fn digest_md5(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    /// Proves the user on a new connection. Gives how many xids were used up.
    pub(crate) async fn prove(
        &self,
        stream: &mut Stream,
        received: &mut BytesMut,
    ) -> Result<i32, ConnectError> {
        let challenge = exchange(stream, received, 1, &[]).await?;
        let challenge = std::str::from_utf8(&challenge).map_err(|_| failed("the challenge is no text"))?;
        let (response, expected) = self.respond(challenge, &nonce()?)?;
        let answer = exchange(stream, received, 2, response.as_bytes()).await?;
        if answer != expected.as_bytes() {
            return Err(failed("the server does not know the password"));
        }
        Ok(2)
    }

    /// The response to a challenge, and what the server answers to it if it knows the password.
    fn respond(&self, challenge: &str, cnonce: &str) -> Result<(String, String), ConnectError> {
        let nonce = directive(challenge, "nonce").ok_or_else(|| failed("a challenge without a nonce"))?;
        let realm = directive(challenge, "realm").unwrap_or_default();
        let is_utf8 = directive(challenge, "charset").is_some_and(|charset| charset == "utf-8");
        let mut secret = Md5::new();
        for part in [&latin(&self.user)[..], b":", &latin(&realm), b":", &latin(&self.password)] {
            secret.update(part);
        }
        let mut a1 = Md5::new();
        for part in [&secret.finalize()[..], b":", nonce.as_bytes(), b":", cnonce.as_bytes()] {
            a1.update(part);
        }
        let a1 = hex(&a1.finalize());
        let of = |method: &str| {
            let a2 = hex(&Md5::digest(format!("{method}:{URI}")));
            hex(&Md5::digest(format!("{a1}:{nonce}:00000001:{cnonce}:auth:{a2}")))
        };
        let charset = if is_utf8 { "charset=utf-8," } else { "" };
        let response = format!(
            "{charset}username=\"{}\",realm=\"{}\",nonce=\"{}\",nc=00000001,cnonce=\"{cnonce}\",\
             digest-uri=\"{URI}\",maxbuf=65536,response={},qop=auth",
            quoted(&self.user),
            quoted(&realm),
            quoted(&nonce),
            of("AUTHENTICATE"),
        );
        Ok((response, format!("rspauth={}", of(""))))
    }
}

fn failed(why: &str) -> ConnectError {
    ConnectError::AuthFailed(why.to_owned())
}

/// Sends a token and waits for the server's.
async fn exchange(
    stream: &mut Stream,
    received: &mut BytesMut,
    xid: i32,
    token: &[u8],
) -> Result<Bytes, ConnectError> {
    let packet = SaslPacket { token: Some(Bytes::copy_from_slice(token)) };
    let mut sending = BytesMut::new();
    put_frame(&mut sending, |w| {
        w.int(xid);
        w.int(OpCode::Sasl.code());
        packet.encode(w);
    });
    stream.send(&mut sending).await?;
    let mut reader = Reader::new(next_frame(stream, received).await?);
    let header = ReplyHeader::decode(&mut reader).map_err(ConnectError::Malformed)?;
    if header.xid != xid {
        return Err(failed("an answer to another question"));
    }
    if header.err != 0 {
        return Err(failed(&format!("the server refused it (error {})", header.err)));
    }
    let packet = SaslPacket::decode(&mut reader).map_err(ConnectError::Malformed)?;
    Ok(packet.token.unwrap_or_default())
}

/// What nobody can foresee, from the library of TLS.
fn nonce() -> Result<String, ConnectError> {
    let mut bytes = [0; 16];
    let drawn = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    drawn.map_err(|_| failed("the system gives no random numbers"))?;
    Ok(hex(&bytes))
}

/// The value of a directive: `key=value` pairs between commas, values in quotes or not.
fn directive(text: &str, wanted: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t', '\r', '\n']);
        let (key, value) = rest.split_once('=')?;
        let (value, behind) = match value.strip_prefix('"') {
            Some(inner) => unquoted(inner)?,
            None => {
                let (value, behind) = value.split_at(value.find(',').unwrap_or(value.len()));
                (value.trim().to_owned(), behind)
            }
        };
        if key.trim().eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = behind;
    }
}

/// What stands before the closing quote, and what behind it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Text of which every character is one of Latin-1 is hashed as that, other text as UTF-8.
fn latin(text: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(char).ok()).collect();
    bytes.unwrap_or_else(|| text.as_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_formulas() {
        let sasl = Sasl::digest_md5("ann", "secret");
        let challenge = "realm=\"zk-sasl-md5\",nonce=\"OA6MG9tEQGm2hh\",charset=utf-8,algorithm=md5-sess";
        let (response, answer) = sasl.respond(challenge, "OA6MHXh6VqTrRk").expect("a response");
        // By another program, from RFC 2831; the server's tests have the same.
        assert_eq!(directive(&response, "response").as_deref(), Some("4293981184c27b88be3acaa0b576eabb"));
        assert_eq!(answer, "rspauth=9d8d5ed018bdd2866df7db04b6ab89b0");
        assert_eq!(directive(&response, "username").as_deref(), Some("ann"));
        assert_eq!(directive(&response, "charset").as_deref(), Some("utf-8"));
        assert!(sasl.respond("realm=\"x\"", "y").is_err(), "no nonce");
        assert!(!format!("{sasl:?}").contains("secret"));
    }

    #[test]
    fn quotes_in_values_are_understood() {
        assert_eq!(directive("a=\"x,\\\"y\\\"\", b=z", "a").as_deref(), Some("x,\"y\""));
        assert_eq!(directive("a=\"x,\\\"y\\\"\", b=z", "B").as_deref(), Some("z"));
        assert_eq!(directive("a=\"x", "a"), None);
    }
}
