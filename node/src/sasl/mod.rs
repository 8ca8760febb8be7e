//! SASL on the port for clients: DIGEST-MD5 with users from a JAAS file, as ZooKeeper's servers have it.
//!
//! | module | knows |
//! |---|---|
//! | `jaas` | files of Java's authentication service |
//! | `digest_md5` | the mechanism: RFC 2831, the server's side |
//!
//! The driver leads the exchange, because it needs what nobody can foresee; the core hears what came of it
//! and answers in the order of requests. A connection proves itself once. Its name becomes an identity of the
//! scheme `sasl`, and the superuser's too where `superUser` names it.
//!
//! Deliberately not here: Kerberos (GSSAPI), and SASL between members.

mod digest_md5;
mod jaas;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use bytestring::ByteString;
use node_core::io::Proof;
use node_wire::client::Id;

use crate::tls::Properties;
pub use digest_md5::Server;
pub use jaas::{JaasError, sections};

/// The file with the users, by Java's own name for it.
const JAAS_FILE: &str = "java.security.auth.login.config";

/// The section of it that is the server's.
const SECTION: &str = "sasl.serverconfig";

/// The section where no key says another.
const DEFAULT_SECTION: &str = "Server";

/// What makes a user of an option.
const USER: &str = "user_";

/// Who becomes the superuser; also with a dot and anything behind it, for several.
const SUPER_USER: &str = "superUser";

/// The password of the user `super` instead of the file's.
const SUPER_PASSWORD: &str = "SASLAuthenticationProvider.superPassword";

/// Whether a client that proved nothing may stay.
const ALLOW_FAILED: &str = "allowSaslFailedClients";

/// Bytes of a nonce.
const NONCE: usize = 16;

/// The class that asks for all this.
const PROVIDER: &str = "SASLAuthenticationProvider";

/// The keys that are read here.
#[cfg(test)]
pub(crate) const KEYS: &[&str] = &[ALLOW_FAILED, JAAS_FILE, SECTION, SUPER_PASSWORD, SUPER_USER];

/// Why there are no users. Messages fit after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum SaslError {
    /// The file can't be read.
    #[error("read {path} (java.security.auth.login.config): {source}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file can't be understood.
    #[error("read {path} (java.security.auth.login.config): {source}", path = .path.display())]
    Jaas {
        /// Which.
        path: PathBuf,
        /// Where and why.
        source: JaasError,
    },
    /// The section was asked for by name and is not there.
    #[error(
        "find the section {section} in {path}: add it, or correct sasl.serverconfig",
        path = .path.display()
    )]
    NoSection {
        /// Its name.
        section: String,
        /// The file.
        path: PathBuf,
    },
    /// The section asks for Kerberos.
    #[error(
        "use {module} in {path}: users are known by DIGEST-MD5 alone \
         (org.apache.zookeeper.server.auth.DigestLoginModule)",
        path = .path.display()
    )]
    Module {
        /// The Java class.
        module: String,
        /// The file.
        path: PathBuf,
    },
}

/// The users that may prove who they are.
pub struct Users {
    passwords: BTreeMap<String, String>,
    supers: Vec<String>,
    allow_failed: bool,
}

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Passwords are nobody's business.
        f.debug_struct("Users").field("names", &self.passwords.keys()).finish_non_exhaustive()
    }
}

