//! The configuration as it is meant: flags, environment and file put together, in this order of rank,
//! defaults filled in, contradictions refused.
//!
//! A [`NodeConfig`] that exists is possible: nothing behind it checks again.

mod error;
mod limits;
mod monitoring;
mod security;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node_core::ClientRules;
use node_wire::ids::{ServerId, Zxid};
use node_wire::jute::limits::{LARGEST_FRAME, MAX_FRAME};
use node_wire::logfile::Compression;

use crate::address::{ById, DialLine, HostPort, ServerLine, ServerRole, UNSPECIFIED, server_id};
use crate::cli::Args;
use crate::dynamic::version_of;
use crate::environment::{Environment, MY_ID};
use crate::rules::{STANDALONE, client_rules};
use crate::whitelist::Whitelist;
use crate::zoocfg::{WHITELIST, ZooCfg};

pub use error::ConfigError;
pub(crate) use error::is_secret;
pub use limits::{ClientLimits, LogLimits, Throttling};
pub use monitoring::{AdminServer, Monitoring};
#[cfg(test)]
pub(crate) use security::KEYS as SECURITY_KEYS;
pub use security::Security;

/// Silence between members after which one gives up on another.
const DEFAULT_PEER_TIMEOUT: Duration = Duration::from_millis(250);
/// Below five ticks of the core a busy machine would elect without need.
const MIN_PEER_TIMEOUT: Duration = Duration::from_millis(50);
const MAX_PEER_TIMEOUT: Duration = Duration::from_secs(60);
/// A step may work that long.
const STEP_LIMIT: Duration = Duration::from_secs(10);
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
/// The key for another number.
const RETAIN_COUNT: &str = "autopurge.snapRetainCount";
/// More would hold too much of the history in memory, whatever its transactions weigh.
const MAX_COMMIT_LOG_COUNT: usize = 1 << 20;
/// With fewer, one damaged snapshot would leave nothing.
const MIN_SNAP_RETAIN_COUNT: usize = 3;
/// A frame must hold a path and a header at least.
const MIN_JUTE_MAX_BUFFER: usize = 1024;
/// Where ZooKeeper keeps its files below dataDir; a Java member's data can be taken over.
const VERSION_DIR: &str = "version-2";
/// Holds a member's number, in its data directory.
const MY_ID_FILE: &str = "myid";
/// The number of a member that has no peers.
const LONE_ID: ServerId = ServerId(1);
/// What is to be done about it.
const NO_CLIENT_ADDR: &str = "an address for clients: give --client-addr, the key clientPort, or a port \
    behind `;` in the server's line";
/// Where ZooKeeper's clients look.
pub(crate) const DEFAULT_CLIENT_PORT: u16 = 2181;

/// Everything that one run of a member is told.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// This member's number.
    pub id: ServerId,
    /// The ensemble; empty for an ensemble of one, which has no peers to listen to.
    pub servers: BTreeMap<ServerId, ServerLine>,
    /// Where to dial a peer instead of where its line says.
    pub dial: BTreeMap<ServerId, DialLine>,
    /// The directory with `myid`; snapshots and epoch files are in a directory below it, and so is the log.
    pub data_dir: PathBuf,
    /// The directory below which the log is instead.
    pub data_log_dir: Option<PathBuf>,
    /// How snapshots are compressed.
    pub compression: Option<Compression>,
    /// Where clients connect.
    pub client_addr: HostPort,
    /// Whether they need TLS for it, and where else they may connect.
    pub security: Security,
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
    /// Nobody said how many, so with a larger tree it is more.
    pub snap_count_grows: bool,
    /// How many snapshots are kept, with the log behind the oldest; none are removed when there is no number.
    pub snap_retain_count: Option<usize>,
    /// Connections of one client host, 0 for any number.
    pub max_client_cnxns: u32,
    /// The longest request of a client.
    pub jute_max_buffer: usize,
    /// What clients may do.
    pub rules: ClientRules,
    /// The zoo.cfg in which the membership is kept when it changes.
    pub zoo_cfg: Option<PathBuf>,
    /// What else clients may cost.
    pub limits: ClientLimits,
    /// The shortest and the longest time-out of a session, in milliseconds.
    pub session_timeouts_ms: (i32, i32),
    /// How log files grow.
    pub log: LogLimits,
    /// Committed transactions that are kept in memory for members that are behind.
    pub commit_log_count: usize,
    /// Listen to peers on every interface.
    pub listen_on_all: bool,
    /// Where the member is looked at.
    pub monitoring: Monitoring,
    /// What was said in ZooKeeper's keys, by their names.
    pub properties: BTreeMap<String, String>,
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
    /// How the process drives its member: no flag, for whoever runs the process's code.
    pub manner: Manner,
}

