//! Who reaches whom, one way at a time.
//!
//! A token is sent from each member to each other one by the very code and under the very rules that carry
//! what the members say: a connection of its own, through [`carry`]. Last goes the control, by a lane that no
//! rule touches. A token that did not arrive tells something only when the control did; on a machine too
//! busy to deliver even that, nothing is known, and the answer says so.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runs::member::MemberId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::forward::{Far, Fate, carry};
use super::lanes::{Board, Lane};
use super::protocol::{Pair, ProbeRound, Probed};

/// A token: the round's number, and the pair.
const TOKEN_BYTES: usize = 24;
/// Probes that may be on their way at once, over all rounds.
const MAX_ARRIVING: usize = 4096;
/// The pair under which the control travels; no member has the id 0.
const CONTROL: Pair = Pair { from: MemberId(0), to: MemberId(0) };
/// A probe that can't be sent within this time is not sent.
const SEND_PATIENCE: Duration = Duration::from_millis(100);
/// A control that takes longer than this does not come.
const CONTROL_PATIENCE: Duration = Duration::from_secs(2);

/// Sends probes. Lives as long as the links.
pub struct Prober {
    board: Board,
    entry: TcpListener,
    entry_address: SocketAddr,
    sink_address: SocketAddr,
    arrivals: Arc<Arrivals>,
    round: u64,
}

/// Tokens that arrived: round and pair, and when.
#[derive(Default)]
struct Arrivals {
    seen: Mutex<BTreeMap<(u64, Pair), Instant>>,
    changed: Notify,
}

impl Prober {
    /// Opens the two listeners that probes need: one to be accepted from, one to arrive at.
    pub async fn open(board: Board) -> io::Result<Self> {
        let entry = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let sink = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let entry_address = entry.local_addr()?;
        let sink_address = sink.local_addr()?;
        let arrivals = Arc::new(Arrivals::default());
        tokio::spawn(receive(sink, Arc::clone(&arrivals)));
        Ok(Self { board, entry, entry_address, sink_address, arrivals, round: 0 })
    }

    /// Sends one round. What it leaves behind is gone when it returns.
    pub async fn round(&mut self, patience: Duration) -> ProbeRound {
        self.round += 1;
        let mut carriers = JoinSet::new();
        let mut sent = BTreeMap::new();
        let mut kept = Vec::new();
        let board = self.board.clone();
        for pair in board.pairs() {
            let (Some(out), Some(back)) = (board.lane(pair), board.lane(pair.back())) else { continue };
            sent.insert(pair, Instant::now());
            // What is counted and measured of a lane is what members said.
            kept.extend(self.send(pair, out.for_probes(), back.for_probes(), &mut carriers).await);
        }
        sent.insert(CONTROL, Instant::now());
        kept.extend(self.send(CONTROL, board.control(), board.control(), &mut carriers).await);
        self.await_arrivals(sent.len(), patience).await;
        // Held probes must not arrive in a later round, nor count among the connections that wait.
        carriers.shutdown().await;
        drop(kept);
        self.collect(&sent)
    }

    async fn send(
        &self,
        pair: Pair,
        out: Arc<Lane>,
        back: Arc<Lane>,
        carriers: &mut JoinSet<Fate>,
    ) -> Option<TcpStream> {
        let pair_of_ends = tokio::time::timeout(SEND_PATIENCE, self.ends());
        let (mut dialled, near) = pair_of_ends.await.ok()??;
        let far = Far { target: self.sink_address, introduces: None };
        carriers.spawn(carry(near, far, out, back));
        let mut token = Vec::with_capacity(TOKEN_BYTES);
        for number in [self.round, pair.from.0, pair.to.0] {
            token.extend_from_slice(&number.to_be_bytes());
        }
        dialled.write_all(&token).await.ok()?;
        Some(dialled)
    }

    /// A connection to ourselves: the end that speaks, and the end that a link would have accepted.
    async fn ends(&self) -> Option<(TcpStream, TcpStream)> {
        let dialled = TcpStream::connect(self.entry_address).await.ok()?;
        let mine = dialled.local_addr().ok()?;
        loop {
            let (near, peer) = self.entry.accept().await.ok()?;
            // Whoever else found this port is sent away.
            if peer == mine {
                return Some((dialled, near));
            }
        }
    }

    /// Waits for every token, but for the others not longer than `patience` after the control.
    async fn await_arrivals(&self, expected: usize, patience: Duration) {
        let mut deadline = Instant::now() + CONTROL_PATIENCE.max(patience);
        let mut control_seen = false;
        loop {
            let changed = self.arrivals.changed.notified();
            {
                let seen = self.arrivals.seen.lock().unwrap_or_else(PoisonError::into_inner);
                if seen.range((self.round, CONTROL)..).count() >= expected {
                    return;
                }
                if !control_seen && seen.contains_key(&(self.round, CONTROL)) {
                    control_seen = true;
                    deadline = Instant::now() + patience;
                }
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }

    fn collect(&self, sent: &BTreeMap<Pair, Instant>) -> ProbeRound {
        let mut seen = self.arrivals.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let took = |pair: &Pair| {
            let arrived = seen.get(&(self.round, *pair))?;
            let took = arrived.saturating_duration_since(sent[pair]);
            Some(u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
        };
        let control_us = took(&CONTROL);
        let probes = sent
            .keys()
            .filter(|pair| **pair != CONTROL)
            .map(|pair| Probed { pair: *pair, took_us: took(pair) })
            .collect();
        seen.clear();
        ProbeRound { probes, control_us }
    }
}

/// Takes in tokens for ever.
async fn receive(sink: TcpListener, arrivals: Arc<Arrivals>) {
    let room = Arc::new(Semaphore::new(MAX_ARRIVING));
    loop {
        let Ok((mut stream, _)) = sink.accept().await else {
            tokio::time::sleep(SEND_PATIENCE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else { continue };
        let arrivals = Arc::clone(&arrivals);
        tokio::spawn(async move {
            let _permit = permit;
            let mut token = [0_u8; TOKEN_BYTES];
            if stream.read_exact(&mut token).await.is_err() {
                return;
            }
            let number = |at: usize| {
                let mut bytes = [0_u8; 8];
                bytes.copy_from_slice(&token[at..at + 8]);
                u64::from_be_bytes(bytes)
            };
            let key = (number(0), Pair::from((number(8), number(16))));
            arrivals.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Instant::now());
            arrivals.changed.notify_waiters();
        });
    }
}
