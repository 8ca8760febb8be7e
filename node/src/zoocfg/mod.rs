//! A configuration file with ZooKeeper's keys, as it is written.
//!
//! The format is that of Java's properties (`properties.rs`). Every key is read into the type it has; whether
//! the values go together is decided later, when flags are known too. What each key does here, or why it does
//! nothing, is told by [`keys`]. A key that nobody knows is warned about and skipped, because files are
//! shared with members that know it; a value that is wrong, and a key that asks for what is not there, stop
//! the start. So does what would let an empty member start elsewhere than where its data are: a key that is
//! nearly one for a place, a place that is empty or was misread.

pub mod keys;
pub(crate) mod properties;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use node_wire::ids::ServerId;
use node_wire::logfile::Compression;

use crate::address::{ServerLine, server_id};
use crate::config::ConfigError;
use values::{
    compression, connections, duration, flag, kilobytes, list, milliseconds, number_of, path, port,
    probability, text,
};

/// The four-letter words that are answered.
pub(crate) const WHITELIST: &str = "4lw.commands.whitelist";

/// Where clients connect.
pub(crate) const CLIENT_PORT: &str = "clientPort";

/// Declares the keys that have one value each: the field, its type, the key, and how its value is read.
macro_rules! zoo_cfg {
    ($($(#[$meta:meta])* $field:ident: $type:ty = $key:literal by $read:expr;)*) => {
        /// What a file says; `None` and empty where it says nothing.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct ZooCfg {
            $($(#[$meta])* pub $field: Option<$type>,)*
            /// `server.N`.
            pub servers: BTreeMap<ServerId, ServerLine>,
            /// Every key as it was spelt, with its value: ZooKeeper's system properties.
            pub properties: BTreeMap<String, String>,
            /// One line for each key that does nothing.
            pub warnings: Vec<String>,
        }

        impl ZooCfg {
            /// The keys that have one value each.
            #[cfg(test)]
            const KEYS: &[&str] = &[$($key,)*];

            /// What this one says, and where it says nothing, what the other does.
            pub(crate) fn or(self, other: Self) -> Self {
                let mut properties = other.properties;
                properties.extend(self.properties);
                Self {
                    $($field: self.$field.or(other.$field),)*
                    servers: if self.servers.is_empty() { other.servers } else { self.servers },
                    properties,
                    warnings: self.warnings.into_iter().chain(other.warnings).collect(),
                }
            }

            /// Takes a key with one value in. False when it is none of these.
            fn set_one(&mut self, key: &str, value: &str) -> Result<bool, ConfigError> {
                match key {
                    $($key => self.$field = Some($read(key, value)?),)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

zoo_cfg! {
    /// The unit of other keys.
    tick_time: Duration = "tickTime" by milliseconds;
    /// In ticks.
    init_limit: u32 = "initLimit" by number_of("a number of ticks");
    /// In ticks.
    sync_limit: u32 = "syncLimit" by number_of("a number of ticks");
    /// Where the files are.
    data_dir: PathBuf = "dataDir" by path;
    /// Where the log is, if not there.
    data_log_dir: PathBuf = "dataLogDir" by path;
    /// A file with the server lines.
    dynamic_config_file: PathBuf = "dynamicConfigFile" by path;
    /// Where clients connect.
    client_port: u16 = "clientPort" by port;
    /// On which interface.
    client_port_address: String = "clientPortAddress" by text;
    /// Where clients with TLS connect; 0 for nowhere.
    secure_client_port: u16 = "secureClientPort" by port;
    /// On which interface.
    secure_client_port_address: String = "secureClientPortAddress" by text;
    /// Whether clients with TLS may come where those without do.
    client_unification: bool = "client.portUnification" by flag;
    /// Whether members dial each other with TLS.
    ssl_quorum: bool = "sslQuorum" by flag;
    /// Whether members take connections with TLS and without.
    quorum_unification: bool = "portUnification" by flag;
    /// Whether the stores of the members' TLS are read again when they change.
    ssl_quorum_reload: bool = "sslQuorumReloadCertFiles" by flag;
    /// How many may wait.
    listen_backlog: i32 = "clientPortListenBacklog" by number_of("a number of clients");
    /// Whether the kernel probes silent clients.
    client_keep_alive: bool = "clientTcpKeepAlive" by flag;
    /// Of one host.
    max_client_cnxns: u32 = "maxClientCnxns" by connections;
    /// Of all hosts.
    max_cnxns: u32 = "maxCnxns" by connections;
    /// The shortest time-out of a session; -1 for the usual.
    min_session_timeout: i32 = "minSessionTimeout" by number_of("a number of milliseconds");
    /// The longest.
    max_session_timeout: i32 = "maxSessionTimeout" by number_of("a number of milliseconds");
    /// How long a connection may say nothing.
    sessionless_timeout: Duration = "nio.sessionlessCnxnTimeout" by milliseconds;
    /// The longest request in bytes.
    jute_max_buffer: usize = "jute.maxbuffer" by number_of("a number of bytes");
    /// Requests under way.
    global_outstanding_limit: usize = "globalOutstandingLimit" by number_of("a number of requests");
    /// Requests under way beyond which nobody is read.
    throttle_max_requests: usize = "request_throttle_max_requests" by
        number_of("a number of requests, 0 for any");
    /// Tokens for connect requests.
    throttle_tokens: u32 = "connection_throttle_tokens" by number_of("a number of tokens, 0 for no limit");
    /// Until they come back.
    throttle_fill_time: Duration = "connection_throttle_fill_time" by milliseconds;
    /// How many come back.
    throttle_fill_count: u32 = "connection_throttle_fill_count" by number_of("a number of tokens");
    /// Between changes of the probability, in milliseconds, or -1.
    throttle_freeze_time: i64 = "connection_throttle_freeze_time" by
        number_of("a number of milliseconds, -1 for never");
    /// A step of the probability.
    throttle_drop_increase: f64 = "connection_throttle_drop_increase" by probability;
    /// A step back.
    throttle_drop_decrease: f64 = "connection_throttle_drop_decrease" by probability;
    /// When to step back.
    throttle_decrease_ratio: f64 = "connection_throttle_decrease_ratio" by probability;
    /// Whether sessions cost their weights.
    throttle_weights: bool = "connection_throttle_weight_enabled" by flag;
    /// Of a new session.
    throttle_global_weight: u32 = "connection_throttle_global_session_weight" by
        number_of("a number of tokens");
    /// Of a local session.
    throttle_local_weight: u32 = "connection_throttle_local_session_weight" by
        number_of("a number of tokens");
    /// Of one that comes back.
    throttle_renew_weight: u32 = "connection_throttle_renew_session_weight" by
        number_of("a number of tokens");
    /// Transactions between two snapshots.
    snap_count: u64 = "snapCount" by number_of("a number of transactions");
    /// By how many bytes a log grows.
    preallocate_bytes: u64 = "preAllocSize" by kilobytes;
    /// How long a log gets; -1 for any length.
    log_size_limit: i64 = "txnLogSizeLimitInKb" by number_of("a number of kilobytes, -1 for no limit");
    /// How many transactions are kept in memory.
    commit_log_count: usize = "commitLogCount" by number_of("a number of transactions");
    /// When an fsync is slow.
    fsync_warning: Duration = "fsync.warningthresholdms" by milliseconds;
    /// How snapshots are compressed.
    compression: Option<Compression> = "snapshot.compression.method" by compression;
    /// How many snapshots are kept.
    snap_retain_count: usize = "autopurge.snapRetainCount" by number_of("a number of snapshots");
    /// In hours.
    purge_interval: u64 = "autopurge.purgeInterval" by number_of("a number of hours, 0 for never");
    /// Peers on every interface.
    listen_on_all: bool = "quorumListenOnAllIPs" by flag;
    /// `participant` or `observer`.
    peer_type: String = "peerType" by text;
    /// The words that are answered.
    words: Vec<String> = "4lw.commands.whitelist" by list;
    /// Whether there is an admin server.
    admin_enabled: bool = "admin.enableServer" by flag;
    /// Its port.
    admin_port: u16 = "admin.serverPort" by port;
    /// Its interface.
    admin_address: String = "admin.serverAddress" by text;
    /// Where its commands begin.
    admin_url: String = "admin.commandURL" by text;
    /// How long its connections may be silent.
    admin_idle_timeout: Duration = "admin.idleTimeout" by milliseconds;
    /// A Java class.
    metrics_class: String = "metricsProvider.className" by text;
    /// The interface for metrics.
    metrics_host: String = "metricsProvider.httpHost" by text;
    /// The port for them.
    metrics_port: u16 = "metricsProvider.httpPort" by port;
    /// Our own: milliseconds, or a number with `ms` or `s` behind it.
    peer_timeout: Duration = "peerTimeout" by duration;
}

impl FromStr for ZooCfg {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Self::from_bytes(text.as_bytes())
    }
}

impl ZooCfg {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is none of properties, or a key has a value that it can't have.
    pub fn from_bytes(text: &[u8]) -> Result<Self, ConfigError> {
        let mut cfg = Self::default();
        for (key, value) in cfg.last_of_each(text)? {
            if properties::was_utf8(&value) {
                if keys::PLACES.contains(&keys::canonical(&key)) {
                    return Err(ConfigError::Encoding(key));
                }
                cfg.warnings.push(format!("the value of {key} is {}", properties::ENCODING));
            }
            cfg.set(&key, &value)?;
        }
        Ok(cfg)
    }

    /// Keys and values in the order of the file. Of a key that stands there twice the last counts, as in
    /// Java.
    fn last_of_each(&mut self, text: &[u8]) -> Result<Vec<(String, String)>, ConfigError> {
        let lines = properties::read(text)
            .map_err(|properties::Malformed { number, line }| ConfigError::Line { number, line })?;
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut places = BTreeMap::new();
        for properties::Pair { key, value } in lines.into_iter().filter_map(|line| line.pair) {
            match places.get(&key) {
                None => {
                    places.insert(key.clone(), pairs.len());
                    pairs.push((key, value));
                }
                Some(place) => {
                    let before: &mut (String, String) = &mut pairs[*place];
                    if before.1 != value {
                        self.warnings.push(format!("the key {key} stands there twice: the last one counts"));
                    }
                    before.1 = value;
                }
            }
        }
        Ok(pairs)
    }

    /// Takes one key in, in any spelling.
    pub(crate) fn set(&mut self, spelling: &str, value: &str) -> Result<(), ConfigError> {
        let key = keys::canonical(spelling);
        if let Some(why) = keys::refused(key, value) {
            return Err(ConfigError::Unsupported {
                key: spelling.to_owned(),
                value: value.to_owned(),
                why: why.to_owned(),
            });
        }
        if let Some(id) = key.strip_prefix("server.") {
            return self.set_server(key, id, value);
        }
        self.properties.insert(key.to_owned(), value.to_owned());
        if self.set_one(key, value)? {
            return Ok(());
        }
        if let Some(why) = keys::idle(key) {
            self.warnings.push(format!("the key {spelling} has no effect here: {why}"));
        } else if !keys::is_known(key) {
            if let Some(place) = keys::nearest(key).filter(|near| keys::PLACES.contains(near)) {
                return Err(ConfigError::NoPlace { key: spelling.to_owned(), place });
            }
            self.warnings.push(unknown(spelling));
        }
        Ok(())
    }

    /// Takes in what stands on Java's command line behind `-D`: ours and ZooKeeper's, others belong to Java.
    pub(crate) fn set_property(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        if name.starts_with("zookeeper.") || keys::is_known(keys::canonical(name)) {
            // Of Apache's start script, and about files that are not here.
            if name.starts_with("zookeeper.log.") || name == "zookeeper.root.logger" {
                return Ok(());
            }
            return self.set(name, value);
        }
        Ok(())
    }

    fn set_server(&mut self, key: &str, id: &str, value: &str) -> Result<(), ConfigError> {
        let id = server_id(id).ok_or_else(|| ConfigError::ServerKey(key.to_owned()))?;
        let line = value
            .parse::<ServerLine>()
            .map_err(|source| ConfigError::Address { key: key.to_owned(), source: source.into() })?;
        match self.servers.insert(id, line) {
            None => Ok(()),
            Some(_) => Err(ConfigError::ServerTwice(id)),
        }
    }
}

fn unknown(key: &str) -> String {
    match keys::nearest(key) {
        Some(near) => format!("the key {key} is not known and was skipped: is {near} meant?"),
        None => format!("the key {key} is not known and was skipped: check its spelling"),
    }
}

#[cfg(test)]
mod tests;