/// How a process drives its member. The default is what an ensemble in service wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// For how long the log's writer lets work gather before each fsync.
    pub linger: Duration,
    /// Clients are heard before peers, as in a server with a thread for each connection, which knows no order
    /// between them.
    pub clients_first: bool,
    /// For how long one step may work before the member passes for stuck, and its peers give up on it.
    pub step_limit: Duration,
}

impl Default for Manner {
    fn default() -> Self {
        Self { linger: Duration::ZERO, clients_first: false, step_limit: STEP_LIMIT }
    }
}

impl NodeConfig {
    /// Puts flags, file and defaults together, without a look at the environment.
    ///
    /// # Errors
    /// When something is missing, wrong or contradictory.
    pub fn from_args(args: &Args) -> Result<Self, ConfigError> {
        Self::from_args_in(args, Environment::default())
    }

    /// Puts flags, environment, file and defaults together.
    ///
    /// # Errors
    /// When something is missing, wrong or contradictory.
    pub fn from_args_in(args: &Args, mut environment: Environment) -> Result<Self, ConfigError> {
        environment.overrule(args);
        let mut file = overruled_file(args, &environment)?;
        let data_dir = args.data_dir.clone().or(file.data_dir.take()).ok_or(ConfigError::Missing(
            "a data directory: give --data-dir, the variable ZOO_DATA_DIR or the key dataDir",
        ))?;
        let data_log_dir = file.data_log_dir.take();
        let flagged = by_id(&args.servers)?;
        let from_file = flagged.is_empty() && environment.cfg.servers.is_empty();
        let servers = if flagged.is_empty() { std::mem::take(&mut file.servers) } else { flagged };
        let id = own_id(args, &environment, &data_dir, servers.is_empty())?;
        let plain = match &args.client_addr {
            Some(addr) => Some(addr.clone()),
            None => client_addr(&environment, &file, &servers, id)?,
        };
        let (client_addr, security) =
            Security::new(plain, &file)?.ok_or(ConfigError::Missing(NO_CLIENT_ADDR))?;
        let role = servers.get(&id).map_or(ServerRole::Participant, |line| line.role);
        refuse_other_role(file.peer_type.as_deref(), role)?;
        let version = file.dynamic_config_file.as_deref().filter(|_| from_file).and_then(version_of);
        let rules = rules_of(&file, &servers, &security, version.unwrap_or_default())?;
        let words = whitelist(&file, &environment, rules.read_only_mode)?;
        file.warnings.extend(Security::warnings(&file.properties));
        let tick_time =
            args.tick_time_ms.map(Duration::from_millis).or(file.tick_time).unwrap_or(DEFAULT_TICK_TIME);
        let config = Self {
            id,
            servers,
            dial: by_id(&args.dial)?,
            data_dir,
            data_log_dir,
            compression: file.compression.flatten(),
            client_addr,
            security,
            peer_timeout: args
                .peer_timeout_ms
                .map(Duration::from_millis)
                .or(file.peer_timeout)
                .unwrap_or(DEFAULT_PEER_TIMEOUT),
            tick_time,
            init_limit: file.init_limit.unwrap_or(DEFAULT_INIT_LIMIT),
            sync_limit: file.sync_limit.unwrap_or(DEFAULT_SYNC_LIMIT),
            snap_count: args.snap_count.or(file.snap_count).unwrap_or(DEFAULT_SNAP_COUNT),
            snap_count_grows: args.snap_count.or(file.snap_count).is_none(),
            snap_retain_count: retained(&file),
            max_client_cnxns: args
                .max_client_cnxns
                .or(file.max_client_cnxns)
                .unwrap_or(DEFAULT_MAX_CLIENT_CNXNS),
            jute_max_buffer: max_buffer(&file),
            rules,
            zoo_cfg: args.config.clone().filter(|_| from_file),
            limits: ClientLimits::new(&file),
            session_timeouts_ms: limits::session_timeouts(&file, tick_time)?,
            log: LogLimits::new(&file)?,
            commit_log_count: file.commit_log_count.unwrap_or(node_core::JOURNAL_ENTRIES),
            listen_on_all: file.listen_on_all.unwrap_or(false),
            monitoring: Monitoring::new(&file)?,
            words,
            events: args.events,
            note_synced: false,
            cut_to_synced: false,
            die_with_parent: false,
            properties: file.properties,
            warnings: file.warnings,
            manner: Manner::default(),
        };
        config.check(&environment)?;
        Ok(config)
    }

