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
//! A line for each case, and at the end the verdict: exit status 1 when a change of leader has no reason, or
//! when there was a case that never came to its end, so that nothing was shown of it.

#[path = "../tests/common/frames.rs"]
mod frames;
#[expect(dead_code, reason = "soak looks at what grows")]
mod members;
#[expect(dead_code, reason = "tests wait until they are connected")]
#[path = "../tests/ensemble/raw.rs"]
mod raw;

use std::cell::Cell;
use std::net::SocketAddr;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use bytestring::ByteString;
use node_wire::client::{
    Acl, CREATE_EPHEMERAL, CreateRequest, DeleteRequest, MultiOp, MultiRequest, OpCode, PathOnly, PathWatch,
    SetWatches2,
};
use node_wire::ids::Zxid;
use node_wire::jute::{Reader, Writer};

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

/// Between two looks at the members, or at what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Asks for one of the largest. While members are killed a case may lose its member, or be refused by it.
type Case = fn(&Asker) -> anyhow::Result<()>;

const CASES: &[(&str, Case)] = &[
    ("a multi of 100,000 creates, and one of as many deletes", |asker| {
        let parent = asker.parent(Bytes::new())?;
        asker.ask(creates(&parent, 0..100_000, 0))?;
        asker.ask(deletes(&parent, 0..100_000))
    }),
    ("a session with 150,000 ephemerals that nobody comes back for", |asker| {
        let parent = asker.many(150_000, CREATE_EPHEMERAL)?;
        until(EXPIRED, "the ephemerals are gone", || {
            asker.children(&parent).ok().filter(|count| *count == 0)
        })?;
        Ok(())
    }),
    ("5,000 creates below a znode of 1 MB", |asker| {
        let parent = asker.parent(Bytes::from(vec![b'x'; 1_000_000]))?;
        asker.ask(creates(&parent, 0..5_000, 0))?;
        asker.ask(deletes(&parent, 0..5_000))
    }),
    ("100,000 watches of one client, which all fire", |asker| {
        let parent = asker.many(100_000, 0)?;
        let mut watcher = asker.connect()?;
        let watches = SetWatches2 {
            relative_zxid: Zxid(u64::MAX >> 1),
            data_watches: (0..100_000).map(|number| child(&parent, number)).collect(),
            ..SetWatches2::default()
        };
        answered(&mut watcher, OpCode::SetWatches2, |w| watches.encode(w))?;
        asker.ask(deletes(&parent, 0..100_000))?;
        // What was told stands before the answer to a request that comes behind it at the same member.
        let sync = PathOnly { path: "/".into() };
        answered(&mut watcher, OpCode::Sync, |w| sync.encode(w))?;
        ensure!(watcher.events.len() == 100_000, "{} were told", watcher.events.len());
        Ok(())
    }),
];

/// Waits until there is something.
fn until<T>(within: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "it does not come to this: {what}");
        std::thread::park_timeout(LOOK_EVERY);
    }
}

/// Asks, each time on a connection of its own at another member.
struct Asker {
    clients: Vec<SocketAddr>,
    asked: Cell<usize>,
}

impl Asker {
    /// The next member that serves.
    fn connect(&self) -> anyhow::Result<RawClient> {
        until(PATIENCE, "a member serves", || {
            self.asked.set(self.asked.get() + 1);
            RawClient::try_connect(self.clients[self.asked.get() % self.clients.len()], None)
        })
    }

    /// Asks for a multi. What nobody answers is not asked again.
    fn ask(&self, ops: Vec<MultiOp>) -> anyhow::Result<()> {
        multi(&mut self.connect()?, ops)
    }

    /// A znode of its own, with this data.
    fn parent(&self, data: Bytes) -> anyhow::Result<String> {
        let path = format!("/largest-{}", self.asked.get());
        self.ask(vec![create(path.clone().into(), data, 0)])?;
        Ok(path)
    }

    /// A znode with so many children, made by a session that is left at once.
    fn many(&self, count: u32, flags: i32) -> anyhow::Result<String> {
        let parent = self.parent(Bytes::new())?;
        let mut client = self.connect()?;
        for first in (0..count).step_by(PIECE as usize) {
            multi(&mut client, creates(&parent, first..count.min(first + PIECE), flags))?;
        }
        Ok(parent)
    }

    fn children(&self, path: &str) -> anyhow::Result<i32> {
        let ask = PathWatch { path: path.into(), watch: false };
        let mut reply = answered(&mut self.connect()?, OpCode::GetAllChildrenNumber, |w| ask.encode(w))?;
        Ok(reply.int()?)
    }
}

