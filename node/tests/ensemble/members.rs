//! Members in threads. Every port is bound before anything starts, so that nothing else can take it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use node::NodeConfig;
use node::address::{HostPort, ServerLine, ServerRole};
use node::cli::Args;
use node::net::{Listeners, PeerListeners};
use node_core::{Factory, Zab};
use node_wire::ids::ServerId;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Where a member listens.
#[derive(Debug)]
struct Ports {
    client: TcpListener,
    quorum: TcpListener,
    election: TcpListener,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// Some members and their files, which go when this is dropped.
#[derive(Debug)]
pub(crate) struct Ensemble {
    dir: TempDir,
    /// Transactions between two snapshots.
    pub(crate) snap_count: u64,
    /// Silence after which members give up on each other.
    pub(crate) peer_timeout: Option<Duration>,
    /// How long a step may work.
    pub(crate) step_limit: Option<Duration>,
    /// By which rules members are made.
    pub(crate) factory: fn() -> Box<dyn Factory>,
    ports: BTreeMap<u64, Ports>,
    running: BTreeMap<u64, Running>,
}

fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

fn at(listener: &TcpListener) -> HostPort {
    HostPort::new("127.0.0.1", listener.local_addr().expect("bound").port())
}

impl Ensemble {
    /// So many members, all started.
    pub(crate) fn start(count: u64) -> Self {
        Self::start_some(count, &(1..=count).collect::<Vec<_>>())
    }

    /// So many members, some started.
    pub(crate) fn start_some(count: u64, started: &[u64]) -> Self {
        let mut ensemble = Self::new(count);
        for &id in started {
            ensemble.start_again(id);
        }
        ensemble
    }

    /// So many members, none started.
    pub(crate) fn new(count: u64) -> Self {
        // Silent unless RUST_LOG asks. The first test to come sets it up for all.
        let lines = tracing_subscriber::fmt::layer().with_thread_names(true).with_test_writer();
        let wanted = std::env::var("RUST_LOG").ok().and_then(|wanted| wanted.parse::<Targets>().ok());
        let _ = tracing_subscriber::registry().with(lines).with(wanted.unwrap_or_default()).try_init();
        let ports =
            (1..=count).map(|id| (id, Ports { client: bind(), quorum: bind(), election: bind() })).collect();
        let dir = tempfile::tempdir().expect("a directory");
        Self {
            dir,
            snap_count: 100_000,
            peer_timeout: None,
            step_limit: None,
            factory: || Box::new(Zab),
            ports,
            running: BTreeMap::new(),
        }
    }

    pub(crate) fn client_addr(&self, id: u64) -> SocketAddr {
        self.ports[&id].client.local_addr().expect("bound")
    }

    /// Where a member listens for learners and for votes.
    #[allow(dead_code, reason = "for those who come from outside")]
    pub(crate) fn peer_addrs(&self, id: u64) -> (SocketAddr, SocketAddr) {
        let Ports { quorum, election, .. } = &self.ports[&id];
        (quorum.local_addr().expect("bound"), election.local_addr().expect("bound"))
    }

    pub(crate) fn running(&self) -> Vec<u64> {
        self.running.keys().copied().collect()
    }

    /// Starts a member that does not run.
    pub(crate) fn start_again(&mut self, id: u64) {
        let config = self.config(id);
        let ports = &self.ports[&id];
        let clone = |listener: &TcpListener| listener.try_clone().expect("a second descriptor");
        let peers = (self.ports.len() > 1)
            .then(|| PeerListeners { quorum: clone(&ports.quorum), election: clone(&ports.election) });
        let listeners =
            Listeners { client: clone(&ports.client), secure: None, peers, admin: None, metrics: None };
        let (stop, stopped) = oneshot::channel::<()>();
        let factory = self.factory;
        let run = move || {
            node::run_until(config, &*factory(), listeners, || {
                Ok(async move {
                    // Dropped or sent: both mean the end.
                    let _ = stopped.await;
                })
            })
        };
        // Logs tell members of tests that run at once apart by this.
        let name = format!("{}-{id}", std::thread::current().name().unwrap_or("test"));
        let thread = std::thread::Builder::new().name(name).spawn(run).expect("a thread");
        self.running.insert(id, Running { stop, thread });
    }

    /// Stops a member and waits for its end.
    pub(crate) fn stop(&mut self, id: u64) {
        let Running { stop, thread } = self.running.remove(&id).expect("running");
        drop(stop);
        thread.join().expect("no panic").expect("a clean end");
    }

    /// A member that ended by itself explains a wait better than its length does.
    pub(crate) fn assert_alive(&self) {
        for (id, running) in &self.running {
            assert!(!running.thread.is_finished(), "member {id} ended by itself");
        }
    }

    /// The names of a member's files.
    pub(crate) fn files(&self, id: u64) -> Vec<String> {
        let listed = std::fs::read_dir(self.config(id).log_dir()).expect("a directory");
        listed.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect()
    }

    fn config(&self, id: u64) -> NodeConfig {
        let args = Args {
            id: Some(ServerId(id)),
            data_dir: Some(self.dir.path().join(id.to_string())),
            client_addr: Some(at(&self.ports[&id].client)),
            snap_count: Some(self.snap_count),
            ..Args::default()
        };
        let mut config = NodeConfig::from_args(&args).expect("possible");
        // Znodes whose time is over go soon.
        config.rules.container_check = Duration::from_millis(100);
        config.peer_timeout = self.peer_timeout.unwrap_or(config.peer_timeout);
        config.manner.step_limit = self.step_limit.unwrap_or(config.manner.step_limit);
        if self.ports.len() > 1 {
            let line = |ports: &Ports| ServerLine {
                quorum: at(&ports.quorum),
                election: at(&ports.election),
                role: ServerRole::Participant,
                client: None,
            };
            config.servers = self.ports.iter().map(|(id, ports)| (ServerId(*id), line(ports))).collect();
        }
        config
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        for id in self.running() {
            let Some(Running { stop, thread }) = self.running.remove(&id) else { continue };
            drop(stop);
            // A test that failed already should say why itself.
            let _ = thread.join();
        }
    }
}
