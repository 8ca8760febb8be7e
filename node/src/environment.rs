//! The variables that ZooKeeper's official container image understands, as they are written.
//!
//! One Compose file should fit that image and ours, so the names and their meaning are taken from its entry
//! script (31z4/zookeeper-docker, 3.4.8 to 3.9). There a script turns each variable into a line of zoo.cfg;
//! here each becomes the key that it stands for, and rules over the configuration file as flags rule over it.
//! An empty variable says nothing: that is what Compose makes of one that was not set.
//!
//! Where a wrong value is refused, the variable is named: whoever reads the message did not write a zoo.cfg.

use std::collections::BTreeMap;
use std::ffi::OsString;

use node_wire::ids::ServerId;

use crate::address::server_id;
use crate::cli::Args;
use crate::config::ConfigError;
use crate::zoocfg::{CLIENT_PORT, WHITELIST, ZooCfg, keys};

/// Each variable that stands for one key.
const KEYS: &[(&str, &str)] = &[
    ("ZOO_DATA_DIR", "dataDir"),
    ("ZOO_DATA_LOG_DIR", "dataLogDir"),
    (PORT, CLIENT_PORT),
    ("ZOO_TICK_TIME", "tickTime"),
    ("ZOO_INIT_LIMIT", "initLimit"),
    ("ZOO_SYNC_LIMIT", "syncLimit"),
    ("ZOO_MAX_CLIENT_CNXNS", "maxClientCnxns"),
    ("ZOO_AUTOPURGE_PURGEINTERVAL", "autopurge.purgeInterval"),
    ("ZOO_AUTOPURGE_SNAPRETAINCOUNT", "autopurge.snapRetainCount"),
    ("ZOO_4LW_COMMANDS_WHITELIST", WHITELIST),
    ("ZOO_ADMINSERVER_ENABLED", "admin.enableServer"),
];

/// Where clients connect, unless the own server's line says it. Images before 3.5 know it.
const PORT: &str = "ZOO_PORT";

/// This member's number.
pub(crate) const MY_ID: &str = "ZOO_MY_ID";

/// `server.N=` lines, parted by white space.
const SERVERS: &str = "ZOO_SERVERS";

/// Lines of zoo.cfg, parted by white space.
const EXTRA: &str = "ZOO_CFG_EXTRA";

/// Flags of Java's, in which ZooKeeper's scripts let operators write `-Dzookeeper.key=value`.
const JAVA_FLAGS: [&str; 2] = ["JVMFLAGS", "SERVER_JVMFLAGS"];

/// Variables of the image that are sound but do nothing here.
const WITHOUT_EFFECT: &[&str] =
    &["ZOO_CONF_DIR", "ZOO_LOG4J_PROP", "ZOO_LOG_DIR", "ZOO_STANDALONE_ENABLED", "ZOO_USER"];

/// What a process's environment says about a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// `ZOO_MY_ID`.
    pub id: Option<ServerId>,
    /// Everything else, by the keys that it stands for.
    pub cfg: ZooCfg,
    /// Who said a key: the variable, or the variable and the key where one variable says several.
    said: BTreeMap<String, String>,
}

