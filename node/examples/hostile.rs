//! Hostile clients against three members, and what a client that behaves notices of it.
//!
//! ```text
//! cargo run --release -p node --example hostile -- [--port 27000] [--seconds 5] [ATTACK...]
//! ```
//!
//! The members are processes of the `node` binary beside this program. A client of each of two members writes
//! and reads at a fixed rate; a latency counts from when its operation was due. For every attack a line tells
//! its 50th and 99th percentile and its maximum before, during and after, the memory of the members
//! (resident, in MiB: before, the most during it, after), and what the attackers were told. Ten thousand
//! connections need as many descriptors on both sides: `ulimit -n 25000`.

#[path = "../tests/hostile/attacks.rs"]
mod attacks;
#[expect(dead_code, reason = "others end members and start them again")]
mod members;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use node_client::{Client, ConnectOptions};
use node_wire::ids::ServerId;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use members::{Members, resident};

/// Operations of each client that behaves, in a second.
const RATE: u32 = 100;

/// Everything that can be done to them, in the order in which it is done.
const ATTACKS: &[&str] =
    &["nothing", "half", "gigabyte", "watches", "connections", "slow", "flood", "strangers", "liar"];

fn main() -> anyhow::Result<()> {
    let mut port = 27_000;
    let mut seconds = 5;
    let mut asked = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number =
            || words.next().and_then(|number| number.parse().ok()).context("a number is missing");
        match word.as_str() {
            "--port" => port = number()?,
            "--seconds" => seconds = number()?,
            attack if ATTACKS.contains(&attack) => asked.push(attack.to_owned()),
            other => bail!("unknown: {other}; attacks are {}", ATTACKS.join(", ")),
        }
    }
    if asked.is_empty() {
        asked = ATTACKS.iter().map(|attack| (*attack).to_owned()).collect();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(u16::try_from(port)?, Duration::from_secs(seconds), &asked))
}

async fn run(port: u16, time: Duration, asked: &[String]) -> anyhow::Result<()> {
    println!(
        "{:<12} {:>24} {:>24} {:>24}  memory of the members in MiB (before, most, after)",
        "attack", "before: 50% 99% max ms", "during", "after"
    );
    for attack in asked {
        // New members for each, so that none inherits what another has left.
        let mut members = Members::start(port, &["-D", "zookeeper.maxCnxns=0"])?;
        let bench = Arc::new(Bench::new(&members).await?);
        let (before, memory_before) = (bench.measure(time).await, members.memory());
        let watcher = Most::watch(&members);
        let during = bench.measure(time);
        let (during, (said, held)) = tokio::join!(during, strike(attack, &members, time));
        let most = watcher.finish().await;
        drop(held);
        let after = bench.measure(time).await;
        let memory = std::iter::zip(memory_before, std::iter::zip(most, members.memory()));
        let memory: Vec<String> =
            memory.map(|(before, (most, after))| format!("{before}/{most}/{after}")).collect();
        println!("{attack:<12} {before:>24} {during:>24} {after:>24}  {}", memory.join(" "));
        println!("{:<12} {said}", "");
        members.check()?;
    }
    Ok(())
}

/// Looks at memory until it is told to stop.
struct Most {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Vec<u64>>,
}

impl Most {
    fn watch(members: &Members) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ids = members.ids();
        let told = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut most = vec![0; ids.len()];
            while !told.load(Ordering::Relaxed) {
                for (most, id) in most.iter_mut().zip(&ids) {
                    *most = resident(*id).max(*most);
                }
                sleep(Duration::from_millis(20)).await;
            }
            most
        });
        Self { stop, task }
    }

    async fn finish(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap_or_default()
    }
}

/// Clients that behave, one at each of the first two members.
struct Bench {
    clients: Vec<Client>,
}

impl Bench {
    async fn new(members: &Members) -> anyhow::Result<Self> {
        let mut clients = Vec::new();
        for addr in &members.clients {
            let deadline = Instant::now() + Duration::from_secs(30);
            clients.push(loop {
                match node_client::connect(addr, ConnectOptions::default()).await {
                    Ok(client) => break client,
                    Err(error) if Instant::now() > deadline => return Err(error.into()),
                    Err(_) => sleep(Duration::from_millis(20)).await,
                }
            });
        }
        clients[0].create("/behaved", "0", 0).await?;
        clients[0].create("/large", vec![7; 1_000_000], 0).await?;
        Ok(Self { clients })
    }

    /// Half writes and half reads at a fixed rate, for so long.
    async fn measure(self: &Arc<Self>, time: Duration) -> Figures {
        let figures = Arc::new(Mutex::new(Figures::default()));
        let mut under_way = JoinSet::new();
        let started = Instant::now();
        let mut number = 0;
        while started.elapsed() < time {
            let due = started + Duration::from_secs(1) * number / RATE;
            sleep_until(due).await;
            for client in &self.clients[..2] {
                let (client, figures) = (client.clone(), Arc::clone(&figures));
                under_way.spawn(async move {
                    let work = async {
                        if number.is_multiple_of(2) {
                            client.set_data("/behaved", "1", -1).await.is_ok()
                        } else {
                            client.get_data("/behaved").await.is_ok()
                        }
                    };
                    let done = timeout(Duration::from_secs(10), work).await.unwrap_or(false);
                    let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
                    if done { figures.latencies.push(due.elapsed()) } else { figures.failed += 1 }
                });
            }
            number += 1;
        }
        while under_way.join_next().await.is_some() {}
        let figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
        figures.clone()
    }
}

