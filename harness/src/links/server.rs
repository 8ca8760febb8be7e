//! The links' process: listeners, commands, the lease.
//!
//! One thread does everything, so that a command is in force for every connection at the moment it is
//! answered. The lease is renewed by any line; when none comes for [`LEASE`], or the input ends, everything
//! is healed and the process goes, whatever became of its harness.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinSet;

use super::forward::{Far, Fate, carry};
use super::lanes::{Board, Lane};
use super::owner::{self, Marks};
use super::probe::Prober;
use super::protocol::{Answer, Command, EntranceSpec, LinkSpec, Outcome, Pair, Request};
use super::rules::Mode;

/// How long the harness may be silent.
pub const LEASE: Duration = Duration::from_secs(3);
/// How often the harness renews the lease.
pub const RENEWAL: Duration = Duration::from_millis(500);
/// A line longer than this is not ours.
const MAX_LINE_BYTES: usize = 1 << 20;
/// Connections through one link at once, those that wait included.
const MAX_CONNECTIONS_PER_LINK: usize = 512;
/// Answers on their way to the harness.
const MAX_ANSWERS: usize = 64;
/// How long what was held may still flow after the last healing, before the process goes.
const LAST_DRAIN: Duration = Duration::from_millis(200);

/// Why the links ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// They were asked to.
    Stopped,
    /// The harness closed its end.
    InputClosed,
    /// The harness was silent for too long.
    LeaseExpired,
}

/// Runs the links until they end, with everything healed.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    lease: Duration,
) -> io::Result<Ended> {
    let (answers, receiver) = mpsc::channel(MAX_ANSWERS);
    let writer = tokio::spawn(write_answers(output, receiver));
    let mut links = Links { board: Board::default(), prober: None, listeners: JoinSet::new(), answers };
    let ended = links.obey(input, lease).await?;
    links.board.heal();
    tokio::time::sleep(LAST_DRAIN).await;
    links.listeners.shutdown().await;
    drop(links);
    writer.abort();
    Ok(ended)
}

struct Links {
    board: Board,
    prober: Option<Arc<Mutex<Prober>>>,
    listeners: JoinSet<()>,
    answers: mpsc::Sender<Answer>,
}

impl Links {
    async fn obey(&mut self, input: impl AsyncRead + Unpin, lease: Duration) -> io::Result<Ended> {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = tokio::time::timeout(lease, input.read_until(b'\n', &mut line));
            match read.await {
                Err(_) => return Ok(Ended::LeaseExpired),
                Ok(Ok(0)) => return Ok(Ended::InputClosed),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error),
            }
            if line.len() > MAX_LINE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line too long for a command"));
            }
            let request: Request = serde_json::from_slice(&line)?;
            if request.command == Command::Stop {
                self.board.heal();
                self.answer(request.id, Outcome::Done(self.board.counts())).await;
                return Ok(Ended::Stopped);
            }
            self.carry_out(request).await;
        }
    }

    async fn carry_out(&mut self, request: Request) {
        let outcome = match request.command {
            Command::Renew | Command::Stop => return,
            Command::Start { links, entrances } => self.start(links, entrances).await,
            Command::Set { rules } => {
                if self.board.set(&rules) {
                    Outcome::Done(self.board.counts())
                } else {
                    Outcome::Refused("a rule names a pair that has no link".to_owned())
                }
            }
            Command::Heal => {
                self.board.heal();
                Outcome::Done(self.board.counts())
            }
            Command::Counters => Outcome::Done(self.board.counts()),
            Command::Delays => Outcome::Delays(self.board.delays()),
            Command::Probe { patience_ms } => {
                self.probe(request.id, Duration::from_millis(patience_ms));
                return;
            }
        };
        self.answer(request.id, outcome).await;
    }

    async fn answer(&self, id: u64, outcome: Outcome) {
        // A harness that reads no answers is gone, and the lease will tell.
        let _ = self.answers.send(Answer { id, outcome }).await;
    }

    async fn start(&mut self, links: Vec<LinkSpec>, entrances: Vec<EntranceSpec>) -> Outcome {
        let through = entrances.iter().flat_map(EntranceSpec::pairs);
        self.board = Board::new(links.iter().map(|spec| spec.pair).chain(through));
        let (mut bound, mut open) = (Vec::new(), Vec::new());
        for spec in links {
            match bind(spec.listen).await {
                Ok(listener) => bound.push((spec, listener)),
                Err(outcome) => return outcome,
            }
        }
        for spec in entrances {
            match bind(spec.listen).await {
                Ok(listener) => open.push((spec, listener)),
                Err(outcome) => return outcome,
            }
        }
        match Prober::open(self.board.clone()).await {
            Ok(prober) => self.prober = Some(Arc::new(Mutex::new(prober))),
            Err(error) => return Outcome::Refused(format!("opening the probes' ports: {error}")),
        }
        for (spec, listener) in bound {
            let lanes = (self.board.lane(spec.pair), self.board.lane(spec.pair.back()));
            if let (Some(out), Some(back)) = lanes {
                self.listeners.spawn(listen(spec, listener, out, back));
            }
        }
        for (spec, listener) in open {
            self.listeners.spawn(receive(spec, listener, self.board.clone()));
        }
        Outcome::Done(self.board.counts())
    }

    /// Probes beside everything else; rounds follow each other.
    fn probe(&self, id: u64, patience: Duration) {
        let answers = self.answers.clone();
        let prober = self.prober.clone();
        tokio::spawn(async move {
            let outcome = match prober {
                Some(prober) => Outcome::Probed(prober.lock().await.round(patience).await),
                None => Outcome::Refused("the links were not started".to_owned()),
            };
            let _ = answers.send(Answer { id, outcome }).await;
        });
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Outcome> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Outcome::Busy(address),
        _ => Outcome::Refused(format!("listening on {address}: {error}")),
    })
}

