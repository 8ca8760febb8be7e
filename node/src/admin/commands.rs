//! What each command answers.

use std::collections::BTreeMap;

use node_core::Role;
use node_wire::digest::DIGEST_VERSION;
use node_wire::ids::Zxid;
use serde_json::{Map, Value, json};

use super::fields;
use crate::address::{ServerLine, ServerRole};
use crate::config::is_secret;
use crate::facts::Facts;
use crate::metrics::{Labelled, Values, gauges, labelled, znodes};
use crate::view::{ConnectionView, Want};
use crate::words::{VERSION, environment, expiries, mode, zab_state};

/// Declares the commands, each with its names, the first of which it is called by.
macro_rules! commands {
    ($($command:ident = $name:literal $(| $alias:literal)*,)*) => {
        /// A command of ZooKeeper's admin server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Command {
            $($command,)*
        }

        impl Command {
            pub(super) const ALL: &[Self] = &[$(Self::$command,)*];

            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Self::$command => $name,)*
                }
            }

            pub(super) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $alias)* => Some(Self::$command),)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    Configuration = "configuration" | "conf" | "config",
    ConnectionStatReset = "connection_stat_reset" | "crst",
    Connections = "connections" | "cons",
    Dirs = "dirs",
    Dump = "dump",
    Environment = "environment" | "env" | "envi",
    GetTraceMask = "get_trace_mask" | "gtmk",
    Hash = "hash",
    InitialConfiguration = "initial_configuration" | "icfg",
    IsReadOnly = "is_read_only" | "isro",
    LastSnapshot = "last_snapshot" | "lsnp",
    Leader = "leader" | "lead",
    Monitor = "monitor" | "mntr",
    ObserverConnectionStatReset = "observer_connection_stat_reset" | "orst",
    Observers = "observers" | "obsr",
    Ruok = "ruok",
    ServerStats = "server_stats" | "srvr",
    SetTraceMask = "set_trace_mask" | "stmk",
    StatReset = "stat_reset" | "srst",
    Stats = "stats" | "stat",
    SystemProperties = "system_properties" | "sysp",
    VotingView = "voting_view",
    WatchSummary = "watch_summary" | "wchs",
    Watches = "watches" | "wchc",
    WatchesByPath = "watches_by_path" | "wchp",
    ZabState = "zabstate",
}

impl Command {
    /// What its answer is made of.
    pub(super) fn wants(self) -> Want {
        let nothing = Want::default();
        match self {
            Self::ConnectionStatReset => Want { reset_connections: true, ..nothing },
            Self::Connections | Self::Stats => Want { connections: true, ..nothing },
            Self::Dump => Want { tree: true, deadlines: true, ..nothing },
            Self::Hash => Want { digests: true, ..nothing },
            Self::Monitor => Want { quotas: true, ..nothing },
            Self::Observers => Want { learners: true, ..nothing },
            Self::StatReset => Want { reset_server: true, ..nothing },
            Self::WatchSummary | Self::Watches | Self::WatchesByPath => Want { watches: true, ..nothing },
            _ => nothing,
        }
    }

    /// As in ZooKeeper, most say nothing without one.
    pub(super) fn needs_a_leader(self) -> bool {
        !matches!(
            self,
            Self::Environment
                | Self::GetTraceMask
                | Self::Monitor
                | Self::SetTraceMask
                | Self::SystemProperties
                | Self::ZabState
        )
    }
}

