//! What ensembles do in a second, one beside the other.
//!
//! ```text
//! cargo run --release -p node --example throughput -- \
//!     [--seconds 3] [--rounds 2] [--open 16] NAME=HOST:PORT,HOST:PORT... [NAME=...]
//! ```
//!
//! `--open` leaves loads with another number of open requests out. Anything that speaks ZooKeeper can be
//! named. Every load is given to each ensemble in turn, so that a noisy machine is as noisy to all; ratios
//! are to the first. A load has so many requests open at a time, on 1, 4, 8 or 16 connections that are spread
//! over the ensemble. One thread and poll(2): what a generator takes, servers beside it lack.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_wire::client::{
    Acl, ConnectRequest, ConnectResponse, CreateRequest, OpCode, PathWatch, ReplyHeader, Request,
    SetDataRequest, put_frame, take_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{Jute, Reader, Writer};
use rustix::event::{PollFd, PollFlags, poll};

/// Znodes that are written and read.
const KEYS: usize = 64;

/// What is asked: the operation and the bytes of a node's data.
const LOADS: &[(OpCode, usize)] =
    &[(OpCode::SetData, 100), (OpCode::SetData, 1024), (OpCode::Create, 100), (OpCode::GetData, 100)];

/// Connections, and how many requests each has open.
const WINDOWS: &[(usize, usize)] = &[(1, 1), (4, 4), (8, 8), (16, 16)];

/// How many were made.
static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

/// Longer than any answer.
const MAX_FRAME: usize = 4 << 20;

fn main() -> anyhow::Result<()> {
    let (mut seconds, mut rounds, mut open, mut ensembles) = (3, 2, None, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number =
            || words.next().and_then(|number| number.parse().ok()).context("a number is missing");
        match (word.as_str(), word.split_once('=')) {
            ("--seconds", _) => seconds = number()?,
            ("--rounds", _) => rounds = number()?,
            ("--open", _) => open = Some(number()?),
            (_, Some((name, hosts))) => {
                ensembles.push((name.to_owned(), hosts.split(',').map(str::to_owned).collect::<Vec<_>>()));
            }
            _ => bail!("unknown: {word}; an ensemble is NAME=HOST:PORT,HOST:PORT"),
        }
    }
    ensure!(!ensembles.is_empty(), "no ensemble is named: NAME=HOST:PORT,HOST:PORT");
    for (name, hosts) in &ensembles {
        prepare(hosts).with_context(|| format!("failed to prepare {name}"))?;
    }
    for round in 1..=rounds {
        println!("round {round}: operations a second, 50% and 99% in ms");
        for (op, size) in LOADS {
            let is_asked = |load: &&(usize, usize)| open.is_none_or(|open| (load.0 * load.1) as u64 == open);
            for (connections, window) in WINDOWS.iter().filter(is_asked) {
                print!("{op:?} {size} B, {:>3} open:", connections * window);
                let mut first: Option<Figures> = None;
                for (name, hosts) in &ensembles {
                    let load = Load { op: *op, size: *size, connections: *connections, window: *window };
                    let figures = load
                        .run(hosts, Duration::from_secs(seconds))
                        .with_context(|| format!("failed to load {name}"))?;
                    print!("  {name} {:.0} {:.2} {:.2}", figures.rate, figures.half, figures.tail);
                    match &first {
                        None => first = Some(figures),
                        Some(first) => print!(
                            " (x{:.2}, 99% x{:.2})",
                            figures.rate / first.rate,
                            figures.tail / first.tail
                        ),
                    }
                    io::stdout().flush()?;
                }
                println!();
            }
        }
    }
    Ok(())
}

/// Makes the znodes that are written and read.
fn prepare(hosts: &[String]) -> anyhow::Result<()> {
    let mut connection = Connection::connect(&hosts[0])?;
    let parents = ["/bench".to_owned(), bench_of_this_process()];
    for path in parents.into_iter().chain((0..KEYS).map(key)) {
        // Whoever came before has made some of them already.
        connection.ask(OpCode::Create, &create(path.into(), 0));
        connection.settle()?;
    }
    Ok(())
}

/// Below it are this process's own.
fn bench_of_this_process() -> String {
    format!("/bench/of-{}", std::process::id())
}

fn key(key: usize) -> String {
    format!("/bench/key-{key}")
}

fn create(path: ByteString, size: usize) -> CreateRequest {
    CreateRequest { path, data: Some(vec![b'x'; size].into()), acl: vec![Acl::world_anyone()], flags: 0 }
}

struct Load {
    op: OpCode,
    size: usize,
    connections: usize,
    window: usize,
}

/// Of one load.
struct Figures {
    /// Operations a second.
    rate: f64,
    /// Median latency in milliseconds.
    half: f64,
    /// The 99th percentile in milliseconds.
    tail: f64,
}

