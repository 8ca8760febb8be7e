//! Faults: what the nemesis does to a world, and how each fault ends.
//!
//! A fault is resolved when it is injected (who leads now), counted, and carries its own end with it, so that
//! healing is nothing but ending all faults at once. Faults overlap freely.

use node_core::Role;

use crate::network::{Block, HostIndex};
use crate::world::ensemble::machine::around_zero;
use crate::world::{Chaos, Clockwork, Ensemble, Event, Oracle};
use harness_core::fault::SwarmFault;

/// How far a wall clock jumps at most.
const MAX_JUMP_MS: u64 = 3_600_000;

/// How fast or slow a wall clock is made at most, in parts per million.
const MAX_DRIFT_PPM: u64 = 200_000;

/// How far a monotonic clock jumps ahead at most.
const MAX_SUSPENSION_US: u64 = 60_000_000;

/// How a fault ends.
#[derive(Clone, Debug)]
pub(in crate::world) enum Undo {
    /// The process starts again.
    Start(HostIndex),
    /// The process of this life goes on.
    Resume(HostIndex, u64),
    /// Links pass again.
    Unblock(Vec<(HostIndex, HostIndex)>, Block),
    /// The connections between these two break, and only who dialled learns of it.
    HalfOpen(HostIndex, HostIndex),
    /// There is space on the disk again, and the process starts if it ended for want of it.
    Empty(HostIndex),
    /// The bit that turned over turns back, and the process starts if it refused to.
    Restore(HostIndex),
}

impl Chaos {
    pub(in crate::world) fn choose_fault(&mut self, clock: &Clockwork) -> Option<SwarmFault> {
        let sum: u64 = clock.drawn.weights.iter().sum();
        if sum == 0 {
            return None;
        }
        let mut drawn = self.fate.between(0, sum - 1);
        SwarmFault::ALL.into_iter().zip(clock.drawn.weights).find_map(|(kind, weight)| {
            if drawn < weight {
                return Some(kind);
            }
            drawn -= weight;
            None
        })
    }

    pub(in crate::world) fn anyone(&mut self, ensemble: &Ensemble) -> HostIndex {
        self.fate.index(ensemble.hosts.len())
    }

    /// Whoever leads; anyone when nobody does.
    pub(in crate::world) fn leader(&mut self, ensemble: &Ensemble) -> HostIndex {
        let leads = |established: bool| {
            ensemble.hosts.iter().position(|host| {
                host.process.as_ref().is_some_and(|process| {
                    process.role == Role::Leading && process.established == established
                })
            })
        };
        match leads(true).or_else(|| leads(false)) {
            Some(host) => host,
            None => self.anyone(ensemble),
        }
    }

    pub(in crate::world) fn lasts_a_while(&mut self, clock: &mut Clockwork, undo: Undo) {
        let duration_us = self.fate.around(clock.drawn.fault_us).max(1);
        self.lasts(clock, undo, duration_us);
    }

    /// Notes how a fault ends and plans that end.
    pub(in crate::world) fn lasts(&mut self, clock: &mut Clockwork, undo: Undo, duration_us: u64) {
        let fault = self.next_fault;
        self.next_fault += 1;
        self.faults.insert(fault, undo);
        clock.plan(duration_us, Event::Undo { fault });
    }

    pub(in crate::world) fn pause_for_a_while(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
    ) {
        let life = ensemble.hosts[host].life;
        if ensemble.pause(clock, oracle, host) {
            self.lasts_a_while(clock, Undo::Resume(host, life));
        }
    }

    pub(in crate::world) fn wall_jump(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble) {
        let host = self.anyone(ensemble);
        let jump = i64::try_from(self.fate.between(0, 2 * MAX_JUMP_MS)).expect("a bounded jump");
        let centre = i64::try_from(MAX_JUMP_MS).expect("a bounded jump");
        ensemble.hosts[host].clock.wall_offset_ms = jump - centre;
        ensemble.write_down_clock(clock, host, 0);
        clock.counters.wall_jumps += 1;
    }

    pub(in crate::world) fn wall_drift(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble) {
        let host = self.anyone(ensemble);
        ensemble.hosts[host].clock.wall_pace_ppm = around_zero(&mut self.fate, MAX_DRIFT_PPM);
        ensemble.write_down_clock(clock, host, 0);
        clock.counters.wall_drifts += 1;
    }

    /// The monotonic clock has gone on while nothing ran.
    pub(in crate::world) fn suspend(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let host = self.anyone(ensemble);
        let jump_us = self.fate.scale(10_000, MAX_SUSPENSION_US);
        ensemble.hosts[host].clock.mono_offset += jump_us;
        oracle.patience.jumped(host);
        ensemble.write_down_clock(clock, host, jump_us);
        clock.counters.suspensions += 1;
    }
}
