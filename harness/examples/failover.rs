//! How long three members leave their clients without a leader: kills or stops the leader of a real ensemble
//! again and again, and measures the time to the first acknowledged write that was begun after the fault.
//!
//! The same probe is used for the bundled node, Apache ZooKeeper and etcd: every millisecond a new connection
//! to each survivor, with one write. So a system is not helped by a client that happens to wait at the right
//! place, and the resolution is a millisecond.
//!
//! ```text
//! cargo build --release
//! cargo run --release --package harness --example failover -- node kill 20
//! cargo run --release --package harness --example failover -- zookeeper stop 20 --busy 2
//! cargo run --release --package harness --example failover -- etcd kill 20
//! cargo run --release --package harness --example failover -- node none 600 --busy 2    # needless elections
//! ```
//!
//! Apache ZooKeeper and etcd are taken from where Debian's packages put them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::{Parser, ValueEnum};
use node_client::{ConnectOptions, connect, four_letter_word};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

const MEMBERS: usize = 3;
/// Attempts that may be open at once towards one member.
const MAX_OPEN: usize = 200;
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(400);
const GIVE_UP: Duration = Duration::from_secs(60);
/// Between two faults, with everything healed.
const CALM: Duration = Duration::from_millis(1500);

#[derive(Parser)]
struct Args {
    kind: Kind,
    fault: Fault,
    /// How many faults; with `none`, how many seconds to watch for needless elections
    runs: u64,
    /// Programs that keep a core busy meanwhile
    #[arg(long, default_value_t = 0)]
    busy: usize,
    /// First port of a block of thirty
    #[arg(long, default_value_t = 24600)]
    base_port: u16,
    /// End at the first outage longer than this many milliseconds, and keep the members' logs
    #[arg(long)]
    until: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Node,
    Zookeeper,
    Etcd,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fault {
    Kill,
    Stop,
    None,
}

struct Ensemble {
    kind: Kind,
    base_port: u16,
    folder: PathBuf,
    keep: bool,
    children: Vec<Option<Child>>,
}

impl Ensemble {
    fn client_port(&self, member: usize) -> u16 {
        self.base_port + u16::try_from(member).unwrap_or(0)
    }

    fn quorum_port(&self, member: usize) -> u16 {
        self.client_port(member) + 10
    }

    fn election_port(&self, member: usize) -> u16 {
        self.client_port(member) + 20
    }

    fn start(&mut self, member: usize) -> anyhow::Result<()> {
        let folder = self.folder.join(member.to_string());
        std::fs::create_dir_all(folder.join("data"))?;
        let mut command = match self.kind {
            Kind::Node => self.node(member, &folder)?,
            Kind::Zookeeper => self.zookeeper(member, &folder)?,
            Kind::Etcd => self.etcd(member, &folder),
        };
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log.txt"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.children[member] = Some(command.spawn().context("failed to start a member")?);
        Ok(())
    }

    fn node(&self, member: usize, folder: &Path) -> anyhow::Result<Command> {
        // Beside this example's own folder.
        let own = std::env::current_exe()?;
        let binary = own.parent().and_then(Path::parent).context("no target folder")?.join("node");
        ensure!(binary.exists(), "{} is not built; run `cargo build --release` first", binary.display());
        let mut command = Command::new(binary);
        command
            .args(["--id", &(member + 1).to_string(), "--events"])
            .arg("--data-dir")
            .arg(folder.join("data"))
            .args(["--client-addr", &format!("127.0.0.1:{}", self.client_port(member))])
            .args(["--max-client-cnxns", "0"]);
        for peer in 0..MEMBERS {
            let (quorum, election) = (self.quorum_port(peer), self.election_port(peer));
            command.args(["--server", &format!("{}=127.0.0.1:{quorum}:{election}", peer + 1)]);
        }
        Ok(command)
    }

