//! Where an engine would be: what `DOCKER_HOST`, the chosen context or habit say.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The port of an engine that is reached by TCP without encryption.
const USUAL_PORT: u16 = 2375;
/// Contexts that are looked at.
const MAX_CONTEXTS: usize = 256;

/// An address of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A socket of this machine.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String, u16),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(host, port) => write!(f, "tcp://{host}:{port}"),
        }
    }
}

impl Place {
    /// Reads what stands in `DOCKER_HOST`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix://") {
            return match path {
                "" => Err(format!("{text} names no socket: write unix:///var/run/docker.sock")),
                path => Ok(Self::Unix(PathBuf::from(path))),
            };
        }
        let Some(rest) = text.strip_prefix("tcp://").or_else(|| text.strip_prefix("http://")) else {
            return Err(format!(
                "{text} is neither unix://PATH nor tcp://HOST:PORT, which is all that is spoken here. An \
                 engine behind SSH can be had with `ssh -nNT -L /tmp/engine.sock:/var/run/docker.sock HOST` \
                 and DOCKER_HOST=unix:///tmp/engine.sock"
            ));
        };
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().map_err(|_| format!("{text}: `{port}` is no port"))?;
                (host, port)
            }
            _ => (rest, USUAL_PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(format!("{text} names no host: write tcp://HOST:PORT"));
        }
        Ok(Self::Tcp(host.to_owned(), port))
    }

    /// Whether what it leads to is on this machine, as far as an address can tell.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(..) => self.address().is_some_and(|address| address.is_loopback()),
        }
    }

    /// The address of its host.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(host, port) => {
                Some((host.as_str(), *port).to_socket_addrs().ok()?.next()?.ip().to_canonical())
            }
        }
    }
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// There.
    pub place: Place,
    /// Whether somebody chose it; if not, that nothing is there is nothing to tell.
    pub on_purpose: bool,
}

/// What the environment says, or else the context that was chosen, or else habit.
pub fn choose() -> Result<Chosen, String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(host) = set("DOCKER_HOST") {
        if set("DOCKER_TLS_VERIFY").is_some() {
            return Err(
                "DOCKER_TLS_VERIFY is set, and TLS is not spoken here: unset it, or reach the engine \
                        through an SSH tunnel to its socket"
                    .to_owned(),
            );
        }
        let place = Place::parse(&host).map_err(|error| format!("DOCKER_HOST: {error}"))?;
        return Ok(Chosen { place, on_purpose: true });
    }
    let home = set("HOME").map(PathBuf::from);
    let configuration = set("DOCKER_CONFIG").map(PathBuf::from).or(home.map(|home| home.join(".docker")));
    if let Some(host) = configuration.and_then(|folder| of_context(&folder, set("DOCKER_CONTEXT"))) {
        let place = Place::parse(&host).map_err(|error| format!("the chosen Docker context: {error}"))?;
        return Ok(Chosen { place, on_purpose: true });
    }
    let rootless = set("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("docker.sock"));
    let usual = PathBuf::from("/var/run/docker.sock");
    let path = match rootless {
        Some(rootless) if !usual.exists() && rootless.exists() => rootless,
        _ => usual,
    };
    Ok(Chosen { place: Place::Unix(path), on_purpose: false })
}

#[derive(Deserialize)]
struct Configuration {
    #[serde(rename = "currentContext")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Context {
    name: String,
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Option<Endpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Endpoint {
    host: Option<String>,
}

/// The host of the context that was named, or else of the one that the configuration says is in use.
fn of_context(folder: &Path, named: Option<String>) -> Option<String> {
    let in_use = || {
        let text = std::fs::read(folder.join("config.json")).ok()?;
        serde_json::from_slice::<Configuration>(&text).ok()?.current_context
    };
    let name = named.or_else(in_use).filter(|name| name != "default")?;
    let contexts = std::fs::read_dir(folder.join("contexts/meta")).ok()?;
    contexts.flatten().take(MAX_CONTEXTS).find_map(|entry| {
        let text = std::fs::read(entry.path().join("meta.json")).ok()?;
        let context = serde_json::from_slice::<Context>(&text).ok()?;
        if context.name == name { context.endpoints.docker?.host } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_addresses_are_understood() {
        assert_eq!(Place::parse("unix:///x/y.sock"), Ok(Place::Unix("/x/y.sock".into())));
        assert_eq!(Place::parse("tcp://[::1]:9"), Ok(Place::Tcp("::1".to_owned(), 9)));
        assert_eq!(Place::parse("tcp://[::1]"), Ok(Place::Tcp("::1".to_owned(), USUAL_PORT)));
        assert_eq!(Place::parse("tcp://engine/"), Ok(Place::Tcp("engine".to_owned(), USUAL_PORT)));
        assert!(Place::parse("tcp://127.0.0.1:2375").expect("an address").is_local());
        assert!(!Place::parse("tcp://192.0.2.1:2375").expect("an address").is_local());
    }

    #[test]
    fn what_is_not_spoken_is_refused_with_advice() {
        for (text, advice) in [
            ("ssh://me@host", "ssh -nNT -L"),
            ("tcp://host:port", "is no port"),
            ("tcp://", "names no host"),
            ("unix://", "names no socket"),
        ] {
            let error = Place::parse(text).expect_err(text);
            assert!(error.contains(advice), "{text}: {error}");
        }
    }

    #[test]
    fn the_context_in_use_names_its_host() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("config.json"), r#"{"currentContext":"laptop"}"#).expect("written");
        let meta = folder.path().join("contexts/meta/0f");
        std::fs::create_dir_all(&meta).expect("a folder");
        let context = r#"{"Name":"laptop","Metadata":{},"Endpoints":{"docker":{"Host":"unix:///d.sock"}}}"#;
        std::fs::write(meta.join("meta.json"), context).expect("written");
        assert_eq!(of_context(folder.path(), None).as_deref(), Some("unix:///d.sock"));
        assert_eq!(of_context(folder.path(), Some("default".to_owned())), None);
        assert_eq!(of_context(folder.path(), Some("other".to_owned())), None);
    }
}
