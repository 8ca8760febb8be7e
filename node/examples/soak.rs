//! A long run of mixed load while members are killed and come back: what was promised is kept, and nothing
//! grows.
//!
//! ```text
//! cargo run --release -p node --example soak -- [--minutes 30] [--port 28000]
//! ```
//!
//! Three members as processes. Writers raise counters by compare-and-set and read them back behind a sync;
//! others make sequential znodes by the hundred, compare the list and delete them; sessions leave ephemerals
//! and close, or break off, or move; watchers hold every value they read against the events that they were
//! told. Every twenty seconds one of the first two members is killed (`kill -9`) and comes back a moment
//! later; the third one lives through all of it, so its memory and its descriptors show what grows. Snapshots
//! are taken every 10,000 transactions, and old files removed.
//!
//! A line a minute, and at the end the verdict: exit status 1 when a promise was broken.

#[path = "../tests/common/frames.rs"]
mod frames;
mod members;
#[expect(dead_code, reason = "tests wait until they are connected")]
#[path = "../tests/ensemble/raw.rs"]
mod raw;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use node_client::{Client, ConnectOptions, ErrorCode, OpError, Session};
use node_wire::client::{GetDataResponse, OpCode, PathWatch, SetDataRequest};
use rand::seq::IndexedRandom;
use tokio::time::{Instant, sleep, timeout};

use members::{Members, PATIENCE};
use raw::{Moving, RawClient};

/// Who does what.
const WRITERS: usize = 4;
const LISTERS: usize = 2;
const GUESTS: usize = 8;
const WATCHERS: usize = 2;

/// Between two operations of one of them.
const PACE: Duration = Duration::from_millis(5);

/// Sequential znodes until they are compared and deleted.
const LIST: usize = 200;

/// Ephemerals of a session.
const EPHEMERALS: usize = 5;

/// Time-out of a session that breaks off.
const SHORT: Duration = Duration::from_secs(4);

/// By when its ephemerals are gone, changes of leader included.
const EXPIRED: Duration = Duration::from_secs(30);

/// Between two kills.
const KILL_EVERY: Duration = Duration::from_secs(20);

const MEMBERS: &[&str] = &[
    "-D",
    "zookeeper.snapCount=10000",
    "-D",
    "autopurge.purgeInterval=1",
    "-D",
    "autopurge.snapRetainCount=3",
    "-D",
    "tickTime=2000",
];

/// What was done, and what was wrong.
#[derive(Debug, Default)]
struct Tally {
    stop: AtomicBool,
    writes: AtomicU64,
    unknown: AtomicU64,
    lists: AtomicU64,
    sessions: AtomicU64,
    ephemerals: AtomicU64,
    moved: AtomicU64,
    events: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

impl Tally {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn wrong(&self, what: String) {
        eprintln!("WRONG: {what}");
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn line(&self) -> String {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        format!(
            "{} writes ({} of unknown outcome), {} znodes listed, {} sessions ({} moved) with {} \
                ephemerals, {} events",
            of(&self.writes),
            of(&self.unknown),
            of(&self.lists),
            of(&self.sessions),
            of(&self.moved),
            of(&self.ephemerals),
            of(&self.events)
        )
    }
}

fn one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// What everybody needs.
#[derive(Clone, Debug)]
struct Bench {
    clients: Arc<[SocketAddr]>,
    tally: Arc<Tally>,
}

impl Bench {
    fn somewhere(&self) -> SocketAddr {
        *self.clients.choose(&mut rand::rng()).unwrap_or(&self.clients[0])
    }