/// The fields of the answer.
pub(super) fn run(command: Command, facts: &Facts) -> Map<String, Value> {
    let view = &facts.view;
    match command {
        Command::Configuration => configuration(facts),
        Command::Connections => connections(&view.connections, false),
        Command::Dirs => {
            let about = &facts.about;
            fields([("datadir_size", json!(about.data_size())), ("logdir_size", json!(about.log_size()))])
        }
        Command::Dump => dump(facts),
        Command::Environment => {
            environment().into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
        }
        Command::Hash => {
            let digest = |pair: &(Zxid, i64)| {
                let (zxid, digest) = pair;
                json!({"zxid": zxid.0, "digest_version": DIGEST_VERSION, "digest": digest})
            };
            fields([("digests", view.digests.iter().map(digest).collect())])
        }
        Command::InitialConfiguration => fields([("initial_configuration", json!(initial(facts)))]),
        Command::IsReadOnly => fields([("read_only", json!(view.status.read_only))]),
        Command::LastSnapshot => match facts.about.last_snapshot() {
            Some((zxid, at)) => fields([("zxid", json!(format!("{:x}", zxid.0))), ("timestamp", json!(at))]),
            None => fields([("zxid", json!("ffffffffffffffff")), ("timestamp", json!(-1))]),
        },
        Command::Leader => leader(facts),
        Command::Monitor => monitor(facts),
        Command::Observers => observers(facts),
        Command::ServerStats => server_stats(facts),
        Command::Stats => {
            let mut all = server_stats(facts);
            all.extend(connections(&view.connections, true));
            all
        }
        Command::SystemProperties => properties(facts),
        Command::VotingView => fields([("current_config", voting_view(facts))]),
        Command::WatchSummary => watch_summary(facts),
        Command::Watches => {
            let mut by_session: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            view.watches.iter().for_each(|(session, path)| {
                by_session.entry(session.0.to_string()).or_default().push(path);
            });
            fields([("session_id_to_watched_paths", json!(by_session))])
        }
        Command::WatchesByPath => {
            let mut by_path: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
            view.watches.iter().for_each(|(session, path)| by_path.entry(path).or_default().push(session.0));
            fields([("path_to_session_ids", json!(by_path))])
        }
        Command::ZabState => zabstate(facts),
        Command::ConnectionStatReset
        | Command::ObserverConnectionStatReset
        | Command::StatReset
        | Command::Ruok
        | Command::GetTraceMask
        | Command::SetTraceMask => Map::new(),
    }
}

fn configuration(facts: &Facts) -> Map<String, Value> {
    let (about, config) = (&facts.about, &facts.about.config);
    fields([
        ("client_port", json!(about.client_port())),
        ("data_dir", json!(config.version_dir().display().to_string())),
        ("data_log_dir", json!(config.log_dir().display().to_string())),
        ("tick_time", json!(millis(config.tick_time))),
        ("max_client_cnxns", json!(config.max_client_cnxns)),
        ("min_session_timeout", json!(config.session_timeouts_ms.0)),
        ("max_session_timeout", json!(config.session_timeouts_ms.1)),
        ("server_id", json!(config.id.0)),
        ("client_port_listen_backlog", json!(config.limits.backlog)),
    ])
}

fn connections(views: &[ConnectionView], brief: bool) -> Map<String, Value> {
    let all: Vec<_> = views.iter().map(|view| connection(view, brief)).collect();
    fields([("connections", json!(all)), ("secure_connections", json!([]))])
}

fn connection(view: &ConnectionView, brief: bool) -> Value {
    let mut info = fields([
        ("remote_socket_address", json!(view.remote)),
        ("interest_ops", json!(u8::from(view.is_read))),
        ("outstanding_requests", json!(view.outstanding)),
        ("packets_received", json!(view.received)),
        ("packets_sent", json!(view.sent)),
    ]);
    if !brief {
        info.extend(fields([
            ("session_id", json!(view.session.map_or(0, |session| session.0))),
            ("last_operation", json!(view.last_operation)),
            ("established", json!(view.established_ms)),
            ("session_timeout", json!(view.timeout_ms)),
            ("last_cxid", json!(view.last_cxid.unwrap_or(-1))),
            ("last_zxid", json!(view.last_zxid)),
            ("last_response_time", json!(view.last_response_ms)),
            ("last_latency", json!(millis(view.last_latency))),
            ("min_latency", json!(millis(view.min_latency))),
            ("avg_latency", json!(millis(view.avg_latency))),
            ("max_latency", json!(millis(view.max_latency))),
        ]));
    }
    Value::Object(info)
}

