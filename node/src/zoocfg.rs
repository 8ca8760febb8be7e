//! A configuration file with ZooKeeper's keys, as it is written.
//!
//! The format is that of Java's properties as far as anybody uses it in a zoo.cfg: `key=value` lines and
//! comments. Every key is read into the type it has; whether the values go together is decided later, when
//! flags are known too. A key that means nothing here is warned about and skipped, because files are shared
//! with members that know it; a value that is wrong stops the start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use node_wire::ids::ServerId;

use crate::address::{ServerLine, server_id};
use crate::config::ConfigError;

/// The four-letter words that are answered.
pub(crate) const WHITELIST: &str = "4lw.commands.whitelist";

/// Where clients connect.
pub(crate) const CLIENT_PORT: &str = "clientPort";

/// Keys of ZooKeeper's that are sound but do nothing here yet, or need not do anything.
const WITHOUT_EFFECT: &[&str] = &[
    "admin.enableServer",
    "admin.serverPort",
    "electionAlg",
    "forceSync",
    "leaderServes",
    "localSessionsEnabled",
    "preAllocSize",
    "reconfigEnabled",
    "standaloneEnabled",
    "syncEnabled",
];

/// What a file says; `None` and empty where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZooCfg {
    /// `tickTime`.
    pub tick_time: Option<Duration>,
    /// `initLimit`, in ticks.
    pub init_limit: Option<u32>,
    /// `syncLimit`, in ticks.
    pub sync_limit: Option<u32>,
    /// `dataDir`.
    pub data_dir: Option<PathBuf>,
    /// `dataLogDir`.
    pub data_log_dir: Option<PathBuf>,
    /// `clientPort`.
    pub client_port: Option<u16>,
    /// `clientPortAddress`.
    pub client_port_address: Option<String>,
    /// `server.N`.
    pub servers: BTreeMap<ServerId, ServerLine>,
    /// `maxClientCnxns`.
    pub max_client_cnxns: Option<u32>,
    /// `snapCount`.
    pub snap_count: Option<u64>,
    /// `4lw.commands.whitelist`, split at commas.
    pub words: Option<Vec<String>>,
    /// `autopurge.snapRetainCount`.
    pub snap_retain_count: Option<usize>,
    /// `autopurge.purgeInterval`, in hours.
    pub purge_interval: Option<u64>,
    /// `jute.maxbuffer`, in bytes.
    pub jute_max_buffer: Option<usize>,
    /// `peerTimeout`, our own: milliseconds, or a number with `ms` or `s` behind it.
    pub peer_timeout: Option<Duration>,
    /// What is said about clients, by key.
    pub rules: BTreeMap<String, String>,
    /// One line for each key that was skipped.
    pub warnings: Vec<String>,
}

impl FromStr for ZooCfg {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut cfg = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                return Err(ConfigError::Line { number: number + 1, line: line.to_owned() });
            };
            cfg.set(key.trim(), value.trim())?;
        }
        Ok(cfg)
    }
}

impl ZooCfg {
    /// What this one says, and where it says nothing, what the other does.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            tick_time: self.tick_time.or(other.tick_time),
            init_limit: self.init_limit.or(other.init_limit),
            sync_limit: self.sync_limit.or(other.sync_limit),
            data_dir: self.data_dir.or(other.data_dir),
            data_log_dir: self.data_log_dir.or(other.data_log_dir),
            client_port: self.client_port.or(other.client_port),
            client_port_address: self.client_port_address.or(other.client_port_address),
            servers: if self.servers.is_empty() { other.servers } else { self.servers },
            max_client_cnxns: self.max_client_cnxns.or(other.max_client_cnxns),
            snap_count: self.snap_count.or(other.snap_count),
            words: self.words.or(other.words),
            snap_retain_count: self.snap_retain_count.or(other.snap_retain_count),
            purge_interval: self.purge_interval.or(other.purge_interval),
            jute_max_buffer: self.jute_max_buffer.or(other.jute_max_buffer),
            peer_timeout: self.peer_timeout.or(other.peer_timeout),
            rules: other.rules.into_iter().chain(self.rules).collect(),
            warnings: self.warnings.into_iter().chain(other.warnings).collect(),
        }
    }

    /// Takes one key in.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        match key {
            "tickTime" => {
                self.tick_time = Some(Duration::from_millis(number(key, value, "a number of milliseconds")?));
            }
            "initLimit" => self.init_limit = Some(number(key, value, "a number of ticks")?),
            "syncLimit" => self.sync_limit = Some(number(key, value, "a number of ticks")?),
            "dataDir" => self.data_dir = Some(PathBuf::from(value)),
            "dataLogDir" => self.data_log_dir = Some(PathBuf::from(value)),
            CLIENT_PORT => self.client_port = Some(number(key, value, "a port number")?),
            "clientPortAddress" => self.client_port_address = Some(value.to_owned()),
            "maxClientCnxns" => {
                self.max_client_cnxns = Some(number(key, value, "a number of connections, 0 for any")?);
            }
            "snapCount" => self.snap_count = Some(number(key, value, "a number of transactions")?),
            WHITELIST => {
                let words = value.split(',').map(|word| word.trim().to_owned());
                self.words = Some(words.filter(|word| !word.is_empty()).collect());
            }
            "autopurge.snapRetainCount" => {
                self.snap_retain_count = Some(number(key, value, "a number of snapshots")?);
            }
            "autopurge.purgeInterval" => {
                self.purge_interval = Some(number(key, value, "a number of hours, 0 for never")?);
            }
            "jute.maxbuffer" => self.jute_max_buffer = Some(number(key, value, "a number of bytes")?),
            "peerTimeout" => self.peer_timeout = Some(duration(key, value)?),
            _ if crate::rules::KEYS.contains(&key) => {
                self.rules.insert(key.to_owned(), value.to_owned());
            }
            _ => match key.strip_prefix("server.") {
                Some(id) => self.set_server(key, id, value)?,
                None => self.warnings.push(skipped(key)),
            },
        }
        Ok(())
    }

    fn set_server(&mut self, key: &str, id: &str, value: &str) -> Result<(), ConfigError> {
        let id = server_id(id).ok_or_else(|| ConfigError::ServerKey(key.to_owned()))?;
        let line = value.parse().map_err(|source| ConfigError::Address { key: key.to_owned(), source })?;
        match self.servers.insert(id, line) {
            None => Ok(()),
            Some(_) => Err(ConfigError::ServerTwice(id)),
        }
    }
}

