//! One member of a coordination ensemble as a process: configuration, sockets, files and clocks around the
//! pure core.
//!
//! The member itself is `node-core`, its files are `node-log`, what it says is `node-wire`. Here is what
//! moves bytes and time: nothing in this crate knows what a vote or a proposal means.
//!
//! | module | owns |
//! |---|---|
//! | [`cli`], [`environment`], [`zoocfg`], [`config`], [`address`], [`whitelist`] | what the operator wants |
//! | `engine`, `inbox`, `clock` | the loop around the member; one thread, with all sockets |
//! | `pulse` | signs of life while a step works, from a thread of its own |
//! | `store`, `snapshots` | the disk, on threads of its own |
//! | `queries`, `facts`, `view`, `admin`, `http`, `metrics`, `timeline` | what operators ask |
//! | `election_port`, `quorum_port`, `client_port`, `words` | the three ports |
//! | `outbox`, [`net`], `names` | what sockets have in common |
//! | [`tls`] | key stores, handshakes and certificates |
//! | [`sasl`] | who clients prove to be |
//! | `book`, `dynamic` | who is in the ensemble, and where; the files that say so |
//! | `events` | transitions as JSON lines |
//! | [`probe`], [`print`](mod@print) | asking a member, and reading its files, instead of being one |
//!
//! The thread model and its reason stand in `engine`. The crate is a library because the harness carries the
//! member inside it: [`run`] is all that a process needs, for any [`Factory`].

pub mod address;
mod admin;
mod book;
pub mod cli;
mod client_port;
mod clock;
pub mod config;
mod dynamic;
mod election_port;
mod engine;
pub mod environment;
mod events;
mod facts;
mod http;
mod inbox;
mod metrics;
mod names;
pub mod net;
mod outbox;
pub mod print;
pub mod probe;
pub mod programs;
mod pulse;
mod queries;
mod quorum_port;
mod rules;
pub mod sasl;
mod snapshots;
mod store;
#[cfg(test)]
mod testing;
mod timeline;
pub mod tls;
mod view;
pub mod whitelist;
mod words;
pub mod zoocfg;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use node_core::io::Now;
use node_core::tree::Tree;
use node_core::{Config, Factory, Machine, SnapCount};
use node_log::{FileStorage, Log, LogOptions, Recovered, Repairs, write_snapshot};
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::{Admin, MetricsPage};
use crate::book::Book;
use crate::client_port::ClientPort;
use crate::clock::Clock;
pub use crate::config::{ConfigError, Manner, NodeConfig};
use crate::dynamic::DynamicFile;
use crate::election_port::ElectionPort;
use crate::engine::{Batch, Engine};
use crate::events::Events;
use crate::facts::About;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::net::{Listeners, adopt};
use crate::pulse::{Pulse, PulseThread};
use crate::queries::Queries;
use crate::quorum_port::QuorumPort;
use crate::snapshots::Snapshots;
use crate::store::{Measured, Store};
use crate::timeline::Timeline;
use crate::tls::{Guard, PeerTls};

/// How often the stores of the members' TLS are looked at, where they may change.
const STORE_LOOK: Duration = Duration::from_secs(1);

/// Runs a member until SIGTERM or SIGINT, which end it well.
///
/// # Errors
/// When it can't start (a port is taken, the log is damaged) or can't go on (the disk failed). The message is
/// for the operator.
pub fn run(config: NodeConfig, factory: &dyn Factory) -> anyhow::Result<()> {
    if config.die_with_parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .context("failed to ask for a signal when the parent ends")?;
    }
    raise_descriptor_limit();
    // First of all: a port that is taken must leave the disk untouched.
    let listeners = Listeners::bind_when_named(&config)?;
    run_until(config, factory, listeners, stop_signal)
}

