//! Who is let in, and how connections are kept from others: TLS on the ports.

use std::sync::Arc;

use super::ConfigError;
use crate::address::{HostPort, UNSPECIFIED};
use crate::tls::{ClientTls, Guard};
use crate::zoocfg::ZooCfg;

/// Where clients are let in, and how.
#[derive(Clone, Debug)]
pub struct Security {
    /// How connections begin where clients connect.
    pub guard: Guard,
    /// Another place for clients, with TLS only.
    pub secure_addr: Option<HostPort>,
    /// TLS for clients, where one of the two has it.
    pub clients: Option<Arc<ClientTls>>,
}

impl Security {
    /// Puts the place without TLS and the one with it together: the first is where clients connect, unless there
    /// is none but the second. None where there is neither.
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
        Ok(Some((addr, Self { guard, secure_addr, clients })))
    }
}

/// Where clients with TLS connect, if the file says it. As in ZooKeeper, 0 is no port.
pub(super) fn secure_addr(file: &ZooCfg) -> Option<HostPort> {
    let port = file.secure_client_port.filter(|port| *port != 0)?;
    let host = file.secure_client_port_address.clone().unwrap_or_else(|| UNSPECIFIED.to_owned());
    Some(HostPort::new(host, port))
}