fn skipped(key: &str) -> String {
    if WITHOUT_EFFECT.contains(&key) {
        format!("the key {key} has no effect here")
    } else {
        format!("the key {key} is not known and was skipped: check its spelling")
    }
}

fn number<T: FromStr>(key: &str, value: &str, want: &'static str) -> Result<T, ConfigError> {
    value.parse().map_err(|_| ConfigError::Value { key: key.to_owned(), value: value.to_owned(), want })
}

fn duration(key: &str, value: &str) -> Result<Duration, ConfigError> {
    let (digits, unit_ms) = if let Some(digits) = value.strip_suffix("ms") {
        (digits, 1)
    } else if let Some(digits) = value.strip_suffix('s') {
        (digits, 1000)
    } else {
        (value, 1)
    };
    let count: u32 = number(key, digits.trim(), "a duration such as 250, 250ms or 1s")?;
    Ok(Duration::from_millis(u64::from(count) * unit_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zookeepers_keys_are_read() {
        let cfg: ZooCfg = "\
            # a comment\n\
            tickTime = 2000\n\
            initLimit=10\r\n\
            syncLimit=5\n\
            dataDir=/var/lib/zookeeper\n\
            clientPort=2181\n\
            clientPortAddress=127.0.0.1\n\
            server.1=zoo1:2888:3888\n\
            server.2=zoo2:2888:3888:participant;2181\n\
            maxClientCnxns=0\n\
            snapCount=1000\n\
            4lw.commands.whitelist=ruok, srvr,\n\
            autopurge.snapRetainCount=3\n\
            autopurge.purgeInterval=1\n\
            \n\
            peerTimeout=1s\n"
            .parse()
            .expect("a sound file");
        assert_eq!(cfg.tick_time, Some(Duration::from_secs(2)));
        assert_eq!((cfg.init_limit, cfg.sync_limit), (Some(10), Some(5)));
        assert_eq!(cfg.client_port_address.as_deref(), Some("127.0.0.1"));
        assert_eq!(cfg.servers.len(), 2);
        assert_eq!(cfg.words, Some(vec!["ruok".to_owned(), "srvr".to_owned()]));
        assert_eq!(cfg.peer_timeout, Some(Duration::from_secs(1)));
        assert_eq!(cfg.warnings, Vec::<String>::new());
    }

    #[test]
    fn unknown_keys_are_warned_about_and_known_ones_without_effect_too() {
        let cfg: ZooCfg = "tickTimes=1\nelectionAlg=3".parse().expect("warnings only");
        assert_eq!(
            cfg.warnings,
            [
                "the key tickTimes is not known and was skipped: check its spelling",
                "the key electionAlg has no effect here",
            ]
        );
    }

    #[test]
    fn wrong_values_are_refused_with_what_was_wanted() {
        let table = [
            ("tickTime=fast", "read tickTime=fast: a number of milliseconds is wanted"),
            ("clientPort=70000", "read clientPort=70000: a port number is wanted"),
            ("peerTimeout=5m", "read peerTimeout=5m: a duration such as 250, 250ms or 1s is wanted"),
            ("peerTimeout", "read line 1, `peerTimeout`: key=value is wanted"),
            ("server.zero=a:1:2", "read the key server.zero: a positive number must follow the dot"),
            ("server.1=a:1:2\nserver.1=a:1:2", "accept two lines for server 1: remove one"),
        ];
        for (text, message) in table {
            let error = text.parse::<ZooCfg>().expect_err(text);
            assert_eq!(plain(&error), message, "{text}");
        }
    }

    /// Without the quotes that mark values in messages.
    fn plain(error: &ConfigError) -> String {
        error.to_string()
    }
}