/// A client costs a descriptor, and shells give few by default. The system's own bound stays; the Java
/// machine does the same for Apache ZooKeeper.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let all = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, all) {
            tracing::warn!(%error, "failed to raise the number of files that may be open");
        }
    }
    if let Some(words) = few_descriptors(getrlimit(Resource::Nofile).current) {
        tracing::warn!("{words}");
    }
}

/// A member of ours alone needs some dozens; what is left is for clients.
const FEW_DESCRIPTORS: u64 = 1_024;

/// What an operator is told about a low limit.
fn few_descriptors(allowed: Option<u64>) -> Option<String> {
    let allowed = allowed.filter(|allowed| *allowed < FEW_DESCRIPTORS)?;
    Some(format!(
        "only {allowed} files may be open, and each client is one: raise the hard limit (ulimit -Hn, \
            LimitNOFILE=)"
    ))
}

/// Runs a member on sockets that are bound already, until the future that `stop` makes is done.
///
/// # Errors
/// As for [`run`].
pub fn run_until<S: Future<Output = ()>>(
    config: NodeConfig,
    factory: &dyn Factory,
    listeners: Listeners,
    stop: impl FnOnce() -> anyhow::Result<S>,
) -> anyhow::Result<()> {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let metrics = Arc::new(Metrics::new());
    let (log, recovered) = open_log(&config)?;
    metrics.dbinittime.record_time(metrics.uptime());
    metrics.startup_txns_loaded.record(recovered.entries.len() as u64);
    let events = Events::new(config.events).context("failed to start the thread that prints events")?;
    let pulse = Pulse::new(Clock::start(), config.peer_timeout, config.manner.step_limit);
    let _thread = match config.servers.is_empty() {
        true => None,
        false => {
            Some(PulseThread::start(&pulse).context("failed to start the thread that gives signs of life")?)
        }
    };
    let (resting, waking) = (Arc::clone(&pulse), Arc::clone(&pulse));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || resting.rests())
        .on_thread_unpark(move || waking.wakes())
        .build_local(tokio::runtime::LocalOptions::default())
        .context("failed to start the runtime")?;
    let result = runtime.block_on(async {
        let mut engine = start(config, factory, listeners, (log, recovered), events, metrics, pulse)?;
        let stopped = engine.run(stop()?).await;
        if let Err(halted) = &stopped {
            engine.halt(halted);
        }
        let Engine { store, snapshots, events, .. } = engine;
        if stopped.is_ok() {
            snapshots.finish();
            store.finish();
        }
        events.finish();
        stopped.map_err(anyhow::Error::new)
    });
    // Whatever still runs on other threads writes nothing that anybody was promised.
    runtime.shutdown_background();
    result
}

/// Done on SIGTERM or SIGINT.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("stopping on SIGTERM"),
            _ = interrupt.recv() => tracing::info!("stopping on SIGINT"),
        }
    })
}

/// Looks at the stores of the members' TLS again and again, if that was asked for, and reads them when they
/// changed.
async fn reload_when_written(tls: Arc<PeerTls>, config: Rc<NodeConfig>) {
    let mut written = tls.written();
    while !written.is_empty() {
        tokio::time::sleep(STORE_LOOK).await;
        let now = tls.written();
        if now == written {
            continue;
        }
        written = now;
        match tls.reload(&config.properties) {
            Ok(()) => tracing::info!("read the stores of the members' TLS again (sslQuorumReloadCertFiles)"),
            // A file may be half written: then it changes once more.
            Err(error) => tracing::error!("failed to {error}; the members' TLS stays as it was"),
        }
    }
}

