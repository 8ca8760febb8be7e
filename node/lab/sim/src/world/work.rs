//! Steps that take time: in worlds of slow machines and large requests, which a seed draws now and then.
//!
//! Elsewhere a step takes none, so that no seed could show what a member's peers make of one that works for
//! many peer time-outs. Here what is large costs what it is large: the parts of a multi, the ephemerals that
//! go with their session, the znodes of a tree that is taken over. Each of the few that a world has stands
//! for thousands. While a member works it hears nothing and its timer waits, but its disk goes on, and a
//! thread of its own says PINGs for it, as that of the real driver does: on each connection on which the
//! other end takes them, from a fifth of the peer time-out on, and not for a step that is stuck.
//!
//! What must hold: nobody gives up a leader that only works. Whoever does, while neither of them nor what
//! lies between them was disturbed since the work began, has taken work for silence.

use node_core::io::{ConnId, Event as Told, FELL_SILENT, Input, StoreOp};
use node_wire::ids::ServerId;
use node_wire::quorum::{PacketType, QuorumPacket};
use node_wire::txn::Txn;

use super::{Chaos, Clockwork, Ensemble, Event, Oracle, World};
use crate::host::{Source, Work};
use crate::network::{Cargo, EndId, HostIndex};
use crate::outcome::Rule;
use harness_world::time::Time;

/// PINGs within one peer time-out, as the driver's thread says them.
const LOOKS_PER_TIMEOUT: u64 = 5;

/// A piece of work that takes longer is stuck, and nobody speaks for it.
const STEP_LIMIT_US: u64 = 10_000_000;

/// A step works for so many peer time-outs at most: all of them together must leave room for an election.
const MOST_TIMEOUTS: u64 = 8;

/// The round that no PING of a leader has.
const NO_ROUND: i64 = -1;

/// How much of what is large an operation has.
pub(super) fn size_of(op: &StoreOp) -> u64 {
    let size = match op {
        StoreOp::Append(entry) => match &entry.txn {
            Txn::Multi { txns } => txns.len(),
            Txn::CloseSession { paths: Some(paths) } => paths.len(),
            _ => 0,
        },
        StoreOp::Install(image) => image.nodes.len() / 4,
        _ => 0,
    };
    u64::try_from(size).unwrap_or(u64::MAX)
}

impl Clockwork {
    /// How long a step takes that had so much to do. Nothing where nothing was drawn, and after the faults.
    fn work_us(&mut self, size: u64) -> u64 {
        if self.drawn.unit_us == 0 || size == 0 || !self.in_chaos() {
            return 0;
        }
        let most_us = MOST_TIMEOUTS * self.drawn.peer_timeout_ms * 1000;
        self.drawn.unit_us.saturating_mul(size).min(most_us)
    }

    fn speaks_every_us(&self) -> u64 {
        self.drawn.peer_timeout_ms * 1000 / LOOKS_PER_TIMEOUT
    }
}

impl Ensemble {
    /// A member sends a packet: perhaps its other end takes PINGs from now on.
    pub(super) fn may_speak(&mut self, clock: &Clockwork, conn: ConnId, packet: &QuorumPacket) {
        if clock.drawn.unit_us > 0 && packet.opens_pings() {
            let end = EndId::of(conn);
            self.speaking.insert((end.conn, end.end));
        }
    }

    /// A member had so much to do in its step: it works for as long, from now on.
    pub(super) fn works(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, host: HostIndex, size: u64) {
        let work_us = clock.work_us(size);
        let life = self.hosts[host].life;
        let Some(process) = self.hosts[host].process.as_mut().filter(|_| work_us > 0) else { return };
        let until = Time(clock.now.0 + work_us);
        process.work = Some(Work { since: clock.now, until, paused: process.pauses > 0 });
        clock.counters.long_steps += 1;
        clock.line(host, "works", [work_us, size], || format!("for {} ms", work_us / 1000));
        oracle.progress.worked(host, until);
        clock.plan(work_us, Event::Rests { host, life });
        if clock.options.pulse {
            clock.plan(clock.speaks_every_us(), Event::Speaks { host, life, since: clock.now });
        }
    }