    /// Where the snapshots and the epoch files are.
    pub fn version_dir(&self) -> PathBuf {
        self.data_dir.join(VERSION_DIR)
    }

    /// Where the log is: in the same place, unless `dataLogDir` names another.
    pub fn log_dir(&self) -> PathBuf {
        self.data_log_dir.as_ref().unwrap_or(&self.data_dir).join(VERSION_DIR)
    }

    /// The voters. A member without peers is one.
    pub fn voters(&self) -> BTreeSet<ServerId> {
        if self.servers.is_empty() {
            return [self.id].into();
        }
        self.with_role(ServerRole::Participant)
    }

    /// The members without a vote.
    pub fn observers(&self) -> BTreeSet<ServerId> {
        self.with_role(ServerRole::Observer)
    }

    fn with_role(&self, role: ServerRole) -> BTreeSet<ServerId> {
        self.servers.iter().filter(|(_, line)| line.role == role).map(|(id, _)| *id).collect()
    }

    /// Refuses numbers out of bounds and servers that contradict each other. An error names what was written:
    /// the key of the file, or the variable of the environment that overrules it.
    fn check(&self, environment: &Environment) -> Result<(), ConfigError> {
        let named = |key| environment.name_of(key);
        check_bounds(named("peerTimeout"), self.peer_timeout, MIN_PEER_TIMEOUT, MAX_PEER_TIMEOUT, in_ms)?;
        check_bounds(named("tickTime"), self.tick_time, MIN_TICK_TIME, MAX_TICK_TIME, in_ms)?;
        check_bounds(named("initLimit"), self.init_limit, 1, u32::MAX, as_number)?;
        check_bounds(named("syncLimit"), self.sync_limit, 1, u32::MAX, as_number)?;
        check_bounds(named("snapCount"), self.snap_count, MIN_SNAP_COUNT, u64::MAX, as_number)?;
        check_bounds(named("commitLogCount"), self.commit_log_count, 1, MAX_COMMIT_LOG_COUNT, as_number)?;
        check_bounds(named("clientPortListenBacklog"), self.limits.backlog, 1, i32::MAX, as_number)?;
        check_bounds(named("globalOutstandingLimit"), self.limits.outstanding, 1, usize::MAX, as_number)?;
        check_bounds(
            named("jute.maxbuffer"),
            self.jute_max_buffer,
            MIN_JUTE_MAX_BUFFER,
            LARGEST_FRAME,
            as_number,
        )?;
        // Also where nothing is removed yet: whoever adds the interval later counts on it.
        if let Some(count) = self.properties.get(RETAIN_COUNT).and_then(|said| said.trim().parse().ok()) {
            let name = named(RETAIN_COUNT);
            check_bounds(name, count, MIN_SNAP_RETAIN_COUNT, usize::MAX, as_number)?;
        }
        self.check_servers().map_err(|error| match (error, environment.about_servers()) {
            (ConfigError::Impossible(what), Some(variables)) => {
                ConfigError::Impossible(format!("{what} (the environment sets {variables})"))
            }
            (error, _) => error,
        })?;
        self.check_dial()
    }