fn open_log(config: &NodeConfig) -> anyhow::Result<(Log<FileStorage>, Recovered)> {
    let dir = config.version_dir();
    let opened = match config.log_dir() {
        log_dir if log_dir == dir => FileStorage::open(&dir),
        log_dir => FileStorage::open_apart(&dir, log_dir),
    };
    let storage = opened.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => anyhow::anyhow!(
            "failed to open the data directory {}: another process uses it ({error}); stop that one first",
            dir.display()
        ),
        io::ErrorKind::InvalidData => anyhow::anyhow!("failed to tell log and snapshots apart: {error}"),
        _ => {
            anyhow::Error::new(error).context(format!("failed to open the data directory {}", dir.display()))
        }
    })?;
    let failed = |error: node_log::LogError| anyhow::anyhow!("failed to {error} (in {})", dir.display());
    if config.cut_to_synced {
        let cut = node_log::cut_to_synced(&storage).map_err(failed)?;
        tracing::warn!(?cut, "cut the log back to what was synchronized");
    }
    let options = LogOptions {
        preallocate_bytes: config.log.preallocate_bytes,
        roll_bytes: config.log.roll_bytes,
        note_synced: config.note_synced,
    };
    let (log, recovered) = Log::open(storage, options).map_err(failed)?;
    if recovered.repairs != Repairs::default() {
        tracing::warn!(repairs = ?recovered.repairs, "put in order what a crash had left");
    }
    if recovered.image.nodes.is_empty() {
        // Apache ZooKeeper takes a log without a snapshot for the remains of something broken.
        write_snapshot(log.storage(), Tree::default().contents()).map_err(failed)?;
    }
    tracing::info!(
        last = %log.last_zxid(),
        snapshot = %recovered.image.zxid,
        entries = recovered.entries.len(),
        "opened the log"
    );
    Ok((log, recovered))
}

/// Members of one ensemble begin their snapshots at different transactions, so that most are undisturbed by
/// one. The first comes up to a half earlier, as ZooKeeper draws it by lot.
fn snap_count(config: &NodeConfig) -> SnapCount {
    let entries = config.snap_count;
    let among = u64::try_from(config.servers.len().max(1)).unwrap_or(u64::MAX);
    let before = config.servers.keys().filter(|id| **id < config.id).count();
    let head_start = entries / 2 / among * u64::try_from(before).unwrap_or(0);
    SnapCount { entries, grows: config.snap_count_grows, head_start }
}

/// What the core is told of the configuration.
fn core_config(config: &NodeConfig) -> Config {
    Config {
        id: config.id,
        voters: config.voters(),
        observers: config.observers(),
        peer_timeout: config.peer_timeout,
        tick_time: config.tick_time,
        init_limit: config.init_limit,
        sync_limit: config.sync_limit,
        snap_count: snap_count(config),
        session_timeouts_ms: Some(config.session_timeouts_ms),
        journal_entries: config.commit_log_count,
        last_counter: node_wire::ids::Zxid::LAST_COUNTER,
        clients: config.rules.clone(),
    }
}

/// The member with what its files hold.
fn machine(config: &NodeConfig, factory: &dyn Factory, recovered: Recovered, now: Now) -> Box<dyn Machine> {
    let written = recovered.digest;
    let recovered = node_core::io::Recovered {
        accepted_epoch: recovered.accepted_epoch,
        current_epoch: recovered.current_epoch,
        image: recovered.image,
        entries: recovered.entries,
    };
    let mut machine = factory.start(core_config(config), recovered, now);
    if let Some(written) = written {
        machine.expect_digest(written);
    }
    machine
}

/// The ports that clients and members reach.
struct Ports {
    clients: Rc<ClientPort>,
    quorum: Rc<QuorumPort>,
    election: Rc<ElectionPort>,
}

