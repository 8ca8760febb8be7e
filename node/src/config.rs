//! The configuration as it is meant: flags and file put together, defaults filled in, contradictions refused.
//!
//! A [`NodeConfig`] that exists is possible: nothing behind it checks again. Every refusal says what to do
//! next, because whoever reads it has a member that does not start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node_wire::ids::ServerId;
use node_wire::jute::limits::MAX_FRAME;

use crate::address::{AddressError, ById, DialLine, HostPort, ServerLine, UNSPECIFIED, server_id};
use crate::cli::Args;
use crate::words::Whitelist;
use crate::zoocfg::ZooCfg;

/// Silence between members after which one gives up on another.
const DEFAULT_PEER_TIMEOUT: Duration = Duration::from_millis(250);
/// Below five ticks of the core a busy machine would elect without need.
const MIN_PEER_TIMEOUT: Duration = Duration::from_millis(50);
const MAX_PEER_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_TICK_TIME: Duration = Duration::from_millis(2000);
const MIN_TICK_TIME: Duration = Duration::from_millis(10);
const MAX_TICK_TIME: Duration = Duration::from_secs(60);
const DEFAULT_INIT_LIMIT: u32 = 10;
const DEFAULT_SYNC_LIMIT: u32 = 5;
const DEFAULT_SNAP_COUNT: u64 = 100_000;
/// ZooKeeper raises anything lower without a word.
const MIN_SNAP_COUNT: u64 = 2;
const DEFAULT_MAX_CLIENT_CNXNS: u32 = 60;
const DEFAULT_SNAP_RETAIN_COUNT: usize = 3;
/// With fewer, one damaged snapshot would leave nothing.
const MIN_SNAP_RETAIN_COUNT: usize = 3;
/// A frame must hold a path and a header at least.
const MIN_JUTE_MAX_BUFFER: usize = 1024;
/// Where ZooKeeper keeps its files below dataDir; a Java member's data can be taken over.
const VERSION_DIR: &str = "version-2";

/// Everything that one run of a member is told.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// This member's number.
    pub id: ServerId,
    /// The ensemble; empty for an ensemble of one, which has no peers to listen to.
    pub servers: BTreeMap<ServerId, ServerLine>,
    /// Where to dial a peer instead of where its line says.
    pub dial: BTreeMap<ServerId, DialLine>,
    /// The directory with `myid` and the lock; the log is in a directory below it.
    pub data_dir: PathBuf,
    /// Where clients connect.
    pub client_addr: HostPort,
    /// Silence between members after which one gives up on another.
    pub peer_timeout: Duration,
    /// ZooKeeper's tickTime.
    pub tick_time: Duration,
    /// ZooKeeper's initLimit: the ticks in which a learner must have taken over its leader's history.
    pub init_limit: u32,
    /// ZooKeeper's syncLimit. Rules towards a Java member only.
    pub sync_limit: u32,
    /// Transactions between two snapshots.
    pub snap_count: u64,
    /// How many snapshots are kept, with the log behind the oldest; none are removed when there is no number.
    pub snap_retain_count: Option<usize>,
    /// Connections of one client host, 0 for any number.
    pub max_client_cnxns: u32,
    /// The longest request of a client.
    pub jute_max_buffer: usize,
    /// The four-letter words that are answered.
    pub words: Whitelist,
    /// Print transitions on stdout.
    pub events: bool,
    /// Note on disk how far the log is synchronized, before anything is acknowledged.
    pub note_synced: bool,
    /// Cut the log back to that note before it is opened, as if the machine had lost its memory.
    pub cut_to_synced: bool,
    /// Ask the kernel to kill this process when the thread that started it ends.
    pub die_with_parent: bool,
    /// What the operator should know; logged at the start.
    pub warnings: Vec<String>,
}

/// Why there is no configuration. Messages fit after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("read {path}: {source}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of the file is no pair.
    #[error("read line {number}, `{line}`: key=value is wanted")]
    Line {
        /// Counted from 1.
        number: usize,
        /// As it stands.
        line: String,
    },
    /// A value is not of its key's kind.
    #[error("read {key}={value}: {want} is wanted")]
    Value {
        /// The key.
        key: String,
        /// What it was given.
        value: String,
        /// What it takes.
        want: &'static str,
    },
    /// A `server.` key without a number.
    #[error("read the key {0}: a positive number must follow the dot")]
    ServerKey(String),
    /// A value that should be addresses.
    #[error("read {key}: {source}")]
    Address {
        /// The key.
        key: String,
        /// What is wrong with it.
        source: AddressError,
    },
    /// Two lines for one server.
    #[error("accept two lines for server {0}: remove one")]
    ServerTwice(ServerId),
    /// Something that must be given was not.
    #[error("find {0}")]
    Missing(&'static str),
    /// The myid file is not a number.
    #[error("read {path}: it must hold this member's number and nothing else", path = .0.display())]
    MyId(PathBuf),
    /// A number is out of its bounds.
    #[error("accept {what} of {value}: choose one from {min} to {max}")]
    OutOfBounds {
        /// Which setting.
        what: &'static str,
        /// As given.
        value: String,
        /// The least that works.
        min: String,
        /// The most.
        max: String,
    },
    /// Settings that can't hold together.
    #[error("accept {0}")]
    Impossible(String),
}