/// The rest of an answer without an error.
fn answered(
    client: &mut RawClient,
    op: OpCode,
    body: impl FnOnce(&mut Writer<'_>),
) -> anyhow::Result<Reader> {
    let (error, reply) = client.ask(op, body).context("it lost its member")?;
    ensure!(error == 0, "it was refused with {error}");
    Ok(reply)
}

fn multi(client: &mut RawClient, ops: Vec<MultiOp>) -> anyhow::Result<()> {
    answered(client, OpCode::Multi, |w| MultiRequest { ops }.encode(w)).map(drop)
}

fn child(parent: &str, number: u32) -> ByteString {
    format!("{parent}/n{number:06}").into()
}

fn create(path: ByteString, data: Bytes, flags: i32) -> MultiOp {
    MultiOp::Create(CreateRequest { path, data: Some(data), acl: vec![Acl::world_anyone()], flags })
}

fn creates(parent: &str, numbers: Range<u32>, flags: i32) -> Vec<MultiOp> {
    numbers.map(|number| create(child(parent, number), Bytes::new(), flags)).collect()
}

fn deletes(parent: &str, numbers: Range<u32>) -> Vec<MultiOp> {
    numbers
        .map(|number| MultiOp::Delete(DeleteRequest { path: child(parent, number), version: -1 }))
        .collect()
}

/// Whether a member leads, and its epoch. `None` while it does not serve.
async fn look(at: SocketAddr) -> Option<(bool, u32)> {
    let answer =
        tokio::time::timeout(PATIENCE, node_client::four_letter_word(at, "srvr")).await.ok()?.ok()?;
    let zxid = answer.lines().find_map(|line| line.strip_prefix("Zxid: 0x"))?;
    let epoch = u64::from_str_radix(zxid, 16).ok()? >> 32;
    Some((answer.contains("Mode: leader"), u32::try_from(epoch).ok()?))
}

/// What came of the kills.
#[derive(Default)]
struct Broken {
    kills: usize,
    of_leaders: usize,
    /// Each change of leader that no kill explains.
    unexplained: Vec<String>,
}

/// Kills members and looks at their epochs until the other end of this is gone.
fn break_and_look(mut members: Members, goes_on: &Receiver<()>) -> anyhow::Result<Broken> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (began, mut next_kill) = (Instant::now(), Instant::now() + KILL_EVERY);
    let (mut led, mut epoch, mut leader_killed) = (None, 0, None::<Instant>);
    let mut away: Option<(usize, Instant)> = None;
    let mut broken = Broken::default();
    while goes_on.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        for id in 0..members.clients.len() {
            let Some((leads, its)) = runtime.block_on(look(members.clients[id])) else { continue };
            led = if leads { Some(id) } else { led };
            if its > epoch && epoch > 0 && leader_killed.is_none_or(|at| at.elapsed() > EXPLAINED) {
                let at = began.elapsed().as_secs();
                broken
                    .unexplained
                    .push(format!("{at} s: epoch {its} follows {epoch}, and no leader was killed"));
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
            let victim = (leader + broken.kills % 2) % members.clients.len();
            members.kill(victim)?;
            broken.kills += 1;
            if victim == leader {
                (led, leader_killed) = (None, Some(Instant::now()));
                broken.of_leaders += 1;
            }
            away = Some((victim, Instant::now() + AWAY));
            next_kill = Instant::now() + KILL_EVERY;
        }
    }
    ensure!(epoch > 0, "no member ever told its epoch");
    Ok(broken)
}

fn main() -> anyhow::Result<ExitCode> {
    let (time, port) = members::asked(60, 28_100)?;
    let members = Members::start(port, &["-D", "jute.maxbuffer=16777216"])?;
    let asker = Asker { clients: members.clients.clone(), asked: Cell::new(0) };
    let (going, goes_on) = mpsc::channel();
    let breaker = std::thread::spawn(move || break_and_look(members, &goes_on));
    let began = Instant::now();
    let mut done = vec![0; CASES.len()];
    for (at, (name, case)) in CASES.iter().enumerate().cycle() {
        if began.elapsed() > time || breaker.is_finished() {
            break;
        }
        let asked = Instant::now();
        let told = case(&asker);
        done[at] += usize::from(told.is_ok());
        let told = told.map_or_else(|error| format!("{error:#}"), |()| "done".to_owned());
        println!(
            "{:>4} s: {name}: {told}, {:.2} s",
            began.elapsed().as_secs(),
            asked.elapsed().as_secs_f64()
        );
    }
    drop(going);
    let Broken { kills, of_leaders, unexplained } =
        breaker.join().map_err(|_| anyhow!("who kills panicked"))??;
    unexplained.iter().for_each(|one| println!("UNEXPLAINED: {one}"));
    let never = CASES.iter().zip(&done).filter(|(_, done)| **done == 0).map(|((name, _), _)| name);
    let never: Vec<_> = never.inspect(|name| println!("NEVER DONE: {name}")).collect();
    println!(
        "{} cases were done; {kills} members were killed, {of_leaders} of which led; {} changes of leader \
         are not explained by it",
        done.iter().sum::<usize>(),
        unexplained.len()
    );
    Ok(if unexplained.is_empty() && never.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
