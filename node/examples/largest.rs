//! The largest requests there are, while members are killed: no change of leader that no kill explains.
//!
//! ```text
//! cargo run --release -p node --example largest -- [--minutes 60] [--port 28100]
//! ```
//!
//! Three members as processes, with a `jute.maxbuffer` of 16 MiB. One client after the other asks what takes
//! a member longest: a session with 150,000 ephemerals that nobody comes back for, multis of 100,000
//! operations, 5,000 creates below a znode of 1 MB, watches by the hundred thousand. Every thirty seconds one
//! member is killed (`kill -9`), the leader every other time, and comes back two seconds later. Ten times a
//! second each member is asked for its epoch: when it rises though no leader was killed for fifteen seconds,
//! somebody was deposed for its silence.
//!
//! A line for each request, and at the end the verdict: exit status 1 when a change of leader has no reason.

#[path = "../tests/common/frames.rs"]
mod frames;
#[expect(dead_code, reason = "soak looks at what grows")]
mod members;
#[expect(dead_code, reason = "tests wait until they are connected")]
#[path = "../tests/ensemble/raw.rs"]
mod raw;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, CreateRequest, DeleteRequest, MultiOp, MultiRequest, OpCode, PathWatch, SetWatches2,
};
use node_wire::ids::Zxid;

use members::{Members, PATIENCE};
use raw::RawClient;

/// Between two kills.
const KILL_EVERY: Duration = Duration::from_secs(30);

/// How long a killed member stays away.
const AWAY: Duration = Duration::from_secs(2);

/// A change of leader by then is the kill's.
const EXPLAINED: Duration = Duration::from_secs(15);

/// By when the ephemerals of a session of 30 s are gone that nobody comes back for.
const EXPIRED: Duration = Duration::from_secs(90);

/// What a request that does not belong to a case holds at most.
const PIECE: u32 = 10_000;

/// What a client lost, and what it was refused: both happen while members are killed.
type Asked = Option<i32>;

/// Asks for one of the largest.
type Case = fn(&Asker) -> Asked;

const CASES: &[(&str, Case)] = &[
    ("a multi of 100,000 creates, and one of as many deletes", |asker| {
        let parent = asker.parent(Bytes::new())?;
        asker.ask(creates(&parent, 0..100_000, 0))?;
        asker.ask(deletes(&parent, 0..100_000))
    }),
    ("a session with 150,000 ephemerals that nobody comes back for", |asker| {
        let parent = asker.many(150_000, 1)?;
        let deadline = Instant::now() + EXPIRED;
        while Instant::now() < deadline && asker.children(&parent) != Some(0) {
            std::thread::sleep(Duration::from_secs(1));
        }
        (asker.children(&parent)? == 0).then_some(0)
    }),
    ("5,000 creates below a znode of 1 MB", |asker| {
        let parent = asker.parent(Bytes::from(vec![b'x'; 1_000_000]))?;
        asker.ask(creates(&parent, 0..5_000, 0))?;
        asker.ask(deletes(&parent, 0..5_000))
    }),
    ("100,000 watches of one client, which all fire", |asker| {
        let parent = asker.many(100_000, 0)?;
        let mut watcher = asker.connect();
        let watches = SetWatches2 {
            relative_zxid: Zxid(u64::MAX >> 1),
            data_watches: (0..100_000).map(|number| child(&parent, number)).collect(),
            ..SetWatches2::default()
        };
        let (error, _) = watcher.ask(OpCode::SetWatches2, |w| watches.encode(w))?;
        asker.ask(deletes(&parent, 0..100_000))?;
        Some(error)
    }),
];

/// Asks, each time on a connection of its own at another member.
struct Asker {
    clients: Vec<SocketAddr>,
    asked: std::cell::Cell<usize>,
}