fn dump(facts: &Facts) -> Map<String, Value> {
    let tick = facts.about.config.tick_time;
    let view = &facts.view;
    let deadlines: Vec<_> = view.deadlines.iter().chain(&view.local_deadlines).copied().collect();
    let sets = expiries(&deadlines, tick);
    let sets: BTreeMap<i64, Vec<i64>> =
        sets.into_iter().map(|(at, ids)| (at, ids.into_iter().map(|id| id.0).collect())).collect();
    let mut owned: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    if let Some(tree) = facts.view.tree.as_ref().map(node_core::tree::TreeSnapshot::tree) {
        for (session, _) in tree.sessions() {
            let paths: Vec<&str> = tree.ephemerals(session).map(|path| &**path).collect();
            if !paths.is_empty() {
                owned.insert(session.0.to_string(), paths);
            }
        }
    }
    fields([("expiry_time_to_session_ids", json!(sets)), ("session_id_to_ephemeral_paths", json!(owned))])
}

/// The configuration as a file would say it.
fn initial(facts: &Facts) -> String {
    let config = &facts.about.config;
    let shown = config.properties.iter().filter(|(key, _)| !is_secret(key));
    let mut text: String = shown.map(|(key, value)| format!("{key}={value}\n")).collect();
    for (id, line) in &config.servers {
        text += &format!(
            "server.{id}={}:{}:{}:{}\n",
            line.quorum.host,
            line.quorum.port,
            line.election.port,
            line.role.name()
        );
    }
    text
}

fn leader(facts: &Facts) -> Map<String, Value> {
    let config = &facts.about.config;
    let leads = facts.view.status.role == Role::Leading;
    if config.servers.is_empty() {
        return fields([("error", json!("server is not initialized"))]);
    }
    let id = match facts.view.status.role {
        Role::Leading => Some(config.id),
        Role::Following(leader) => Some(leader),
        Role::Looking => None,
    };
    let line = id.and_then(|id| facts.view.servers.get(&id));
    fields([
        ("is_leader", json!(leads)),
        ("leader_id", json!(id.map_or(-1, |id| i64::try_from(id.0).unwrap_or(-1)))),
        ("leader_ip", json!(line.map_or("", |line| line.quorum.host.as_str()))),
    ])
}

fn monitor(facts: &Facts) -> Map<String, Value> {
    let view = &facts.view;
    let mut all = fields([
        ("version", json!(format!("{VERSION}, built on unknown"))),
        ("server_state", json!(mode(facts))),
    ]);
    for (name, value) in gauges(view, &facts.metrics) {
        let fraction = name == "avg_latency" || name == "connection_drop_probability";
        #[expect(clippy::cast_possible_truncation, reason = "whole numbers that came from integers")]
        let whole = value.floor() as i64;
        let value = if fraction { json!(value) } else { json!(whole) };
        all.insert(name.to_owned(), value);
    }
    for (name, value) in facts.metrics.counters() {
        all.insert(name.to_owned(), json!(value));
    }
    for (name, _, values) in facts.metrics.summaries() {
        summary(&mut all, name, &values);
    }
    for (name, keys) in labelled(view, &facts.metrics) {
        for (key, value) in keys {
            let name = format!("{key}_{name}");
            match value {
                Labelled::Number(value, _) => _ = all.insert(name, json!(value)),
                Labelled::Tally([count, sum, min, max]) => {
                    for (part, value) in [("cnt", count), ("sum", sum), ("min", min), ("max", max)] {
                        all.insert(format!("{part}_{name}"), json!(value));
                    }
                }
                Labelled::Summary(values) => summary(&mut all, &name, &values),
            }
        }
    }
    all
}