#[derive(Clone, Debug, Default)]
struct Figures {
    latencies: Vec<Duration>,
    failed: usize,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.latencies.clone();
        sorted.sort();
        let at = |percent: usize| {
            let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
            sorted.get(place).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
        };
        let failed = if self.failed > 0 { format!(" {} failed", self.failed) } else { String::new() };
        f.pad(&format!("{:.1} {:.1} {:.1}{failed}", at(50), at(99), at(100)))
    }
}

/// Whatever holds an attack up until it is dropped.
type Held = Vec<Box<dyn std::any::Any>>;

fn hold<T: 'static>(held: &mut Held, what: T) {
    held.push(Box::new(what));
}

/// Announces frames that nobody may send.
async fn gigabytes(addr: SocketAddr, until: Instant) -> String {
    let mut count = 0;
    while Instant::now() < until {
        count += usize::from(attacks::gigabyte(addr).await.is_ok());
    }
    format!("{count} times twice a gigabyte was announced, each connection was closed")
}

/// Takes many sessions.
async fn connections(addr: SocketAddr, held: &mut Held) -> String {
    let mut lanes = JoinSet::new();
    for _ in 0..10 {
        lanes.spawn(attacks::connections(addr, 1000));
    }
    let mut count = 0;
    while let Some(Ok(lane)) = lanes.join_next().await {
        count += lane.len();
        hold(held, lane);
    }
    format!("{count} connections with a session each stand")
}

/// Asks for much and reads nothing.
async fn slow_readers(addr: SocketAddr, held: &mut Held) -> String {
    for _ in 0..20 {
        if let Ok(attacker) = attacks::slow_reader(addr, "/large", 400).await {
            hold(held, attacker);
        }
    }
    let open = node_client::four_letter_word(addr, "stat").await.unwrap_or_default();
    let open = open.lines().filter(|line| line.trim_start().starts_with("/127.0.0.1")).count();
    format!("{} asked for 400 MB each and read nothing; {open} connections of all are open", held.len())
}

/// Connects and leaves again.
async fn flood(addr: SocketAddr, until: Instant) -> String {
    let mut lanes = JoinSet::new();
    for _ in 0..8 {
        lanes.spawn(async move {
            let mut count = 0;
            while Instant::now() < until {
                count += attacks::flood(addr, 20).await;
            }
            count
        });
    }
    let mut count = 0;
    while let Some(Ok(lane)) = lanes.join_next().await {
        count += lane;
    }
    format!("{count} connections came and went, half of them with a session")
}

/// Speaks on the ports between members.
async fn strangers(members: &Members, until: Instant) -> String {
    let mut count = 0;
    while Instant::now() < until {
        for (election, quorum) in std::iter::zip(&members.election, &members.quorum) {
            count += attacks::strangers(*election, *quorum, 10).await.len();
        }
    }
    format!("{count} strangers spoke on the ports between members")
}

/// Says on the ports between members that it is one of them.
async fn liars(members: &Members, until: Instant, held: &mut Held) -> String {
    let mut count = 0;
    while Instant::now() < until {
        for (id, (election, quorum)) in (1..).zip(std::iter::zip(&members.election, &members.quorum)) {
            let claims = ServerId(if id == 2 { 3 } else { 2 });
            if let Ok(both) = attacks::liar(*election, *quorum, claims).await {
                hold(held, both);
                count += 1;
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
    format!("{count} times a liar said that he was server 2 or 3, on both ports")
}

/// Strikes, and goes on or stands for so long. Answers with what the attackers were told.
async fn strike(attack: &str, members: &Members, time: Duration) -> (String, Held) {
    let mut held: Held = Vec::new();
    let addr = members.clients[0];
    let until = Instant::now() + time;
    let said = match attack {
        "half" => {
            let mut count = 0;
            for _ in 0..500 {
                if let Ok(both) = attacks::half_a_frame(addr).await {
                    hold(&mut held, both);
                    count += 1;
                }
            }
            format!("{count} halves of a frame behind a session, and as many of a connect request, stand")
        }
        "gigabyte" => gigabytes(addr, until).await,
        "watches" => match attacks::watches(addr, 1_100_000, 20_000).await {
            Ok((attacker, taken)) => {
                hold(&mut held, attacker);
                format!("{taken} watches were taken, the next 20000 refused (ThrottledOp)")
            }
            Err(error) => format!("the connection broke: {error}"),
        },
        "connections" => connections(addr, &mut held).await,
        "slow" => slow_readers(addr, &mut held).await,
        "flood" => flood(addr, until).await,
        "strangers" => strangers(members, until).await,
        "liar" => liars(members, until, &mut held).await,
        _ => String::new(),
    };
    sleep_until(until).await;
    (said, held)
}