impl Asker {
    /// The next member that serves.
    fn connect(&self) -> RawClient {
        loop {
            self.asked.set(self.asked.get() + 1);
            let at = self.clients[self.asked.get() % self.clients.len()];
            if let Some(client) = RawClient::try_connect(at, None) {
                return client;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks for a multi. What nobody answers is not asked again.
    fn ask(&self, ops: Vec<MultiOp>) -> Asked {
        multi(&mut self.connect(), ops)
    }

    /// A znode of its own, with this data.
    fn parent(&self, data: Bytes) -> Option<String> {
        let path = format!("/largest-{}", self.asked.get());
        let create = MultiOp::Create(CreateRequest {
            path: path.clone().into(),
            data: Some(data),
            acl: vec![Acl::world_anyone()],
            flags: 0,
        });
        (self.ask(vec![create])? == 0).then_some(path)
    }

    /// A znode with so many children, made by a session that is left at once.
    fn many(&self, count: u32, flags: i32) -> Option<String> {
        let parent = self.parent(Bytes::new())?;
        let mut client = self.connect();
        for first in (0..count).step_by(PIECE as usize) {
            if multi(&mut client, creates(&parent, first..count.min(first + PIECE), flags))? != 0 {
                return None;
            }
        }
        Some(parent)
    }

    fn children(&self, path: &str) -> Option<usize> {
        let ask = PathWatch { path: path.into(), watch: false };
        let (error, mut reply) = self.connect().ask(OpCode::GetAllChildrenNumber, |w| ask.encode(w))?;
        (error == 0).then(|| reply.int().ok().and_then(|count| usize::try_from(count).ok()))?
    }
}

fn multi(client: &mut RawClient, ops: Vec<MultiOp>) -> Asked {
    let (error, _) = client.ask(OpCode::Multi, |w| MultiRequest { ops }.encode(w))?;
    Some(error)
}

fn child(parent: &str, number: u32) -> ByteString {
    format!("{parent}/n{number:06}").into()
}

fn creates(parent: &str, numbers: std::ops::Range<u32>, flags: i32) -> Vec<MultiOp> {
    let create = |number| {
        let (path, acl) = (child(parent, number), vec![Acl::world_anyone()]);
        MultiOp::Create(CreateRequest { path, data: None, acl, flags })
    };
    numbers.map(create).collect()
}

fn deletes(parent: &str, numbers: std::ops::Range<u32>) -> Vec<MultiOp> {
    numbers
        .map(|number| MultiOp::Delete(DeleteRequest { path: child(parent, number), version: -1 }))
        .collect()
}

/// Whether a member leads, and its epoch. `None` while it does not serve.
fn look(at: SocketAddr) -> Option<(bool, u32)> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"srvr").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let zxid = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x"))?;
    let epoch = u64::from_str_radix(zxid, 16).ok()? >> 32;
    Some((answer.contains("Mode: leader"), u32::try_from(epoch).ok()?))
}

/// Kills members and looks at their epochs until it is told to stop. Tells how many were killed, and each
/// change of leader that no kill explains.
fn break_and_look(mut members: Members, stop: &AtomicBool) -> anyhow::Result<(usize, Vec<String>)> {
    let (began, mut kills, mut next_kill) = (Instant::now(), 0, Instant::now() + KILL_EVERY);
    let (mut led, mut epoch, mut leader_killed) = (None, 0, None::<Instant>);
    let mut away: Option<(usize, Instant)> = None;
    let mut unexplained = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for id in 0..members.clients.len() {
            let Some((leads, its)) = look(members.clients[id]) else { continue };
            led = if leads { Some(id) } else { led };
            if its > epoch && epoch > 0 && leader_killed.is_none_or(|at| at.elapsed() > EXPLAINED) {
                let at = began.elapsed().as_secs();
                unexplained.push(format!("{at} s: epoch {its} follows {epoch}, and no leader was killed"));
            }
            epoch = epoch.max(its);
        }
        if let Some((id, until)) = away
            && Instant::now() >= until
        {
            members.restart(id)?;
            away = None;
        }
        if Instant::now() >= next_kill
            && let Some(leader) = led
        {
            members.check()?;
            let victim = (leader + kills % 2) % members.clients.len();
            members.kill(victim)?;
            if victim == leader {
                (led, leader_killed) = (None, Some(Instant::now()));
            }
            (kills, away) = (kills + 1, Some((victim, Instant::now() + AWAY)));
            next_kill = Instant::now() + KILL_EVERY;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok((kills, unexplained))
}

fn main() -> anyhow::Result<ExitCode> {
    let (mut minutes, mut port) = (60, 28_100);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number =
            words.next().and_then(|number| number.parse::<u64>().ok()).context("a number is missing")?;
        match word.as_str() {
            "--minutes" => minutes = number,
            "--port" => port = u16::try_from(number)?,
            other => bail!("unknown: {other}"),
        }
    }
    let members = Members::start(port, &["-D", "jute.maxbuffer=16777216"])?;
    let asker = Asker { clients: members.clients.clone(), asked: std::cell::Cell::new(0) };
    let stop = Arc::new(AtomicBool::new(false));
    let breaker = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || break_and_look(members, &stop)
    });
    let began = Instant::now();
    for (name, case) in CASES.iter().cycle() {
        if began.elapsed() > Duration::from_secs(minutes * 60) || breaker.is_finished() {
            break;
        }
        let asked = Instant::now();
        let told = match case(&asker) {
            Some(0) => "done".to_owned(),
            Some(error) => format!("refused with {error}"),
            None => "lost its member, or was refused".to_owned(),
        };
        println!(
            "{:>4} s: {name}: {told}, {:.2} s",
            began.elapsed().as_secs(),
            asked.elapsed().as_secs_f64()
        );
    }
    stop.store(true, Ordering::Relaxed);
    let (kills, unexplained) = breaker.join().map_err(|_| anyhow::anyhow!("who kills panicked"))??;
    unexplained.iter().for_each(|one| println!("UNEXPLAINED: {one}"));
    println!("{kills} members were killed; {} changes of leader are not explained by it", unexplained.len());
    Ok(if unexplained.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