    /// True for a member that ZooKeeper would call standalone: without an ensemble, or with a line of its own
    /// alone unless `standaloneEnabled=false` makes an ensemble of it.
    pub(crate) fn stands_alone(&self) -> bool {
        let makes_ensemble =
            self.properties.get(STANDALONE).is_some_and(|said| said == "false" || said == "no");
        self.servers.is_empty() || self.servers.len() == 1 && !makes_ensemble
    }

    /// Refuses an ensemble without this member or without voters, and ports that are unknown or given twice.
    fn check_servers(&self) -> Result<(), ConfigError> {
        if self.servers.is_empty() {
            return Ok(());
        }
        let impossible = |message: String| Err(ConfigError::Impossible(message));
        let Some(own) = self.servers.get(&self.id) else {
            if !self.rules.membership.ends_with("version=0") {
                return impossible(format!(
                    "member {} in an ensemble without it, since a reconfiguration removed it: let it join \
                     anew, with the lines of all members and its own in the configuration",
                    self.id
                ));
            }
            return impossible(format!(
                "member {} in an ensemble without it: add a line for server {} or correct the id",
                self.id, self.id
            ));
        };
        if self.voters().is_empty() {
            return impossible("an ensemble of observers: make one server a participant at least".to_owned());
        }
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

    /// Refuses a place to dial for what is not a peer.
    fn check_dial(&self) -> Result<(), ConfigError> {
        match self.dial.keys().find(|id| **id == self.id || !self.servers.contains_key(id)) {
            None => Ok(()),
            Some(id) => Err(ConfigError::Impossible(format!(
                "a place to dial server {id}, which is not a peer of this member: remove it"
            ))),
        }
    }
}

/// Refuses a value outside of `min..=max`; `show` writes the three for the message.
fn check_bounds<T: PartialOrd + Copy>(
    what: &str,
    value: T,
    min: T,
    max: T,
    show: impl Fn(T) -> String,
) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfBounds {
        what: what.to_owned(),
        value: show(value),
        min: show(min),
        max: show(max),
    })
}