impl NodeConfig {
    /// Puts flags, file and defaults together.
    ///
    /// # Errors
    /// When something is missing, wrong or contradictory.
    pub fn from_args(args: &Args) -> Result<Self, ConfigError> {
        let mut file = match &args.config {
            None => ZooCfg::default(),
            Some(path) => fs::read_to_string(path)
                .map_err(|source| ConfigError::File { path: path.clone(), source })?
                .parse()?,
        };
        let data_dir = args
            .data_dir
            .clone()
            .or(file.data_dir.take())
            .ok_or(ConfigError::Missing("a data directory: give --data-dir or the key dataDir"))?;
        refuse_second_dir(&data_dir, file.data_log_dir.as_deref())?;
        let id = match args.id {
            Some(id) => id,
            None => read_my_id(&data_dir)?,
        };
        let flagged = by_id(&args.servers)?;
        let servers = if flagged.is_empty() { std::mem::take(&mut file.servers) } else { flagged };
        let client_addr = client_addr(args, &file, servers.get(&id))?;
        let config = Self {
            id,
            servers,
            dial: by_id(&args.dial)?,
            data_dir,
            client_addr,
            peer_timeout: args
                .peer_timeout_ms
                .map(Duration::from_millis)
                .or(file.peer_timeout)
                .unwrap_or(DEFAULT_PEER_TIMEOUT),
            tick_time: args
                .tick_time_ms
                .map(Duration::from_millis)
                .or(file.tick_time)
                .unwrap_or(DEFAULT_TICK_TIME),
            init_limit: file.init_limit.unwrap_or(DEFAULT_INIT_LIMIT),
            sync_limit: file.sync_limit.unwrap_or(DEFAULT_SYNC_LIMIT),
            snap_count: args.snap_count.or(file.snap_count).unwrap_or(DEFAULT_SNAP_COUNT),
            snap_retain_count: retained(&file),
            max_client_cnxns: args
                .max_client_cnxns
                .or(file.max_client_cnxns)
                .unwrap_or(DEFAULT_MAX_CLIENT_CNXNS),
            jute_max_buffer: file.jute_max_buffer.unwrap_or(MAX_FRAME),
            words: Whitelist::new(file.words.as_deref()).map_err(ConfigError::Impossible)?,
            events: args.events,
            note_synced: false,
            cut_to_synced: false,
            die_with_parent: false,
            warnings: file.warnings,
        };
        config.check()?;
        Ok(config)
    }

    /// Where the log, the snapshots and the epoch files are.
    pub fn log_dir(&self) -> PathBuf {
        self.data_dir.join(VERSION_DIR)
    }

    /// The voters, this member included.
    pub fn voters(&self) -> BTreeSet<ServerId> {
        self.servers.keys().copied().chain([self.id]).collect()
    }

    /// Where to dial a peer's election port.
    pub(crate) fn election_target(&self, peer: ServerId) -> Option<&HostPort> {
        let line = self.servers.get(&peer)?;
        Some(self.dial.get(&peer).map_or(&line.election, |dial| &dial.election))
    }

    /// Where to dial a peer's quorum port.
    pub(crate) fn quorum_target(&self, peer: ServerId) -> Option<&HostPort> {
        let line = self.servers.get(&peer)?;
        Some(self.dial.get(&peer).map_or(&line.quorum, |dial| &dial.quorum))
    }