impl Ports {
    /// Begins to accept on every socket, those of operators included.
    fn open(
        &self,
        listeners: Listeners,
        config: &Rc<NodeConfig>,
        queries: &Rc<Queries>,
    ) -> anyhow::Result<()> {
        self.clients.start(adopt(listeners.client)?, config.security.guard);
        if let Some(listener) = listeners.secure {
            self.clients.start(adopt(listener)?, Guard::Secure);
        }
        if let (Some(listener), Some(admin)) = (listeners.admin, config.monitoring.admin.clone()) {
            let server = Rc::new(Admin::new(Rc::clone(queries)));
            tokio::task::spawn_local(http::serve(adopt(listener)?, admin.idle_timeout, server));
        }
        if let Some(listener) = listeners.metrics {
            let server = Rc::new(MetricsPage::new(Rc::clone(queries)));
            tokio::task::spawn_local(http::serve(adopt(listener)?, http::USUAL_IDLE, server));
        }
        if let Some(tls) = &config.security.peers {
            tokio::task::spawn_local(reload_when_written(Arc::clone(tls), Rc::clone(config)));
        }
        if let Some(peers) = listeners.peers {
            tokio::task::spawn_local(Rc::clone(&self.quorum).accept(adopt(peers.quorum)?));
            self.election.start(adopt(peers.election)?);
        }
        Ok(())
    }
}

/// Puts the parts together. Runs inside of the runtime.
fn start(
    config: NodeConfig,
    factory: &dyn Factory,
    listeners: Listeners,
    (log, recovered): (Log<FileStorage>, Recovered),
    events: Events,
    metrics: Arc<Metrics>,
    pulse: Arc<Pulse>,
) -> anyhow::Result<Engine> {
    let config = Rc::new(config);
    let inbox = Rc::new(Inbox::default());
    let clock = pulse.clock();
    let storage = log.storage().clone();
    let last = log.last_zxid();
    let measured = Measured { metrics: Arc::clone(&metrics), slow: config.log.fsync_warning };
    let dynamic = config.zoo_cfg.as_deref().map(|zoo_cfg| DynamicFile::new(config.id, zoo_cfg));
    let store = Store::start(log, dynamic, inbox.wake(), config.manner.linger, measured)
        .context("failed to start the log's writer")?;
    let snapshots = Snapshots::new(
        storage,
        config.compression,
        config.snap_retain_count,
        store.snapshot_done(),
        Arc::clone(&metrics),
    );

    let book = Rc::new(Book::new(&config));
    let quorum = QuorumPort::new(Rc::clone(&config), Rc::clone(&book), Rc::clone(&inbox), Arc::clone(&pulse));
    let election = ElectionPort::new(Rc::clone(&config), Rc::clone(&book), Rc::clone(&inbox));
    let client_addr = listeners.client.local_addr().context("failed to read the client port")?.to_string();
    let about = Arc::new(About::new((*config).clone(), client_addr.clone()));
    let queries = Queries::new(Rc::clone(&inbox), about, Arc::clone(&metrics));
    let clients = ClientPort::new(
        Rc::clone(&config),
        Rc::clone(&inbox),
        Rc::clone(&queries),
        Arc::clone(&metrics),
        store.backlog(),
    );
    let ports = Ports { clients, quorum, election };
    ports.open(listeners, &config, &queries)?;
    events.started(config.id, last);
    tracing::info!(id = %config.id, client = client_addr, "started");

    let Ports { clients, quorum, election } = ports;
    let timeline = Timeline::new(config.id, recovered.image.zxid);
    let machine = machine(&config, factory, recovered, clock.now());
    let batch = Batch::default();
    let clients_first = config.manner.clients_first;
    Ok(Engine {
        machine,
        clock,
        inbox,
        store,
        snapshots,
        quorum,
        election,
        clients,
        events,
        metrics,
        timeline,
        own_client: config.servers.get(&config.id).and_then(|line| line.client.clone()),
        book,
        client_addr,
        clients_first,
        pulse,
        batch,
    })
}

#[cfg(test)]
mod tests {
    use super::few_descriptors;

    #[test]
    fn a_low_limit_of_open_files_is_told_with_what_raises_it() {
        let words = few_descriptors(Some(64)).expect("few");
        assert!(words.contains("only 64 files") && words.contains("ulimit -Hn"), "{words}");
        assert_eq!(few_descriptors(Some(1_024)), None);
        assert_eq!(few_descriptors(None), None);
    }
}
