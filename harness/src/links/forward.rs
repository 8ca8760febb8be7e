//! One connection through a link.
//!
//! Both directions are pumped by one task, each under the rule of its own lane. Between looking at a rule
//! and handing bytes on nothing is awaited, and the process has one thread: once a rule was answered as in
//! force, not a byte passes against it.
//!
//! A connection is made towards the target only while its first direction passes, as a SYN would wait. One
//! whose maker gave up in the meantime is forgotten, because its SYN never arrived. A FIN and a reset travel
//! like data: behind the bytes before them, and not through a held lane.
//!
//! A rule that resets one direction ends the connection, and with it the other direction: whoever is told
//! that its bytes are refused has no connection left on which it could hear. So a reset is one-way only in
//! who is counted as refused, and a probe of the opposite direction does not arrive either.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::introduction::Introduction;
use super::lanes::Lane;
use super::rules::Rule;
use crate::num::wide;

/// How much of one direction is kept before its sender feels it.
const QUEUE_LIMIT_BYTES: usize = 256 * 1024;
/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;
/// A connect on loopback takes microseconds, or the other side's backlog is full.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);
/// How long a target may refuse before the connection that waits for it is reset.
const REFUSED_PATIENCE: Duration = Duration::from_millis(100);
/// The pause between two attempts.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

/// A connection that must be reset at both ends.
enum Broken<'a> {
    /// The rule of this lane says so.
    Refused(&'a Lane),
    /// One of the ends did it.
    Apart,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// By one of its ends, or both.
    Apart,
    /// By the rule for what the dialling side says.
    OutRefused,
    /// By the rule for what it is told.
    BackRefused,
}

/// Where a connection leads.
#[derive(Clone, Copy, Debug)]
pub struct Far {
    /// The target.
    pub target: SocketAddr,
    /// What the dialling side's introduction names instead of its own address.
    pub introduces: Option<SocketAddr>,
}

/// Carries one accepted connection to its far end. `out` is the lane of what the dialling side says.
pub async fn carry(near: TcpStream, far: Far, out: Arc<Lane>, back: Arc<Lane>) -> Fate {
    match try_carry(&near, far, &out, &back).await {
        Ok(()) | Err(Broken::Apart) => Fate::Apart,
        Err(Broken::Refused(lane)) if std::ptr::eq(lane, &raw const *out) => Fate::OutRefused,
        Err(Broken::Refused(_)) => Fate::BackRefused,
    }
}

async fn try_carry<'a>(
    near: &TcpStream,
    Far { target, introduces }: Far,
    out: &'a Lane,
    back: &'a Lane,
) -> Result<(), Broken<'a>> {
    if let Err(broken) = passage(near, out, back).await {
        abort(near);
        return Err(broken);
    }
    if given_up(near).await {
        return Ok(());
    }
    let Some(far) = reach(near, target).await else {
        // The refusal is news from the target, and news waits while that direction is held.
        let opened = open(back).await;
        abort(near);
        return opened;
    };
    // Without this, small packets wait for each other's acknowledgements and elections look slower.
    let _ = near.set_nodelay(true);
    let _ = far.set_nodelay(true);
    let mut there = Pump::new(near, &far, out);
    there.introduction = introduces.map(Introduction::naming);
    let here = Pump::new(&far, near, back);
    let ended = tokio::try_join!(there.run(back), here.run(out));
    if ended.is_err() {
        abort(near);
        abort(&far);
    }
    ended.map(|_| ())
}