impl Users {
    /// From the keys. None where no provider is configured, or the file has no section for servers: then
    /// nobody can prove anything, which is what ZooKeeper makes of it as well.
    ///
    /// # Errors
    /// When the file is named and can't be used.
    pub(crate) fn new(said: &Properties) -> Result<Option<Self>, SaslError> {
        if !is_asked_for(said) {
            return Ok(None);
        }
        let Some(path) = said.get(JAAS_FILE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
            return Ok(None);
        };
        let text =
            fs::read_to_string(&path).map_err(|source| SaslError::File { path: path.clone(), source })?;
        let sections = jaas::parse(&text).map_err(|source| SaslError::Jaas { path: path.clone(), source })?;
        let named = said.get(SECTION);
        let section = named.map_or(DEFAULT_SECTION, String::as_str);
        let Some(modules) = sections.get(section) else {
            return match named {
                Some(section) => Err(SaslError::NoSection { section: section.clone(), path }),
                None => Ok(None),
            };
        };
        let mut passwords = BTreeMap::new();
        for module in modules {
            if !module.class.ends_with("DigestLoginModule") {
                return Err(SaslError::Module { module: module.class.clone(), path });
            }
            let users =
                module.options.iter().filter_map(|(key, value)| Some((key.strip_prefix(USER)?, value)));
            passwords.extend(users.map(|(user, password)| (user.to_owned(), password.clone())));
        }
        if let (Some(password), Some(of_super)) = (said.get(SUPER_PASSWORD), passwords.get_mut("super")) {
            of_super.clone_from(password);
        }
        let is_super = |key: &str| {
            key.strip_prefix(SUPER_USER).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let supers = said.iter().filter(|(key, _)| is_super(key)).map(|(_, user)| user.clone()).collect();
        let allow_failed = said.get(ALLOW_FAILED).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Some(Self { passwords, supers, allow_failed }))
    }

    fn password(&self, user: &str) -> Option<&str> {
        self.passwords.get(user).map(String::as_str)
    }

    /// Everything that a user who proved its name is.
    fn identities(&self, user: String) -> Vec<Id> {
        let is_super = !user.is_empty() && self.supers.contains(&user);
        let id = Id { scheme: ByteString::from_static("sasl"), id: ByteString::from(user) };
        if is_super { vec![id, Id::superuser()] } else { vec![id] }
    }
}

/// True when one of the providers is SASL's.
fn is_asked_for(said: &Properties) -> bool {
    said.iter().any(|(key, class)| key.starts_with("authProvider.") && class.ends_with(PROVIDER))
}

/// The exchange on one connection.
#[derive(Debug, Default)]
pub(crate) enum Exchange {
    /// Nobody said anything.
    #[default]
    Idle,
    /// The challenge is out.
    Challenged(Server),
    /// It ended, in whichever way. There is no second one.
    Over,
}

impl Exchange {
    /// Answers a token of the client's. `users` is none where nobody can prove anything. What the server says
    /// that must not be foreseen is drawn from `nonce`.
    pub(crate) fn step(
        &mut self,
        users: Option<&Users>,
        token: &[u8],
        nonce: impl FnOnce() -> std::io::Result<String>,
    ) -> Proof {
        let Some(users) = users else { return Proof::Failed };
        match std::mem::replace(self, Self::Over) {
            // RFC 2831 has no initial response; whoever sends one speaks another mechanism.
            Self::Idle if token.is_empty() => match nonce() {
                Ok(nonce) => {
                    let server = Server::new(nonce);
                    let token = Bytes::from(server.challenge());
                    *self = Self::Challenged(server);
                    Proof::Token { token: Some(token), who: Vec::new() }
                }
                Err(error) => {
                    tracing::error!(%error, "failed to draw a nonce: nobody can authenticate");
                    Proof::Failed
                }
            },
            Self::Challenged(server) => match server.verify(token, |user| users.password(user)) {
                Ok((user, answer)) => {
                    tracing::info!(user, "a client proved who it is (SASL)");
                    Proof::Token { token: Some(Bytes::from(answer)), who: users.identities(user) }
                }
                Err(reason) => failed(users, reason),
            },
            Self::Idle => failed(users, "a response before the challenge"),
            Self::Over => Proof::Failed,
        }
    }
}

/// What nobody can foresee, from the library of TLS, in hexadecimal.
pub(crate) fn nonce() -> std::io::Result<String> {
    let mut bytes = [0; NONCE];
    let drawn = rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes);
    drawn.map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
    Ok(digest_md5::hex(&bytes))
}

fn failed(users: &Users, reason: &'static str) -> Proof {
    tracing::warn!(reason, "a client failed to authenticate (SASL)");
    if users.allow_failed { Proof::Tolerated } else { Proof::Failed }
}

#[cfg(test)]
mod tests;