/// Accepts for one link. While its lane refuses, nobody listens.
async fn listen(spec: LinkSpec, listener: TcpListener, out: Arc<Lane>, back: Arc<Lane>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS_PER_LINK));
    let mut rule = out.rule.subscribe();
    let mut listener = Some(listener);
    loop {
        let refuses = rule.borrow_and_update().mode == Mode::Refuse;
        if refuses {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(spec.listen).await.ok();
        }
        tokio::select! {
            changed = rule.changed() => if changed.is_err() { return },
            accepted = accept(listener.as_ref()) => {
                let Some((stream, _)) = accepted else { continue };
                let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
                let (out, back) = (Arc::clone(&out), Arc::clone(&back));
                tokio::spawn(async move {
                    let _permit = permit;
                    let far = Far { target: spec.target, introduces: spec.introduces };
                    carry_for_a_member(stream, far, out, back).await;
                });
            }
        }
    }
}

/// Accepts where everybody dials one member. The port is everybody's, so it is open as long as the links are:
/// whom a rule refuses is reset as soon as it is known who it is.
async fn receive(spec: EntranceSpec, listener: TcpListener, board: Board) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS_PER_LINK * spec.from.len().max(1)));
    let spec = Arc::new(spec);
    let marks = Marks::own();
    loop {
        let Some((stream, peer)) = accept(Some(&listener)).await else { continue };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (spec, board, marks) = (Arc::clone(&spec), board.clone(), marks.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let here = spec.listen;
            // Files are read meanwhile, and commands must not wait for that.
            let owner = tokio::task::spawn_blocking(move || owner::of(&marks, peer, here)).await;
            // A stranger, or somebody who has hung up already.
            let Some(from) = owner.ok().flatten() else { return };
            let far = Far { target: spec.target, introduces: None };
            if from == spec.to {
                // No rule is between a member and itself.
                carry(stream, far, Arc::default(), Arc::default()).await;
                return;
            }
            let pair = Pair::new(from, spec.to);
            if let (Some(out), Some(back)) = (board.lane(pair), board.lane(pair.back())) {
                carry_for_a_member(stream, far, out, back).await;
            }
        });
    }
}

/// Carries a connection that a member made. It is counted here and not in `carry`, which carries probes too:
/// what is counted is what members felt.
async fn carry_for_a_member(stream: TcpStream, far: Far, out: Arc<Lane>, back: Arc<Lane>) {
    match carry(stream, far, Arc::clone(&out), Arc::clone(&back)).await {
        Fate::Apart => {}
        Fate::OutRefused => out.count_refused(),
        Fate::BackRefused => back.count_refused(),
    }
}

async fn accept(listener: Option<&TcpListener>) -> Option<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => match listener.accept().await {
            Ok(accepted) => Some(accepted),
            // Out of file descriptors, or a connection that was gone already: not a reason to spin.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                None
            }
        },
        None => std::future::pending().await,
    }
}

async fn write_answers(mut output: impl AsyncWrite + Unpin, mut answers: mpsc::Receiver<Answer>) {
    while let Some(answer) = answers.recv().await {
        let Ok(mut line) = serde_json::to_vec(&answer) else { continue };
        line.push(b'\n');
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