    /// The thread of a member that works says a PING on each of its connections.
    pub(super) fn speak(&mut self, clock: &mut Clockwork, host: HostIndex, life: u64, since: Time) {
        if !self.lives(host, life) {
            return;
        }
        let process = self.hosts[host].process.as_ref().expect("the process lives");
        let at_it = process.work.is_some_and(|work| work.since == since);
        if !at_it || clock.now.since(since) >= STEP_LIMIT_US {
            return;
        }
        clock.plan(clock.speaks_every_us(), Event::Speaks { host, life, since });
        if process.pauses > 0 {
            return;
        }
        let conns = &self.conns;
        self.speaking.retain(|(conn, end)| conns[*conn].ends[*end].open);
        let own = |(conn, end): &(usize, usize)| {
            let end = &self.conns[*conn].ends[*end];
            end.host == host && end.life == life
        };
        for (conn, end) in self.speaking.iter().copied().filter(own).collect::<Vec<_>>() {
            clock.counters.spoken_for += 1;
            let ping = QuorumPacket::new(PacketType::Ping, NO_ROUND, None);
            self.send(clock, EndId { conn, end }, Cargo::Packet(ping));
        }
    }
}

impl World {
    /// A step is over: what came meanwhile is heard, and before that it counts as a sign of life.
    pub(super) fn rest(&mut self, host: HostIndex, life: u64) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let now = self.clock.now;
        let process = self.ensemble.hosts[host].process.as_mut().expect("the process lives");
        if process.work.take_if(|work| work.until <= now).is_none() {
            return;
        }
        let mut came: Vec<_> = process.inbox.iter().map(|(source, _)| *source).collect();
        came.sort();
        came.dedup();
        for source in came {
            if let Source::Conn((conn, end)) = source {
                let conn = EndId { conn, end }.id();
                self.take_in(host, source, Input::Alive { conn });
            }
        }
        self.go_on(host, life);
    }

    /// Ends all work: the faults are over, and what is asked then is asked of machines that are not slow.
    pub(super) fn end_work(&mut self) {
        for host in 0..self.ensemble.hosts.len() {
            let life = self.ensemble.hosts[host].life;
            let process = self.ensemble.hosts[host].process.as_mut();
            if let Some(work) = process.and_then(|process| process.work.as_mut()) {
                work.until = self.clock.now;
                self.rest(host, life);
            }
        }
    }
}

impl Oracle {
    /// A member looks for a leader because its own fell silent, which perhaps only works.
    pub(super) fn check_work_of_leader(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        chaos: &Chaos,
        host: HostIndex,
        event: &Told,
    ) {
        let Told::Looking { left: Some(leader), reason, .. } = event else { return };
        let Some((leader, work)) = working(ensemble, *leader).filter(|_| reason == FELL_SILENT) else {
            return;
        };
        let began = Time(work.since.0.saturating_sub(clock.drawn.peer_timeout_ms * 1000));
        let undisturbed = !work.paused
            && self.progress.unhurt_since(host) <= began
            && self.progress.unhurt_since(leader) <= began
            && self.progress.linked_since(host, leader) <= began
            && chaos.faults.is_empty();
        if undisturbed {
            let sentence = format!(
                "server {} calls server {} silent, which has worked for {} ms and leads",
                host + 1,
                leader + 1,
                clock.now.since(work.since) / 1000
            );
            self.report(clock, Rule::Liveness, sentence);
        }
    }
}

/// The leader of that name and what it works at, if it does.
fn working(ensemble: &Ensemble, leader: ServerId) -> Option<(HostIndex, Work)> {
    let leader = ensemble.index_of(leader)?;
    let process = ensemble.hosts[leader].process.as_ref()?;
    Some((leader, process.work?))
}