impl Load {
    /// Loads for a while that does not count, and then for `time`.
    fn run(&self, hosts: &[String], time: Duration) -> anyhow::Result<Figures> {
        let mut writer = Connection::connect(&hosts[0])?;
        for path in (0..KEYS).map(key) {
            let data = Some(Bytes::from(vec![b'x'; self.size]));
            writer.ask(OpCode::SetData, &SetDataRequest { path: path.into(), data, version: -1 });
            writer.settle()?;
        }
        let mut connections = Vec::new();
        for (index, host) in (0..self.connections).zip(hosts.iter().cycle()) {
            let mut connection = Connection::connect(host)?;
            connection.stream.set_nonblocking(true)?;
            (0..self.window).for_each(|_| self.ask(index, &mut connection));
            connections.push(connection);
        }
        let data_from = Instant::now() + time.mul_f64(0.3).min(Duration::from_secs(2));
        let end = data_from + time;
        let (mut latencies, mut refused) = (Vec::new(), 0);
        while Instant::now() < end {
            for connection in &mut connections {
                connection.send()?;
            }
            let mut ready: Vec<_> = connections.iter().map(Connection::interest).collect();
            poll(&mut ready, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 }))?;
            let readable: Vec<bool> = ready
                .iter()
                .map(|ready| ready.revents().intersects(PollFlags::IN | PollFlags::HUP))
                .collect();
            for (index, connection) in
                connections.iter_mut().enumerate().filter(|(index, _)| readable[*index])
            {
                let mut answered = 0;
                connection.receive(|since, header| {
                    answered += 1;
                    refused += u64::from(header.err != 0);
                    if since >= data_from {
                        latencies.push(since.elapsed());
                    }
                })?;
                (0..answered).for_each(|_| self.ask(index, connection));
            }
        }
        ensure!(refused == 0, "{refused} requests were refused");
        ensure!(!latencies.is_empty(), "nothing was answered within {time:?}");
        latencies.sort_unstable();
        let at = |share: usize| latencies[(latencies.len() * share / 100).min(latencies.len() - 1)];
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let rate = latencies.len() as f64 / time.as_secs_f64();
        Ok(Figures { rate, half: at(50).as_secs_f64() * 1e3, tail: at(99).as_secs_f64() * 1e3 })
    }

    /// The next request of a connection.
    fn ask(&self, index: usize, connection: &mut Connection) {
        let count = connection.asked;
        let key = || key((index * 7 + count) % KEYS).into();
        match self.op {
            OpCode::SetData => {
                let data = Some(Bytes::from(vec![b'x'; self.size]));
                connection.ask(self.op, &SetDataRequest { path: key(), data, version: -1 });
            }
            OpCode::Create => {
                let path = format!("{}/{}-{count}", bench_of_this_process(), connection.number);
                connection.ask(self.op, &create(path.into(), self.size));
            }
            _ => connection.ask(self.op, &PathWatch { path: key(), watch: false }),
        }
    }
}

/// A session with its open requests.
struct Connection {
    /// No two of this process have the same.
    number: usize,
    stream: TcpStream,
    open: VecDeque<Instant>,
    asked: usize,
    out: BytesMut,
    received: BytesMut,
}

impl Connection {
    fn connect(host: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).with_context(|| format!("failed to connect to {host}"))?;
        stream.set_nodelay(true)?;
        let mut connection = Self {
            number: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
            stream,
            open: VecDeque::new(),
            asked: 0,
            out: BytesMut::new(),
            received: BytesMut::new(),
        };
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: Zxid::ZERO,
            timeout_ms: 30_000,
            session: SessionId::NONE,
            password: Bytes::from_static(&[0; 16]),
            read_only: Some(false),
        };
        let mut frame = BytesMut::new();
        put_frame(&mut frame, |w| request.encode(w));
        connection.stream.write_all(&frame)?;
        let frame = loop {
            if let Some(frame) = take_frame(&mut connection.received, MAX_FRAME)? {
                break frame;
            }
            connection.fill()?;
        };
        let response = ConnectResponse::decode(&mut Reader::new(frame))?;
        ensure!(response.timeout_ms > 0, "{host} gave no session");
        Ok(connection)
    }

    fn ask(&mut self, op: OpCode, body: &impl Jute) {
        let mut encoded = BytesMut::new();
        body.encode(&mut Writer::new(&mut encoded));
        self.asked += 1;
        // Wraps after two billion.
        let xid = i32::try_from(self.asked & 0x3fff_ffff).unwrap_or(0);
        let request = Request { xid, op: op.code(), body: encoded.freeze() };
        put_frame(&mut self.out, |w| request.encode(w));
        self.open.push_back(Instant::now());
    }

    fn interest(&self) -> PollFd<'_> {
        let writes = if self.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        PollFd::new(&self.stream, PollFlags::IN | writes)
    }

    /// Writes as much as the socket takes.
    fn send(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        match self.stream.write(&self.out) {
            Ok(count) => drop(self.out.split_to(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Waits until everything is answered, as long as the socket blocks.
    fn settle(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        while !self.open.is_empty() {
            self.receive(|_, _| {})?;
        }
        Ok(())
    }

    /// Reads once and hands over what was answered, with when it was asked.
    fn receive(&mut self, mut answered: impl FnMut(Instant, ReplyHeader)) -> anyhow::Result<()> {
        self.fill()?;
        while let Some(frame) = take_frame(&mut self.received, MAX_FRAME)? {
            let header = ReplyHeader::decode(&mut Reader::new(frame))?;
            let since = self.open.pop_front().context("an answer without a question")?;
            answered(since, header);
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}