fn in_ms(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

fn as_number(number: impl ToString) -> String {
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

/// The key says again what the own server line says.
fn refuse_other_role(peer_type: Option<&str>, own: ServerRole) -> Result<(), ConfigError> {
    let own = own.name();
    match peer_type {
        Some(role) if !role.eq_ignore_ascii_case(own) => Err(ConfigError::Unsupported {
            key: "peerType".to_owned(),
            value: role.to_owned(),
            why: format!("the server line of this member says {own}: correct one of them"),
        }),
        Some(_) | None => Ok(()),
    }
}

/// The longest request in bytes.
fn max_buffer(file: &ZooCfg) -> usize {
    file.jute_max_buffer.unwrap_or(MAX_FRAME)
}

/// What clients may do. `version` is that of the membership.
fn rules_of(
    file: &ZooCfg,
    servers: &BTreeMap<ServerId, ServerLine>,
    security: &Security,
    version: Zxid,
) -> Result<ClientRules, ConfigError> {
    let mut rules = client_rules(&file.properties, servers, max_buffer(file), version)?;
    rules.required_schemes = security.required_schemes(&file.properties)?;
    rules.providers = security.providers(&file.properties);
    Ok(rules)
}

/// The file, and what flags and environment say instead of it.
fn overruled_file(args: &Args, environment: &Environment) -> Result<ZooCfg, ConfigError> {
    let file = match &args.config {
        None => ZooCfg::default(),
        Some(path) => ZooCfg::from_bytes(&read_file(path)?)?,
    };
    let mut flags = ZooCfg::default();
    for property in &args.properties {
        let (name, value) = property.split_once('=').unwrap_or((property, ""));
        flags.set_property(name.trim(), value.trim())?;
    }
    let file = flags.or(environment.cfg.clone()).or(file);
    let dynamic = file.dynamic_config_file.as_deref().map(read_dynamic).transpose()?;
    Ok(match dynamic {
        Some(dynamic) if args.servers.is_empty() => file.or(dynamic),
        Some(_) | None => file,
    })
}

/// The server lines that ZooKeeper keeps apart when the ensemble may change.
fn read_dynamic(path: &Path) -> Result<ZooCfg, ConfigError> {
    let mut read = ZooCfg::from_bytes(&read_file(path)?)?;
    // The number of this configuration, which some write there and not into the file's name.
    read.properties.remove("version");
    if let Some(key) = read.properties.keys().next() {
        // A server's line that is misspelt would be a smaller ensemble.
        return Err(ConfigError::Impossible(format!(
            "the key {key} in the dynamic file {}: server.N alone may stand there",
            path.display()
        )));
    }
    Ok(ZooCfg { servers: read.servers, warnings: read.warnings, ..ZooCfg::default() })
}

fn read_file(path: &Path) -> Result<Vec<u8>, ConfigError> {
    fs::read(path).map_err(|source| ConfigError::File { path: path.to_path_buf(), source })
}

fn own_id(
    args: &Args,
    environment: &Environment,
    data_dir: &Path,
    alone: bool,
) -> Result<ServerId, ConfigError> {
    if let Some(id) = args.id {
        return Ok(id);
    }
    match (environment.id, read_my_id(data_dir)?) {
        (Some(id), Some(other)) if id != other => Err(ConfigError::Impossible(format!(
            "{MY_ID}={id} for the data of member {other} (see {}): give each member a volume of its own, or \
             correct the variable",
            data_dir.join(MY_ID_FILE).display()
        ))),
        (Some(id), _) | (None, Some(id)) => Ok(id),
        (None, None) if alone => Ok(LONE_ID),
        (None, None) => Err(ConfigError::Missing(
            "this member's number: give --id, the variable ZOO_MY_ID, or write it to the file myid in the \
             data directory",
        )),
    }
}

fn read_my_id(data_dir: &Path) -> Result<Option<ServerId>, ConfigError> {
    let path = data_dir.join(MY_ID_FILE);
    match fs::read_to_string(&path) {
        Ok(text) => server_id(&text).map(Some).ok_or(ConfigError::MyId(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::File { path, source }),
    }
}

/// Where clients connect without TLS when no flag says it. `said` is what environment and file say together.
/// The usual place is not opened beside one with TLS: whoever asks for that alone wants no other.
fn client_addr(
    environment: &Environment,
    said: &ZooCfg,
    servers: &BTreeMap<ServerId, ServerLine>,
    id: ServerId,
) -> Result<Option<HostPort>, ConfigError> {
    let named = &environment.cfg;
    if let Some(addr) = named.servers.get(&id).and_then(|line| line.client.clone())
        && named.client_port.is_none()
    {
        return Ok(Some(addr));
    }
    if let (None, Some(host)) = (said.client_port, &said.client_port_address) {
        return Err(ConfigError::Impossible(format!(
            "clientPortAddress={host} without a port: add the key clientPort"
        )));
    }
    if let Some(port) = said.client_port {
        let host = said.client_port_address.clone().unwrap_or_else(|| UNSPECIFIED.to_owned());
        return Ok(Some(HostPort::new(host, port)));
    }
    // The image of 3.4 listens there whatever its servers' lines say; theirs say nothing of clients.
    let usual = (servers.is_empty() || !named.servers.is_empty()) && security::secure_addr(said).is_none();
    let usual = usual.then(|| HostPort::new(UNSPECIFIED, DEFAULT_CLIENT_PORT));
    let own = servers.get(&id).and_then(|line| line.client.clone());
    Ok(own.or(usual))
}

fn whitelist(file: &ZooCfg, environment: &Environment, read_only: bool) -> Result<Whitelist, ConfigError> {
    let words = Whitelist::new(file.words.as_deref(), environment.name_of(WHITELIST), read_only);
    words.map_err(ConfigError::Impossible)
}

/// Old snapshots are removed behind each new one where an interval is said that is not 0. ZooKeeper keeps
/// everything unless it is told otherwise, and operators rely on it.
fn retained(file: &ZooCfg) -> Option<usize> {
    match file.purge_interval {
        None | Some(0) => None,
        Some(_) => Some(file.snap_retain_count.unwrap_or(DEFAULT_SNAP_RETAIN_COUNT)),
    }
}
