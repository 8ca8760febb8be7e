//! Who is let in, and how connections are kept from others: TLS on the ports, and what clients must prove.

use std::sync::Arc;

use bytestring::ByteString;

use super::ConfigError;
use crate::address::{HostPort, UNSPECIFIED};
use crate::sasl::Users;
use crate::tls::{ClientTls, Guard, PeerTls, Properties};
use crate::zoocfg::ZooCfg;

const ENFORCE: &str = "enforce.auth.enabled";
const ENFORCED_SCHEMES: &str = "enforce.auth.schemes";
const REQUIRE_SASL: &str = "sessionRequireClientSASLAuth";

/// The keys that are read here.
#[cfg(test)]
pub(crate) const KEYS: &[&str] = &[ENFORCE, ENFORCED_SCHEMES, REQUIRE_SASL];

/// Schemes of which a client can have an identity.
const SCHEMES: [&str; 4] = ["digest", "ip", SASL, "x509"];
const SASL: &str = "sasl";

/// Classes of ZooKeeper's whose schemes are there.
const PROVIDERS: [&str; 4] = [
    "DigestAuthenticationProvider",
    "IPAuthenticationProvider",
    "SASLAuthenticationProvider",
    "X509AuthenticationProvider",
];

/// Where clients are let in, and how.
#[derive(Clone, Debug)]
pub struct Security {
    /// How connections begin where clients connect.
    pub guard: Guard,
    /// Another place for clients, with TLS only.
    pub secure_addr: Option<HostPort>,
    /// TLS for clients, where one of the two has it.
    pub clients: Option<Arc<ClientTls>>,
    /// TLS between members, where they have it.
    pub peers: Option<Arc<PeerTls>>,
    /// Who may prove a name by SASL; none where nobody can.
    pub users: Option<Arc<Users>>,
}

impl Security {
    /// Puts the place without TLS and the one with it together: the first is where clients connect, unless
    /// there is none but the second. None where there is neither.
    pub(super) fn new(
        plain: Option<HostPort>,
        file: &ZooCfg,
    ) -> Result<Option<(HostPort, Self)>, ConfigError> {
        let secure = secure_addr(file);
        let unified = file.client_unification.unwrap_or(false);
        let (addr, guard, secure_addr) = match (plain, secure) {
            (Some(plain), secure) if unified => (plain, Guard::Either, secure),
            (Some(plain), secure) => (plain, Guard::Plain, secure),
            (None, Some(secure)) => (secure, Guard::Secure, None),
            (None, None) => return Ok(None),
        };
        if secure_addr.as_ref().is_some_and(|secure| secure.port == addr.port && addr.port != 0) {
            return Err(ConfigError::Impossible(format!(
                "port {} for clients with TLS and for clients without: give each its own, or remove \
                 secureClientPort and set client.portUnification=true",
                addr.port
            )));
        }
        let has_tls = guard != Guard::Plain || secure_addr.is_some();
        let clients = if has_tls { Some(Arc::new(ClientTls::new(&file.properties)?)) } else { None };
        let flag = |said: Option<bool>| said.unwrap_or(false);
        let (dials, unified) = (flag(file.ssl_quorum), flag(file.quorum_unification));
        let peers =
            PeerTls::new(&file.properties, dials, unified, flag(file.ssl_quorum_reload))?.map(Arc::new);
        let users = Users::new(&file.properties)?.map(Arc::new);
        Ok(Some((addr, Self { guard, secure_addr, clients, peers, users })))
    }

    /// The schemes of which each client must prove an identity before it is served.
    pub(super) fn required_schemes(&self, said: &Properties) -> Result<Vec<ByteString>, ConfigError> {
        let flag = |key: &str| match said.get(key).map(|value| value.to_ascii_lowercase()).as_deref() {
            None | Some("" | "false") => Ok(false),
            Some("true") => Ok(true),
            Some(value) => Err(ConfigError::Value {
                key: key.to_owned(),
                value: value.to_owned(),
                want: "true or false",
            }),
        };
        let schemes = match (flag(REQUIRE_SASL)?, flag(ENFORCE)?) {
            (true, _) => SASL,
            (false, true) => said.get(ENFORCED_SCHEMES).map_or("", String::as_str),
            (false, false) => return Ok(Vec::new()),
        };
        let schemes: Vec<&str> =
            schemes.split(',').map(str::trim).filter(|scheme| !scheme.is_empty()).collect();
        let impossible = |message: String| Err(ConfigError::Impossible(message));
        if schemes.is_empty() {
            return impossible(format!(
                "{ENFORCE}=true without {ENFORCED_SCHEMES}: say which schemes are wanted"
            ));
        }
        if let Some(unknown) = schemes.iter().find(|scheme| !SCHEMES.contains(scheme)) {
            return impossible(format!(
                "{ENFORCED_SCHEMES} with {unknown}: choose from {}",
                SCHEMES.join(", ")
            ));
        }
        if schemes == [SASL] && self.users.is_none() {
            return impossible(
                "only clients that prove a name by SASL where nobody can: add \
                 authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider, and \
                 -Djava.security.auth.login.config=FILE with a section Server"
                    .to_owned(),
            );
        }
        Ok(schemes.into_iter().map(ByteString::from).collect())
    }

    /// The schemes for which there is a provider as ZooKeeper has it: a class that is named, and that of
    /// certificates where clients have TLS.
    pub(super) fn providers(&self, said: &Properties) -> Vec<ByteString> {
        let is_named = |class: &str| {
            said.iter().any(|(key, value)| key.starts_with("authProvider.") && value.ends_with(class))
        };
        [
            (SASL, is_named("SASLAuthenticationProvider")),
            ("x509", self.clients.is_some() || is_named("X509AuthenticationProvider")),
        ]
        .into_iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(scheme, _)| ByteString::from_static(scheme))
        .collect()
    }

    /// What the operator should know of providers that are not there.
    pub(super) fn warnings(said: &Properties) -> Vec<String> {
        let unknown = said.iter().filter(|(key, class)| {
            key.starts_with("authProvider.") && !PROVIDERS.iter().any(|known| class.ends_with(known))
        });
        unknown
            .map(|(key, class)| format!("{key}={class} has no effect: there are no Java classes here"))
            .collect()
    }
}

/// Where clients with TLS connect, if the file says it. As in ZooKeeper, 0 is no port.
pub(super) fn secure_addr(file: &ZooCfg) -> Option<HostPort> {
    let port = file.secure_client_port.filter(|port| *port != 0)?;
    let host = file.secure_client_port_address.clone().unwrap_or_else(|| UNSPECIFIED.to_owned());
    Some(HostPort::new(host, port))
}