    fn check(&self) -> Result<(), ConfigError> {
        bounds("peerTimeout", self.peer_timeout, MIN_PEER_TIMEOUT, MAX_PEER_TIMEOUT, in_ms)?;
        bounds("tickTime", self.tick_time, MIN_TICK_TIME, MAX_TICK_TIME, in_ms)?;
        bounds("initLimit", self.init_limit, 1, u32::MAX, plain)?;
        bounds("syncLimit", self.sync_limit, 1, u32::MAX, plain)?;
        bounds("snapCount", self.snap_count, MIN_SNAP_COUNT, u64::MAX, plain)?;
        bounds("jute.maxbuffer", self.jute_max_buffer, MIN_JUTE_MAX_BUFFER, MAX_FRAME, plain)?;
        if let Some(count) = self.snap_retain_count {
            bounds("autopurge.snapRetainCount", count, MIN_SNAP_RETAIN_COUNT, usize::MAX, plain)?;
        }
        self.check_servers()?;
        self.check_dial()
    }

    fn check_servers(&self) -> Result<(), ConfigError> {
        if self.servers.is_empty() {
            return Ok(());
        }
        let impossible = |message: String| Err(ConfigError::Impossible(message));
        let Some(own) = self.servers.get(&self.id) else {
            return impossible(format!(
                "member {} in an ensemble without it: add a line for server {} or correct the id",
                self.id, self.id
            ));
        };
        let mut seen = BTreeMap::new();
        for (id, line) in &self.servers {
            for address in [&line.quorum, &line.election] {
                if address.port == 0 {
                    return impossible(format!("port 0 for server {id}: its peers must know the port"));
                }
                if let Some(other) = seen.insert(address, id) {
                    return impossible(format!(
                        "{address} twice, for server {other} and for server {id}: give each port its own"
                    ));
                }
            }
        }
        if [own.quorum.port, own.election.port].contains(&self.client_addr.port) {
            return impossible(format!(
                "port {} for clients and for peers: give each its own",
                self.client_addr.port
            ));
        }
        Ok(())
    }

    fn check_dial(&self) -> Result<(), ConfigError> {
        match self.dial.keys().find(|id| **id == self.id || !self.servers.contains_key(id)) {
            None => Ok(()),
            Some(id) => Err(ConfigError::Impossible(format!(
                "a place to dial server {id}, which is not a peer of this member: remove it"
            ))),
        }
    }
}

fn bounds<T: PartialOrd + Copy>(
    what: &'static str,
    value: T,
    min: T,
    max: T,
    show: impl Fn(T) -> String,
) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfBounds { what, value: show(value), min: show(min), max: show(max) })
}

fn in_ms(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

fn plain(number: impl ToString) -> String {
    number.to_string()
}

fn by_id<T: Clone>(lines: &[ById<T>]) -> Result<BTreeMap<ServerId, T>, ConfigError> {
    let mut map = BTreeMap::new();
    for ById { id, line } in lines {
        if map.insert(*id, line.clone()).is_some() {
            return Err(ConfigError::ServerTwice(*id));
        }
    }
    Ok(map)
}

/// ZooKeeper can keep its log on a disk apart. Here snapshots are written in the background and never stand
/// in the log's way, so one directory is enough; but whoever asked for two should not find one.
fn refuse_second_dir(data_dir: &Path, data_log_dir: Option<&Path>) -> Result<(), ConfigError> {
    match data_log_dir {
        Some(log_dir) if log_dir != data_dir => Err(ConfigError::Impossible(format!(
            "a dataLogDir of its own ({}): log and snapshots share one directory here, remove the key",
            log_dir.display()
        ))),
        _ => Ok(()),
    }
}

fn read_my_id(data_dir: &Path) -> Result<ServerId, ConfigError> {
    let path = data_dir.join("myid");
    match fs::read_to_string(&path) {
        Ok(text) => server_id(&text).ok_or(ConfigError::MyId(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ConfigError::Missing(
            "this member's number: give --id or write it to the file myid in the data directory",
        )),
        Err(source) => Err(ConfigError::File { path, source }),
    }
}

fn client_addr(args: &Args, file: &ZooCfg, own: Option<&ServerLine>) -> Result<HostPort, ConfigError> {
    if let Some(addr) = &args.client_addr {
        return Ok(addr.clone());
    }
    if let Some(port) = file.client_port {
        let host = file.client_port_address.clone().unwrap_or_else(|| UNSPECIFIED.to_owned());
        return Ok(HostPort::new(host, port));
    }
    own.and_then(|line| line.client.clone()).ok_or(ConfigError::Missing(
        "an address for clients: give --client-addr, the key clientPort, or a port behind `;` in the server's line",
    ))
}

/// Old snapshots are removed behind each new one; an interval of 0, said outright, keeps them all.
fn retained(file: &ZooCfg) -> Option<usize> {
    match file.purge_interval {
        Some(0) => None,
        Some(_) | None => Some(file.snap_retain_count.unwrap_or(DEFAULT_SNAP_RETAIN_COUNT)),
    }
}
