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

use node_core::io::{ConnId, StoreOp};
use node_wire::ids::ServerId;
use node_wire::quorum::{PacketType, QuorumPacket};
use node_wire::txn::Txn;

use crate::host::Work;
use crate::network::{Cargo, EndId, HostIndex};
use crate::world::{Clockwork, Ensemble, Event, Oracle};
use harness_world::time::Time;

/// A piece of work that takes longer is stuck, and nobody speaks for it.
const STEP_LIMIT_US: u64 = 10_000_000;

/// The round that no PING of a leader has.
const NO_ROUND: i64 = -1;

/// How much of what is large an operation has.
pub(in crate::world) fn size_of(op: &StoreOp) -> u64 {
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

impl Ensemble {
    /// A member sends a packet: perhaps its other end takes PINGs from now on.
    pub(in crate::world) fn may_speak(&mut self, clock: &Clockwork, conn: ConnId, packet: &QuorumPacket) {
        if clock.drawn.unit_us > 0 && packet.opens_pings() {
            let end = EndId::of(conn);
            self.speaking.insert((end.conn, end.end));
        }
    }

    /// A member had so much to do in its step: it works for as long, from now on.
    pub(in crate::world) fn works(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        host: HostIndex,
        size: u64,
    ) {
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
    pub(in crate::world) fn speak(&mut self, clock: &mut Clockwork, host: HostIndex, life: u64, since: Time) {
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

/// The leader of that name and what it works at, if it does.
pub(in crate::world) fn working(ensemble: &Ensemble, leader: ServerId) -> Option<(HostIndex, Work)> {
    let leader = ensemble.index_of(leader)?;
    let process = ensemble.hosts[leader].process.as_ref()?;
    Some((leader, process.work?))
}