/// Connects to the target. While it refuses, it is tried again for a short while.
///
/// The connection that waits here was accepted by us, so its maker believes to be connected. Were it reset
/// the moment nobody listens behind it, a maker that dials again at once would do so thousands of times a
/// second, and fill the kernel's table of connections until packets of everybody are dropped.
async fn reach(near: &TcpStream, target: SocketAddr) -> Option<TcpStream> {
    let deadline = Instant::now() + REFUSED_PATIENCE;
    loop {
        match tokio::time::timeout(CONNECT_PATIENCE, TcpStream::connect(target)).await {
            Ok(Ok(far)) => return Some(far),
            Ok(Err(_)) if Instant::now() < deadline => tokio::time::sleep(REFUSED_PAUSE).await,
            Ok(Err(_)) | Err(_) => return None,
        }
        if given_up(near).await {
            return None;
        }
    }
}

/// Waits as a SYN would: while the lane holds, and for the lane's delay.
async fn passage<'a>(near: &TcpStream, out: &'a Lane, back: &'a Lane) -> Result<(), Broken<'a>> {
    let _waiting = Gauge::raise(&out.dials_waiting, 1);
    let mut back_rule = back.rule.subscribe();
    tokio::select! {
        biased;
        _ = back_rule.wait_for(|rule| rule.breaks()) => return Err(Broken::Refused(back)),
        opened = open(out) => opened?,
    }
    let delay = out.rule().delay();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    // Registers the socket with the driver, so that `given_up` knows.
    let _ = near.ready(Interest::WRITABLE).await;
    Ok(())
}

/// Waits until a lane lets bytes through; an error when it breaks connections instead.
async fn open(lane: &Lane) -> Result<(), Broken<'_>> {
    let mut rule = lane.rule.subscribe();
    match rule.wait_for(|rule| !rule.holds()).await {
        Ok(rule) if rule.breaks() => Err(Broken::Refused(lane)),
        Ok(_) => Ok(()),
        // The lane is part of the caller's board, so its sender lives.
        Err(_) => Err(Broken::Apart),
    }
}

/// Whether the side that dialled has closed already.
async fn given_up(near: &TcpStream) -> bool {
    match tokio::time::timeout(Duration::ZERO, near.ready(Interest::READABLE)).await {
        Ok(Ok(ready)) => ready.is_read_closed(),
        Ok(Err(_)) => true,
        Err(_) => false,
    }
}

/// Has the connection end with a reset once it is dropped.
fn abort(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Raises a counter for as long as it lives.
struct Gauge<'a> {
    counter: &'a AtomicU64,
    amount: u64,
}

impl<'a> Gauge<'a> {
    fn raise(counter: &'a AtomicU64, amount: u64) -> Self {
        counter.fetch_add(amount, Ordering::Relaxed);
        Self { counter, amount }
    }
}

impl Drop for Gauge<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

/// What the reading side came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Fin,
    Reset,
}

/// What was read at once, or what is left of it.
struct Piece {
    came: Instant,
    due: Instant,
    bytes: Bytes,
}

/// One direction of one connection.
struct Pump<'s, 'l> {
    reader: &'s TcpStream,
    writer: &'s TcpStream,
    lane: &'l Lane,
    queue: VecDeque<Piece>,
    queued: usize,
    end: End,
    /// When the FIN or the reset came; it is delayed like a byte.
    ended_at: Option<Instant>,
    buffer: Vec<u8>,
    /// What becomes of the first words.
    introduction: Option<Introduction>,
}

impl<'s, 'l> Pump<'s, 'l> {
    fn new(reader: &'s TcpStream, writer: &'s TcpStream, lane: &'l Lane) -> Self {
        let buffer = vec![0; READ_BYTES];
        Self {
            reader,
            writer,
            lane,
            queue: VecDeque::new(),
            queued: 0,
            end: End::Open,
            ended_at: None,
            buffer,
            introduction: None,
        }
    }