    /// Connects somewhere, with an older session while it lives.
    async fn connect(&self, time_out: Duration, mut session: Option<Session>) -> Client {
        loop {
            let options =
                ConnectOptions { timeout: time_out, session: session.clone(), ..ConnectOptions::default() };
            match node_client::connect(self.somewhere(), options).await {
                Ok(client) => return client,
                Err(node_client::ConnectError::Expired) => session = None,
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let (time, port) = members::asked(30, 28_000)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(port, time))
}

async fn run(port: u16, time: Duration) -> anyhow::Result<ExitCode> {
    let mut members = Members::start(port, MEMBERS)?;
    let bench = Bench { clients: members.clients.clone().into(), tally: Arc::default() };
    let client = bench.connect(PATIENCE, None).await;
    for path in ["/soak", "/soak/guests"] {
        client.create(path, "", 0).await?;
    }
    let mut tasks = Vec::new();
    for number in 0..WRITERS {
        client.create(counter(number), "0", 0).await?;
        tasks.push(tokio::spawn(write(bench.clone(), number)));
    }
    for number in 0..LISTERS {
        client.create(format!("/soak/list-{number}"), "", 0).await?;
        tasks.push(tokio::spawn(list(bench.clone(), number)));
    }
    tasks.extend((0..GUESTS).map(|number| tokio::spawn(visit(bench.clone(), number))));
    let mut watchers = Vec::new();
    for number in 0..WATCHERS {
        let own = format!("/soak/own-{number}");
        client.create(own.clone(), "", 0).await?;
        let bench = bench.clone();
        watchers.push(std::thread::spawn(move || watch(&bench, &own)));
    }
    client.close_session().await?;

    let started = Instant::now();
    let (mut kills, mut next_kill, mut next_line) = (0, KILL_EVERY, Duration::ZERO);
    while started.elapsed() < time {
        if started.elapsed() >= next_line {
            tell(&members, &bench.tally, started.elapsed(), kills);
            next_line += Duration::from_secs(60);
        }
        if started.elapsed() >= next_kill {
            members.check()?;
            let victim = usize::from(rand::random::<bool>());
            members.kill(victim)?;
            let away = Duration::from_millis(rand::random_range(500..4000));
            sleep(away).await;
            members.restart(victim)?;
            kills += 1;
            next_kill += KILL_EVERY;
        }
        sleep(Duration::from_millis(100)).await;
    }
    bench.tally.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        timeout(PATIENCE * 2, task).await.context("a client does not come to its end")??;
    }
    for watcher in watchers {
        if watcher.join().is_err() {
            bench.tally.wrong("a watcher panicked".to_owned());
        }
    }
    leave_nothing(&bench).await;
    members.check()?;
    tell(&members, &bench.tally, started.elapsed(), kills);
    let wrong = bench.tally.wrong.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{} promises were broken, {kills} members were killed", wrong.len());
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(members: &Members, tally: &Tally, at: Duration, kills: usize) {
    let disk: Vec<u64> = members.disk().into_iter().map(|bytes| bytes >> 20).collect();
    println!(
        "{:>3} min, {kills} kills: {}; memory {:?} MiB, descriptors {:?}, disk {disk:?} MiB",
        at.as_secs() / 60,
        tally.line(),
        members.memory(),
        members.descriptors()
    );
}

fn counter(number: usize) -> String {
    format!("/soak/counter-{number}")
}

/// Raises a counter for ever: its value is its version.
async fn write(bench: Bench, number: usize) {
    let path = counter(number);
    let (mut acknowledged, mut tried, mut session) = (0, 0, None);
    while bench.tally.goes_on() {
        let client = bench.connect(PATIENCE, session.take()).await;
        let read = timeout(PATIENCE, client.sync_then_get(path.clone())).await;
        if let Ok(Ok(read)) = read {
            let (value, version) = (number_of(&read.value), read.value.stat.version);
            if !(acknowledged..=tried).contains(&value) || value != version {
                bench.tally.wrong(format!(
                    "{path} is {value} at version {version}: {acknowledged} was acknowledged, {tried} tried"
                ));
            }
            acknowledged = value.max(acknowledged);
            while bench.tally.goes_on() {
                tried = acknowledged + 1;
                let write = client.set_data(path.clone(), tried.to_string(), acknowledged);
                match timeout(PATIENCE, write).await {
                    Ok(Ok(_)) => {
                        acknowledged = tried;
                        one(&bench.tally.writes);
                    }
                    Ok(Err(error)) if error.is_definite() => {
                        if error.refusal() == Some(ErrorCode::BadVersion) {
                            bench.tally.wrong(format!("{path} was not at version {acknowledged}"));
                        }
                        break;
                    }
                    Ok(Err(_)) | Err(_) => {
                        one(&bench.tally.unknown);
                        break;
                    }
                }
                sleep(PACE).await;
            }
        }
        session = Some(client.session());
    }
}

fn number_of(read: &GetDataResponse) -> i32 {
    let data = read.data.as_deref().unwrap_or_default();
    std::str::from_utf8(data).ok().and_then(|text| text.parse().ok()).unwrap_or(-1)
}

/// Makes sequential znodes, compares the list with what was acknowledged, deletes them, and again.
async fn list(bench: Bench, number: usize) {
    let parent = format!("/soak/list-{number}");
    let (mut made, mut doubtful, mut session) = (BTreeSet::new(), 0, None);
    while bench.tally.goes_on() {
        let client = bench.connect(PATIENCE, session.take()).await;
        while bench.tally.goes_on() && made.len() < LIST {
            match timeout(PATIENCE, client.create(format!("{parent}/n-"), "x", 2)).await {
                Ok(Ok(reply)) => {
                    if !made.insert(reply.value.to_string()) {
                        bench.tally.wrong(format!("{} was made twice", reply.value));
                    }
                    one(&bench.tally.lists);
                }
                Ok(Err(error)) if error.is_definite() => break,
                Ok(Err(_)) | Err(_) => {
                    doubtful += 1;
                    one(&bench.tally.unknown);
                    break;
                }
            }
            sleep(PACE).await;
        }
        if made.len() >= LIST
            && let Ok(Ok(listed)) = timeout(PATIENCE, client.sync_then_children(parent.clone())).await
        {
            let listed: BTreeSet<String> =
                listed.value.into_iter().map(|name| format!("{parent}/{name}")).collect();
            let (lost, more) = (made.difference(&listed).count(), listed.difference(&made).count());
            if lost > 0 || more > doubtful {
                bench.tally.wrong(format!("{parent}: {lost} lost, {more} more, {doubtful} doubtful"));
            }
            if clear(&client, listed).await {
                (made, doubtful) = (BTreeSet::new(), 0);
            } else {
                // What is left is found in the next list, and what is not was deleted.
                (made, doubtful) = (BTreeSet::new(), LIST * 2);
            }
        }
        session = Some(client.session());
    }
}

/// Deletes all of these. False when that is not known of each.
async fn clear(client: &Client, paths: BTreeSet<String>) -> bool {
    for path in paths {
        match timeout(PATIENCE, client.delete(path, -1)).await {
            Ok(Ok(_) | Err(OpError::Refused { code: ErrorCode::NoNode, .. })) => {}
            Ok(Err(_)) | Err(_) => return false,
        }
    }
    true
}

/// Sessions that come and go, and their ephemerals.
async fn visit(bench: Bench, number: usize) {
    // Paths that must be gone, and since when they need not be there.
    let mut over: VecDeque<(Instant, Vec<String>)> = VecDeque::new();
    let mut count = 0;
    while bench.tally.goes_on() {
        count += 1;
        let client = bench.connect(SHORT, None).await;
        one(&bench.tally.sessions);
        while let Some((_, paths)) = over.pop_front_if(|(since, _)| *since <= Instant::now()) {
            for path in paths {
                if let Ok(Ok(exists)) = timeout(PATIENCE, client.sync_then_exists(path.clone())).await
                    && exists.value
                {
                    bench.tally.wrong(format!("{path} outlived its session"));
                }
            }
        }
        let paths: Vec<String> =
            (0..EPHEMERALS).map(|place| format!("/soak/guests/{number}-{count}-{place}")).collect();
        let mut all_there = true;
        for path in &paths {
            match timeout(PATIENCE, client.create(path.clone(), "", 1)).await {
                Ok(Ok(_)) => one(&bench.tally.ephemerals),
                Ok(Err(_)) | Err(_) => all_there = false,
            }
        }
        let stay = Duration::from_millis(rand::random_range(10..1000));
        sleep(stay).await;
        match count % 3 {
            0 => {
                let closed = timeout(PATIENCE, client.close_session()).await;
                let gone = if matches!(closed, Ok(Ok(_))) { Duration::ZERO } else { EXPIRED };
                over.push_back((Instant::now() + gone, paths));
            }
            1 => {
                drop(client);
                over.push_back((Instant::now() + EXPIRED, paths));
            }
            _ => {
                let (session, left) = (client.session(), Instant::now());
                drop(client);
                let again = bench.connect(SHORT, Some(session.clone())).await;
                if again.session().id == session.id {
                    one(&bench.tally.moved);
                } else if left.elapsed() < SHORT / 2 {
                    bench.tally.wrong(format!("a session ended {:?} after it was left", left.elapsed()));
                }
                if again.session().id == session.id && all_there {
                    for path in &paths {
                        if let Ok(Ok(exists)) = timeout(PATIENCE, again.sync_then_exists(path.clone())).await
                            && !exists.value
                            && !again.is_closed()
                        {
                            bench.tally.wrong(format!("{path} is gone and its session is not"));
                        }
                    }
                }
                // Whichever it is, the session ends now or by itself.
                let _ = timeout(PATIENCE, again.close_session()).await;
                over.push_back((Instant::now() + EXPIRED, paths));
            }
        }
    }
}

/// Nobody is left, so neither is anything ephemeral.
async fn leave_nothing(bench: &Bench) {
    let deadline = Instant::now() + EXPIRED;
    loop {
        let client = bench.connect(PATIENCE, None).await;
        let left = client.sync_then_children("/soak/guests").await.map(|left| left.value);
        // It ends by itself otherwise.
        let _ = client.close_session().await;
        match left {
            Ok(left) if left.is_empty() => return,
            Ok(left) if Instant::now() > deadline => {
                return bench.tally.wrong(format!("{left:?} outlived all sessions"));
            }
            Ok(_) | Err(_) => sleep(Duration::from_millis(500)).await,
        }
    }
}

/// A counter as a watcher knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    version: i32,
    /// It was read at that version with a watch on it, and nothing was told since.
    watched: bool,
}

/// Reads counters with watches and without, and changes a znode of its own, on one session that moves.
fn watch(bench: &Bench, own: &str) {
    let mut known = [Known::default(); WRITERS];
    let mut older: Option<Moving> = None;
    while bench.tally.goes_on() {
        let Some(mut client) = RawClient::try_connect(bench.somewhere(), older.as_ref()) else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        // The watches stayed behind.
        known.iter_mut().for_each(|known| known.watched = false);
        while bench.tally.goes_on() {
            let number = rand::random_range(0..WRITERS);
            let looked = look(bench, &mut client, number, &mut known);
            if looked.and_then(|()| change(bench, &mut client, own)).is_none() {
                break;
            }
            std::thread::sleep(PACE);
        }
        older = Some(client.moving.clone());
    }
}

/// Changes what it watches itself: it is told before its change is answered.
fn change(bench: &Bench, client: &mut RawClient, own: &str) -> Option<()> {
    let ask = PathWatch { path: own.into(), watch: true };
    client.ask(OpCode::GetData, |w| ask.encode(w))?;
    let change = SetDataRequest { path: own.into(), data: None, version: -1 };
    let (error, _) = client.ask(OpCode::SetData, |w| change.encode(w))?;
    if error != 0 {
        // Its member lost the leader in between.
        return None;
    }
    let before = client.events.len();
    client.events.retain(|event| *event.path != *own);
    let told = before - client.events.len();
    if told != 1 {
        bench.tally.wrong(format!("the change of {own} was told {told} times before it was answered"));
    }
    bench.tally.events.fetch_add(1, Ordering::Relaxed);
    Some(())
}

/// Reads a counter, with a watch where there is none. What was told before the answer must fit it.
fn look(bench: &Bench, client: &mut RawClient, number: usize, known: &mut [Known; WRITERS]) -> Option<()> {
    let before = known[number];
    let ask = PathWatch { path: counter(number).into(), watch: !before.watched };
    let (error, mut reply) = client.ask(OpCode::GetData, |w| ask.encode(w))?;
    if error != 0 {
        bench.tally.wrong(format!("a watcher was refused: {error}"));
        return None;
    }
    let mut told = false;
    while let Some(event) = client.events.pop_front() {
        one(&bench.tally.events);
        let of = (0..WRITERS).find(|number| counter(*number) == *event.path);
        match of {
            Some(of) if known[of].watched => {
                known[of].watched = false;
                told |= of == number;
            }
            Some(of) => bench.tally.wrong(format!("{} was told without a watch", counter(of))),
            None => bench.tally.wrong(format!("{} was told, which nobody watches", event.path)),
        }
    }
    let version = GetDataResponse::decode(&mut reply).ok()?.stat.version;
    let path = counter(number);
    if version < before.version {
        bench.tally.wrong(format!("{path} went back from version {} to {version}", before.version));
    }
    if before.watched && !told && version != before.version {
        bench.tally.wrong(format!(
            "{path} is at version {version} before its change from {} was told",
            before.version
        ));
    }
    if told && version == before.version {
        bench.tally.wrong(format!("{path} was told to change and is at version {version} still"));
    }
    known[number] = Known { version, watched: ask.watch || known[number].watched };
    Some(())
}
