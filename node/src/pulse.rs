//! A sign of life while the member works.
//!
//! A step takes as long as its data is large: a session with a hundred thousand ephemerals ends, a snapshot
//! is taken over. One thread owns the member and its sockets, so meanwhile it says nothing, and its peers
//! would take it for dead. So a second thread looks how long the first one has been at work since it could
//! last speak, and says a PING for it on each connection to a member of ours.
//!
//! - It is life and nothing else. The PING has a round that no PING of a leader has and names no session, so
//!   it answers no sync, renews no session and acknowledges nothing, whatever the step is about to do.
//! - It ends when one piece of work takes longer than [`Manner::step_limit`](crate::Manner): a member that is
//!   stuck must be missed. A process that is stopped, or gets no processor, has no second thread either.
//! - It takes the same connection as everything else, between two packets ([`Line::speak`]), so that a link
//!   that is cut is cut for it too. And it speaks only where the member has spoken before in a way that shows
//!   that the other end takes PINGs now; never to Apache ZooKeeper, which has its own patience.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::BytesMut;
use node_wire::jute::Writer;
use node_wire::quorum::{PacketType, QuorumPacket};

use crate::clock::Clock;
use crate::outbox::Line;

/// The round of these PINGs.
const NO_ROUND: i64 = -1;

/// Looks within one peer time-out, and so PINGs while the member works: as many as the core says.
const LOOKS_PER_TIMEOUT: u32 = 5;

/// What the member's thread tells about itself, and to whom is spoken.
#[derive(Debug)]
pub(crate) struct Pulse {
    clock: Clock,
    /// How long the member's thread may be without a word, and between two looks.
    every: Duration,
    step_limit: Duration,
    /// Microseconds of the clock at which the member's thread could speak last.
    spoke: AtomicU64,
    /// At which it began what it is at.
    began: AtomicU64,
    /// It has nothing to do.
    rests: AtomicBool,
    /// The member is over.
    over: AtomicBool,
    lines: Mutex<Vec<Weak<Line>>>,
}

fn micros(mono: Duration) -> u64 {
    u64::try_from(mono.as_micros()).unwrap_or(u64::MAX)
}

impl Pulse {
    pub(crate) fn new(clock: Clock, peer_timeout: Duration, step_limit: Duration) -> Arc<Self> {
        Arc::new(Self {
            clock,
            every: peer_timeout / LOOKS_PER_TIMEOUT,
            step_limit,
            spoke: AtomicU64::new(0),
            began: AtomicU64::new(0),
            rests: AtomicBool::new(true),
            over: AtomicBool::new(false),
            lines: Mutex::default(),
        })
    }

    /// On which its times are.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// For how long the member's thread may work before somebody speaks for it.
    pub(crate) fn every(&self) -> Duration {
        self.every
    }

    /// The member's thread begins a piece of work.
    pub(crate) fn begins(&self, at: Duration) {
        self.began.store(micros(at), Ordering::Relaxed);
    }

    /// It begins one now.
    pub(crate) fn begins_now(&self) {
        self.begins(self.clock.now().mono);
    }

    /// The member's thread has said what there was to say.
    pub(crate) fn spoke(&self) {
        let now = micros(self.clock.now().mono);
        self.spoke.store(now, Ordering::Relaxed);
        self.began.store(now, Ordering::Relaxed);
    }

    /// The member's thread has nothing to do.
    pub(crate) fn rests(&self) {
        self.rests.store(true, Ordering::Relaxed);
    }

    /// The member's thread has something to do again.
    pub(crate) fn wakes(&self) {
        self.spoke();
        self.rests.store(false, Ordering::Relaxed);
    }

    /// Speaks on this connection too, once it may.
    pub(crate) fn add(&self, line: Weak<Line>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|line| line.strong_count() > 0);
        lines.push(line);
    }

    /// Whether somebody has to speak for the member's thread.
    fn is_due(&self, now: Duration) -> bool {
        let since = |at: &AtomicU64| now.saturating_sub(Duration::from_micros(at.load(Ordering::Relaxed)));
        !self.rests.load(Ordering::Relaxed)
            && since(&self.spoke) >= self.every
            && since(&self.began) < self.step_limit
    }

    pub(crate) fn speak(&self, packet: &[u8]) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines.iter().filter_map(Weak::upgrade) {
            line.speak(packet);
        }
    }

    fn run(&self) {
        let mut packet = BytesMut::new();
        QuorumPacket::new(PacketType::Ping, NO_ROUND, None).encode(&mut Writer::new(&mut packet));
        while !self.over.load(Ordering::Relaxed) {
            thread::park_timeout(self.every);
            if self.is_due(self.clock.now().mono) {
                self.speak(&packet);
            }
        }
    }
}

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PulseThread {
    pulse: Arc<Pulse>,
    thread: Option<JoinHandle<()>>,
}

impl PulseThread {
    pub(crate) fn start(pulse: &Arc<Pulse>) -> std::io::Result<Self> {
        let of = Arc::clone(pulse);
        let thread = thread::Builder::new().name("pulse".to_owned()).spawn(move || of.run())?;
        Ok(Self { pulse: Arc::clone(pulse), thread: Some(thread) })
    }
}

impl Drop for PulseThread {
    fn drop(&mut self) {
        self.pulse.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only ever waits for the time to pass.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_speaks_while_a_step_works_and_not_for_one_that_is_stuck() {
        let pulse = Pulse::new(Clock::start(), ms(250), ms(10_000));
        pulse.wakes();
        let at = Duration::from_micros(pulse.spoke.load(Ordering::Relaxed));
        assert!(!pulse.is_due(at + ms(49)), "it could speak by itself just now");
        assert!(pulse.is_due(at + ms(50)));
        assert!(pulse.is_due(at + ms(9_999)));
        assert!(!pulse.is_due(at + ms(10_000)), "stuck");
        // Many pieces of work in one turn: the next has its own time.
        pulse.begins(at + ms(9_000));
        assert!(pulse.is_due(at + ms(18_999)));
        assert!(!pulse.is_due(at + ms(19_000)));
        pulse.rests();
        assert!(!pulse.is_due(at + ms(60)), "it rests, and the next tick wakes it");
    }
}