    /// Pumps until the FIN is through. `opposite` is the lane by which news of a broken writer would travel.
    async fn run(mut self, opposite: &'l Lane) -> Result<(), Broken<'l>> {
        let mut changes = self.lane.rule.subscribe();
        loop {
            let rule = *changes.borrow_and_update();
            if rule.breaks() {
                return Err(Broken::Refused(self.lane));
            }
            let blocked = match self.hand_on(rule) {
                Ok(blocked) => blocked,
                Err(_) => {
                    open(opposite).await?;
                    return Err(Broken::Apart);
                }
            };
            let next_due = self.next_due(rule, blocked);
            if self.queue.is_empty() && !rule.holds() && next_due.is_none() {
                match self.end {
                    End::Open => {}
                    End::Fin => {
                        let _ = SockRef::from(self.writer).shutdown(std::net::Shutdown::Write);
                        return Ok(());
                    }
                    End::Reset => return Err(Broken::Apart),
                }
            }
            let may_read = self.end == End::Open && self.queued < QUEUE_LIMIT_BYTES;
            tokio::select! {
                changed = changes.changed() => changed.map_err(|_| Broken::Apart)?,
                ready = self.reader.readable(), if may_read => {
                    if ready.is_err() { self.finish(End::Reset, rule); } else { self.take(rule); }
                }
                _ = self.writer.writable(), if blocked => {}
                () = sleep_until(next_due.unwrap_or_else(Instant::now)), if next_due.is_some() => {}
            }
        }
    }

    /// The moment at which the clock alone lets something go on.
    fn next_due(&self, rule: Rule, blocked: bool) -> Option<Instant> {
        if rule.holds() || blocked {
            return None;
        }
        let due = self.queue.front().map(|piece| piece.due).or(self.ended_at)?;
        (due > Instant::now()).then_some(due)
    }

    /// Writes what is due. True when the writer's buffer is full.
    fn hand_on(&mut self, rule: Rule) -> io::Result<bool> {
        if rule.holds() {
            return Ok(false);
        }
        while let Some(piece) = self.queue.front_mut() {
            if piece.due > Instant::now() {
                return Ok(false);
            }
            match self.writer.try_write(&piece.bytes) {
                Ok(written) => {
                    piece.bytes.advance(written);
                    let (empty, took) = (piece.bytes.is_empty(), piece.came.elapsed());
                    self.sink(written);
                    self.lane.forwarded.fetch_add(wide(written), Ordering::Relaxed);
                    if empty {
                        self.lane.note_delay(took);
                        self.queue.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Reads what is there.
    fn take(&mut self, rule: Rule) {
        match self.reader.try_read(&mut self.buffer) {
            Ok(0) => self.finish(End::Fin, rule),
            Ok(length) => {
                let said = &self.buffer[..length];
                let bytes = match &mut self.introduction {
                    Some(introduction) => Bytes::from(introduction.pass(said)),
                    None => Bytes::copy_from_slice(said),
                };
                self.enqueue(bytes, rule);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.finish(End::Reset, rule),
        }
    }

    fn enqueue(&mut self, bytes: Bytes, rule: Rule) {
        if bytes.is_empty() {
            return;
        }
        self.queued += bytes.len();
        self.lane.waiting.fetch_add(wide(bytes.len()), Ordering::Relaxed);
        let came = Instant::now();
        let due = self.not_before_the_last(came + rule.delay());
        self.queue.push_back(Piece { came, due, bytes });
    }

    /// What was said first is heard first.
    fn not_before_the_last(&self, due: Instant) -> Instant {
        self.queue.back().map_or(due, |last| due.max(last.due))
    }

    fn finish(&mut self, end: End, rule: Rule) {
        if let Some(mut introduction) = self.introduction.take() {
            self.enqueue(Bytes::from(introduction.rest()), rule);
        }
        self.end = end;
        self.ended_at = Some(self.not_before_the_last(Instant::now() + rule.delay()));
    }

    fn sink(&mut self, length: usize) {
        self.queued -= length;
        self.lane.waiting.fetch_sub(wide(length), Ordering::Relaxed);
    }
}

impl Drop for Pump<'_, '_> {
    fn drop(&mut self) {
        self.sink(self.queued);
    }
}