impl Environment {
    /// Reads the variables that begin with `ZOO_`, and of Java's flags what is ZooKeeper's, and leaves all
    /// others alone.
    ///
    /// # Errors
    /// When one is no text or not of its kind; the message names it.
    pub fn read(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, ConfigError> {
        let mut environment = Self::default();
        for (name, value) in variables {
            let ours = |name: &&str| name.starts_with("ZOO_") || JAVA_FLAGS.contains(name);
            let Some(name) = name.to_str().filter(ours) else { continue };
            let Some(value) = value.to_str().map(str::trim) else {
                return Err(refused(name, "text in UTF-8 is wanted".to_owned()));
            };
            if !value.is_empty() {
                environment.set(name, value)?;
            }
        }
        Ok(environment)
    }

    /// The name by which the operator knows a key: the variable's, where a variable said it.
    pub(crate) fn name_of<'a>(&'a self, key: &'a str) -> &'a str {
        self.said.get(key).map_or(key, String::as_str)
    }

    /// Drops what flags say otherwise.
    pub(crate) fn overrule(&mut self, args: &Args) {
        self.id = self.id.filter(|_| args.id.is_none());
        if !args.servers.is_empty() {
            self.cfg.servers.clear();
        }
        let flagged = [
            (args.tick_time_ms.is_some(), "tickTime"),
            (args.peer_timeout_ms.is_some(), "peerTimeout"),
            (args.snap_count.is_some(), "snapCount"),
            (args.client_addr.is_some(), CLIENT_PORT),
        ];
        for (_, key) in flagged.into_iter().filter(|(flagged, _)| *flagged) {
            self.said.remove(key);
        }
    }

    /// The variables that say who is in the ensemble and where, or none.
    pub(crate) fn about_servers(&self) -> Option<String> {
        let id = self.id.map(|_| MY_ID.to_owned());
        let servers = (!self.cfg.servers.is_empty()).then(|| SERVERS.to_owned());
        let port = self.said.get(CLIENT_PORT).cloned();
        let all: Vec<String> = [id, servers, port].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        match name {
            MY_ID => {
                let id = server_id(value)
                    .ok_or_else(|| refused(name, format!("`{value}` is not a number, 0 or more")))?;
                self.id = Some(id);
            }
            SERVERS => {
                for line in value.split_whitespace() {
                    if !line.starts_with("server.") {
                        return Err(refused(
                            name,
                            format!(
                                "`{line}` is not server.N=HOST:QUORUMPORT:ELECTIONPORT[;CLIENTPORT] (part \
                                 several by spaces)"
                            ),
                        ));
                    }
                    self.set_line(name, line)?;
                }
            }
            EXTRA => {
                for line in value.split_whitespace() {
                    self.set_line(name, line)?;
                }
            }
            _ if JAVA_FLAGS.contains(&name) => {
                for flag in value.split_whitespace().filter_map(|flag| flag.strip_prefix("-D")) {
                    let (key, value) = flag.split_once('=').unwrap_or((flag, ""));
                    self.cfg.set_property(key, value).map_err(|error| refused(name, reason(&error)))?;
                    self.said.insert(keys::canonical(key).to_owned(), format!("{name}'s {key}"));
                }
            }
            // Links between containers, and services of Kubernetes, are told in variables as well: one that
            // is called `zoo` has its address in here.
            PORT if value.contains("://") => {}
            _ => match KEYS.iter().find(|(variable, _)| *variable == name) {
                Some((_, key)) => self.set_key(name, key, value, name.to_owned())?,
                None => self.cfg.warnings.push(skipped(name)),
            },
        }
        Ok(())
    }

    /// A line of zoo.cfg inside of a variable.
    fn set_line(&mut self, variable: &str, line: &str) -> Result<(), ConfigError> {
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| refused(variable, format!("`{line}`: key=value is wanted")))?;
        self.set_key(variable, key, value, format!("{variable}'s {key}"))
    }

    fn set_key(&mut self, variable: &str, key: &str, value: &str, said: String) -> Result<(), ConfigError> {
        self.cfg.set(key, value).map_err(|error| refused(variable, reason(&error)))?;
        self.said.insert(keys::canonical(key).to_owned(), said);
        Ok(())
    }
}

fn refused(variable: &str, reason: String) -> ConfigError {
    ConfigError::Variable { variable: variable.to_owned(), reason }
}

/// What is wrong, without the words that place it in a file.
fn reason(error: &ConfigError) -> String {
    match error {
        ConfigError::Value { value, want, .. } => format!("`{value}`: {want} is wanted"),
        ConfigError::Address { source, .. } => source.to_string(),
        ConfigError::ServerKey(key) => format!("`{key}`: a number must follow the dot, 0 or more"),
        ConfigError::ServerTwice(id) => format!("two lines for server {id}: remove one"),
        other => other.to_string(),
    }
}

fn skipped(variable: &str) -> String {
    if WITHOUT_EFFECT.contains(&variable) {
        format!("the variable {variable} has no effect here")
    } else {
        format!("the variable {variable} is not known and was skipped: check its spelling")
    }
}