    fn zookeeper(&self, member: usize, folder: &Path) -> anyhow::Result<Command> {
        let data = folder.join("data");
        std::fs::write(data.join("myid"), (member + 1).to_string())?;
        let mut config = format!(
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={}\nmaxClientCnxns=0\n\
             4lw.commands.whitelist=*\nadmin.enableServer=false\n",
            data.display(),
            self.client_port(member)
        );
        for peer in 0..MEMBERS {
            let (quorum, election) = (self.quorum_port(peer), self.election_port(peer));
            config.push_str(&format!("server.{}=127.0.0.1:{quorum}:{election}\n", peer + 1));
        }
        std::fs::write(folder.join("zoo.cfg"), config)?;
        let mut command = Command::new("java");
        command.args([
            "-Xmx512m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
            "-cp",
            "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        ]);
        command.arg(folder.join("zoo.cfg"));
        Ok(command)
    }

    fn etcd(&self, member: usize, folder: &Path) -> Command {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let cluster: Vec<String> =
            (0..MEMBERS).map(|peer| format!("n{peer}={}", url(self.quorum_port(peer)))).collect();
        let (client, peer) = (url(self.client_port(member)), url(self.quorum_port(member)));
        let mut command = Command::new("etcd");
        command.args(["--name", &format!("n{member}"), "--initial-cluster", &cluster.join(",")]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.arg("--data-dir").arg(folder.join("data")).args(["--logger", "zap"]);
        command
    }

    async fn is_leader(&self, member: usize) -> Option<bool> {
        let port = self.client_port(member);
        match self.kind {
            Kind::Node | Kind::Zookeeper => {
                let answer =
                    timeout(Duration::from_secs(1), four_letter_word(("127.0.0.1", port), "srvr")).await;
                let answer = answer.ok()?.ok()?;
                let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "))?;
                matches!(mode, "leader" | "follower").then_some(mode == "leader")
            }
            Kind::Etcd => {
                let answer = post(port, "/v3/maintenance/status", "{}").await.ok()?;
                let answer: serde_json::Value = serde_json::from_str(&answer).ok()?;
                let leader = answer.get("leader")?.as_str()?;
                (leader != "0").then(|| Some(leader) == answer["header"]["member_id"].as_str())
            }
        }
    }

    /// Waits until every member serves and gives the leader.
    async fn wait_for_all(&self) -> anyhow::Result<usize> {
        let started = Instant::now();
        while started.elapsed() < GIVE_UP {
            let mut roles = Vec::new();
            for member in 0..MEMBERS {
                roles.push(self.is_leader(member).await);
            }
            if roles.iter().all(Option::is_some)
                && roles.iter().filter(|leads| **leads == Some(true)).count() == 1
                && let Some(leader) = roles.iter().position(|leads| *leads == Some(true))
            {
                return Ok(leader);
            }
            sleep(Duration::from_millis(20)).await;
        }
        bail!("the ensemble did not come up within {GIVE_UP:?}; see {}", self.folder.display())
    }

    fn signal(&mut self, member: usize, signal: Signal) -> anyhow::Result<()> {
        let child = self.children[member].as_mut().context("not running")?;
        let pid = Pid::from_raw(i32::try_from(child.id())?).context("no pid")?;
        kill_process(pid, signal)?;
        if signal == Signal::KILL {
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Ensemble {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            // Killing works on stopped processes too; nothing is left to do when it fails.
            let _ = child.kill();
            let _ = child.wait();
        }
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// One HTTP request on a connection of its own; etcd's JSON gateway.
async fn post(port: u16, path: &str, body: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: \
            close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "refused");
    // One chunk is all that these answers have.
    Ok(body.lines().find(|line| line.starts_with('{')).unwrap_or(body).to_owned())
}

/// One write on a new connection.
async fn write(kind: Kind, port: u16) -> anyhow::Result<()> {
    match kind {
        Kind::Node | Kind::Zookeeper => {
            let client = connect(("127.0.0.1", port), ConnectOptions::default()).await?;
            client.set_data("/probe", vec![b'x'; 100], -1).await?;
        }
        Kind::Etcd => {
            // "probe" and a hundred x, as base64.
            let value = "eHh4".repeat(33);
            post(port, "/v3/kv/put", &format!("{{\"key\":\"cHJvYmU=\",\"value\":\"{value}\"}}")).await?;
        }
    }
    Ok(())
}

async fn prepare(ensemble: &Ensemble, leader: usize) -> anyhow::Result<()> {
    if ensemble.kind != Kind::Etcd {
        let port = ensemble.client_port(leader);
        let client = connect(("127.0.0.1", port), ConnectOptions::default()).await?;
        client.create("/probe", vec![b'x'], 0).await.context("failed to create the probe's znode")?;
        client.close_session().await?;
    }
    Ok(())
}

/// Writes every millisecond to each survivor until one is acknowledged.
async fn first_write(ensemble: &Ensemble, fault_at: Instant, gone: usize) -> anyhow::Result<Duration> {
    let (done, mut first) = mpsc::channel::<Instant>(1);
    let mut probes = Vec::new();
    for member in (0..MEMBERS).filter(|member| *member != gone) {
        let (kind, port, done) = (ensemble.kind, ensemble.client_port(member), done.clone());
        let open = Arc::new(Semaphore::new(MAX_OPEN));
        probes.push(tokio::spawn(async move {
            let mut beat = tokio::time::interval(Duration::from_millis(1));
            loop {
                beat.tick().await;
                let Ok(permit) = Arc::clone(&open).try_acquire_owned() else { continue };
                let done = done.clone();
                tokio::spawn(async move {
                    if let Ok(Ok(())) = timeout(ATTEMPT_TIMEOUT, write(kind, port)).await {
                        let _ = done.try_send(Instant::now());
                    }
                    drop(permit);
                });
            }
        }));
    }
    let at =
        timeout(GIVE_UP, first.recv()).await.context("no write was acknowledged")?.context("no probe")?;
    for probe in probes {
        probe.abort();
    }
    Ok(at.duration_since(fault_at))
}

fn spin(count: usize) -> Vec<Child> {
    (0..count).filter_map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().ok()).collect()
}

/// Watches a calm ensemble: each change of leader is an election that nobody needed.
async fn watch(ensemble: &Ensemble, seconds: u64, mut leader: usize) -> anyhow::Result<()> {
    let elections = AtomicU64::new(0);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut writes = 0_u64;
    let mut failed = 0_u64;
    while Instant::now() < until {
        let member = usize::try_from(writes % 3)?;
        match timeout(ATTEMPT_TIMEOUT * 10, write(ensemble.kind, ensemble.client_port(member))).await {
            Ok(Ok(())) => writes += 1,
            _ => {
                failed += 1;
                writes += 1;
            }
        }
        sleep(Duration::from_millis(20)).await;
        if ensemble.is_leader(leader).await != Some(true) {
            elections.fetch_add(1, Ordering::Relaxed);
            leader = ensemble.wait_for_all().await?;
        }
    }
    println!("needless elections {}, writes {writes}, failed {failed}", elections.load(Ordering::Relaxed));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let folder = std::env::temp_dir().join(format!("failover-{}", std::process::id()));
    let children = (0..MEMBERS).map(|_| None).collect();
    let mut ensemble = Ensemble { kind: args.kind, base_port: args.base_port, folder, keep: false, children };
    for member in 0..MEMBERS {
        ensemble.start(member)?;
    }
    let leader = ensemble.wait_for_all().await?;
    prepare(&ensemble, leader).await?;
    let mut busy = spin(args.busy);
    let outcome = match args.fault {
        Fault::None => watch(&ensemble, args.runs, leader).await,
        Fault::Kill | Fault::Stop => measure(&mut ensemble, &args).await,
    };
    for child in &mut busy {
        let _ = child.kill();
        let _ = child.wait();
    }
    outcome
}

async fn measure(ensemble: &mut Ensemble, args: &Args) -> anyhow::Result<()> {
    let mut figures = Vec::new();
    for run in 1..=args.runs {
        let leader = ensemble.wait_for_all().await?;
        sleep(CALM).await;
        let signal = if args.fault == Fault::Kill { Signal::KILL } else { Signal::STOP };
        let fault_at = Instant::now();
        ensemble.signal(leader, signal)?;
        let figure = first_write(ensemble, fault_at, leader).await?;
        eprintln!("run {run}: {:.1} ms, n{} led", figure.as_secs_f64() * 1e3, leader + 1);
        if args.until.is_some_and(|until| figure > Duration::from_millis(until)) {
            ensemble.keep = true;
            bail!("kept {}", ensemble.folder.display());
        }
        figures.push(figure);
        if args.fault == Fault::Kill {
            ensemble.start(leader)?;
        } else {
            ensemble.signal(leader, Signal::CONT)?;
        }
    }
    figures.sort_unstable();
    let ms = |figure: Option<&Duration>| figure.map_or(f64::NAN, |figure| figure.as_secs_f64() * 1e3);
    println!(
        "runs {}, median {:.1} ms, min {:.1} ms, max {:.1} ms",
        figures.len(),
        ms(figures.get(figures.len() / 2)),
        ms(figures.first()),
        ms(figures.last())
    );
    Ok(())
}