fn summary(all: &mut Map<String, Value>, name: &str, values: &Values) {
    for (part, shown) in [(0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")] {
        all.insert(format!("{shown}_{name}"), json!(values.quantile(part).unwrap_or(0.0)));
    }
    all.insert(format!("avg_{name}"), json!(values.average()));
    all.insert(format!("min_{name}"), json!(values.min));
    all.insert(format!("max_{name}"), json!(values.max));
    all.insert(format!("cnt_{name}"), json!(values.count));
    all.insert(format!("sum_{name}"), json!(values.sum));
}

fn observers(facts: &Facts) -> Map<String, Value> {
    let observing = facts.view.learners.iter().filter(|learner| learner.observes);
    let all: Vec<_> = observing
        .map(|learner| {
            json!({"sid": learner.server.map_or(0, |id| id.0), "last_zxid": learner.acked.to_string()})
        })
        .collect();
    fields([("synced_observers", json!(facts.view.status.synced_observers)), ("observers", json!(all))])
}

fn server_stats(facts: &Facts) -> Map<String, Value> {
    let (view, metrics) = (&facts.view, &facts.metrics);
    let (status, traffic) = (&view.status, &view.traffic);
    let about = &facts.about;
    let sizes = |sizes: (i64, i64, i64)| {
        let (last, min, max) = sizes;
        json!({"last_buffer_size": last, "min_buffer_size": min, "max_buffer_size": max})
    };
    let responses = sizes(metrics.responses.get());
    let stats = json!({
        "packets_sent": traffic.sent,
        "packets_received": traffic.received,
        "max_latency": millis(traffic.latency_max),
        "min_latency": millis(traffic.latency_min.unwrap_or_default()),
        "avg_latency": traffic.latency_avg_ms(),
        "outstanding_requests": status.outstanding,
        "last_processed_zxid": status.last_applied.0,
        "server_state": mode(facts),
        "num_alive_client_connections": traffic.connections,
        "data_dir_size": about.data_size(),
        "log_dir_size": about.log_size(),
        "fsync_threshold_exceed_count": metrics.fsync_threshold_exceed_count.get(),
        "uptime": millis(metrics.uptime()),
        "provider_null": false,
        "client_response_stats": responses.clone(),
    });
    let mut all = fields([
        ("version", json!(format!("{VERSION}, built on unknown"))),
        ("read_only", json!(false)),
        ("server_stats", stats),
        ("client_response", responses),
        ("node_count", json!(znodes(view))),
    ]);
    if status.role == Role::Leading {
        all.insert("proposal_stats".to_owned(), sizes(metrics.proposals.get()));
    }
    all
}

/// What was said in ZooKeeper's keys, as Java would have it.
fn properties(facts: &Facts) -> Map<String, Value> {
    let shown = |(key, value): (&String, &String)| {
        let value = if is_secret(key) { "***" } else { value };
        (format!("zookeeper.{key}"), json!(value))
    };
    facts.about.config.properties.iter().map(shown).collect()
}

fn voting_view(facts: &Facts) -> Value {
    let server = |line: &ServerLine| {
        json!({
            "server_addresses": [line.quorum.to_string()],
            "election_addresses": [line.election.to_string()],
            "client_address": line.client.as_ref().map_or(String::new(), ToString::to_string),
            "learner_type": line.role.name(),
        })
    };
    let voters = facts.view.servers.iter().filter(|(_, line)| line.role == ServerRole::Participant);
    Value::Object(voters.map(|(id, line)| (id.to_string(), server(line))).collect())
}

fn watch_summary(facts: &Facts) -> Map<String, Value> {
    let watches = &facts.view.watches;
    let sessions: std::collections::BTreeSet<_> = watches.iter().map(|(session, _)| session).collect();
    let paths: std::collections::BTreeSet<_> = watches.iter().map(|(_, path)| path).collect();
    fields([
        ("num_connections", json!(sessions.len())),
        ("num_paths", json!(paths.len())),
        ("num_total_watches", json!(watches.len())),
    ])
}

fn zabstate(facts: &Facts) -> Map<String, Value> {
    let (config, status) = (&facts.about.config, &facts.view.status);
    let Some(own) = config.servers.get(&config.id) else {
        return fields([("voting", json!(false)), ("zabstate", json!(""))]);
    };
    let applied = status.last_applied;
    fields([
        ("myid", json!(config.id.0)),
        ("is_leader", json!(status.role == Role::Leading)),
        ("quorum_address", json!(own.quorum.to_string())),
        ("election_address", json!(own.election.to_string())),
        ("client_address", json!(facts.about.client_addr)),
        ("voting", json!(!status.observes)),
        ("last_zxid", json!(applied.to_string())),
        ("zab_epoch", json!(applied.epoch().0)),
        ("zab_counter", json!(applied.counter())),
        ("zabstate", json!(zab_state(status))),
    ])
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
