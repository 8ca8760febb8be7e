//! Faults: what the nemesis does to a world, and how each fault ends.
//!
//! A fault is resolved when it is injected (who leads now), counted, and carries its own end with it, so that
//! healing is nothing but ending all faults at once. Faults overlap freely.

use node_core::Role;

use super::machine::around_zero;
use super::{Chaos, Clockwork, Ensemble, Event, Oracle, World};
use crate::network::{Block, HostIndex};
use crate::part::Part;
use crate::script::{DiskTurn, Transition};
use harness_core::fault::SwarmFault;
use harness_world::dice::{Dice, HALF};

/// Faults in force at once, at most.
const MAX_FAULTS: usize = 24;

/// How far a wall clock jumps at most.
const MAX_JUMP_MS: u64 = 3_600_000;

/// How fast or slow a wall clock is made at most, in parts per million.
const MAX_DRIFT_PPM: u64 = 200_000;

/// How far a monotonic clock jumps ahead at most.
const MAX_SUSPENSION_US: u64 = 60_000_000;

/// How a fault ends.
#[derive(Clone, Debug)]
pub(super) enum Undo {
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
    fn choose_fault(&mut self, clock: &Clockwork) -> Option<SwarmFault> {
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

    pub(super) fn anyone(&mut self, ensemble: &Ensemble) -> HostIndex {
        self.fate.index(ensemble.hosts.len())
    }

    /// Whoever leads; anyone when nobody does.
    pub(super) fn leader(&mut self, ensemble: &Ensemble) -> HostIndex {
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

    pub(super) fn lasts_a_while(&mut self, clock: &mut Clockwork, undo: Undo) {
        let duration_us = self.fate.around(clock.drawn.fault_us).max(1);
        self.lasts(clock, undo, duration_us);
    }

    /// Notes how a fault ends and plans that end.
    pub(super) fn lasts(&mut self, clock: &mut Clockwork, undo: Undo, duration_us: u64) {
        let fault = self.next_fault;
        self.next_fault += 1;
        self.faults.insert(fault, undo);
        clock.plan(duration_us, Event::Undo { fault });
    }

    fn pause_for_a_while(
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

    fn wall_jump(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble) {
        let host = self.anyone(ensemble);
        let jump = i64::try_from(self.fate.between(0, 2 * MAX_JUMP_MS)).expect("a bounded jump");
        let centre = i64::try_from(MAX_JUMP_MS).expect("a bounded jump");
        ensemble.hosts[host].clock.wall_offset_ms = jump - centre;
        ensemble.write_down_clock(clock, host, 0);
        clock.counters.wall_jumps += 1;
    }

    fn wall_drift(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble) {
        let host = self.anyone(ensemble);
        ensemble.hosts[host].clock.wall_pace_ppm = around_zero(&mut self.fate, MAX_DRIFT_PPM);
        ensemble.write_down_clock(clock, host, 0);
        clock.counters.wall_drifts += 1;
    }

    /// The monotonic clock has gone on while nothing ran.
    fn suspend(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble, oracle: &mut Oracle) {
        let host = self.anyone(ensemble);
        let jump_us = self.fate.scale(10_000, MAX_SUSPENSION_US);
        ensemble.hosts[host].clock.mono_offset += jump_us;
        oracle.patience.jumped(host);
        ensemble.write_down_clock(clock, host, jump_us);
        clock.counters.suspensions += 1;
    }
}

impl World {
    /// Injects the next fault and plans the one after it.
    pub(super) fn next_fault(&mut self) {
        if !self.clock.in_chaos() {
            return;
        }
        self.chaos.fate = Dice::part(self.clock.drawn.seed, Part::Turn(self.chaos.turn));
        self.chaos.turn += 1;
        let delay = self.chaos.fate.around(self.clock.drawn.fault_every_us);
        self.clock.plan(delay.max(1), Event::Nemesis);
        if self.clock.reduction.turns.contains(&(self.chaos.turn - 1)) {
            return;
        }
        if self.chaos.faults.len() < MAX_FAULTS
            && let Some(kind) = self.chaos.choose_fault(&self.clock)
        {
            self.inject(kind);
        }
    }

    fn inject(&mut self, kind: SwarmFault) {
        self.clock.world_line("fault", [u64::from(self.clock.drawn.weights[kind as usize] > 0), 0], || {
            kind.name().to_owned()
        });
        match kind {
            SwarmFault::KillOne => {
                let host = self.chaos.anyone(&self.ensemble);
                self.crash_for_a_while(host);
            }
            SwarmFault::KillLeader => {
                let host = self.chaos.leader(&self.ensemble);
                self.crash_for_a_while(host);
            }
            SwarmFault::KillMany => self.crash_many(),
            SwarmFault::PauseOne => {
                let host = self.chaos.anyone(&self.ensemble);
                self.chaos.pause_for_a_while(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
            SwarmFault::PauseLeader => {
                let host = self.chaos.leader(&self.ensemble);
                self.chaos.pause_for_a_while(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
            SwarmFault::PartitionHalves => {
                let sides: Vec<bool> =
                    (0..self.ensemble.hosts.len()).map(|_| self.chaos.fate.chance(HALF)).collect();
                self.chaos.partition(&mut self.clock, &mut self.ensemble, &mut self.oracle, &sides);
            }
            SwarmFault::PartitionLeader => {
                let host = self.chaos.leader(&self.ensemble);
                self.chaos.isolate(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
            SwarmFault::DeposeLeader => {
                self.chaos.depose(&mut self.clock, &mut self.ensemble, &mut self.oracle)
            }
            SwarmFault::PartitionOne => {
                let host = self.chaos.anyone(&self.ensemble);
                self.chaos.isolate(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
            SwarmFault::PartitionRing => {
                self.chaos.ring(&mut self.clock, &mut self.ensemble, &mut self.oracle)
            }
            SwarmFault::PartitionBridge => {
                self.chaos.bridge(&mut self.clock, &mut self.ensemble, &mut self.oracle)
            }
            SwarmFault::PartitionOnewayDeaf => {
                self.chaos.deaf_leader(&mut self.clock, &mut self.ensemble, &mut self.oracle)
            }
            SwarmFault::PartitionOnewayMute => {
                self.chaos.mute_leader(&mut self.clock, &mut self.ensemble, &mut self.oracle)
            }
            SwarmFault::PartitionRandom => {
                self.chaos.one_way(&mut self.clock, &mut self.ensemble, &mut self.oracle)
            }
            SwarmFault::PartitionSwizzle => self.chaos.swizzle(&mut self.clock, &self.ensemble),
            SwarmFault::Reset => self.chaos.reset(&mut self.clock, &mut self.ensemble, &mut self.oracle),
            SwarmFault::SlowDisk => self.chaos.slow_disk(&mut self.clock, &mut self.ensemble),
            SwarmFault::FailSync => self.chaos.fail_sync(&mut self.clock, &self.ensemble),
            SwarmFault::FillDisk => self.chaos.fill_disk(&mut self.clock, &self.ensemble),
            SwarmFault::RotDisk => self.rot_disk(),
            SwarmFault::KillInPhase => self.set_trap(),
            SwarmFault::ClockBump => self.chaos.wall_jump(&mut self.clock, &mut self.ensemble),
            SwarmFault::ClockDrift => self.chaos.wall_drift(&mut self.clock, &mut self.ensemble),
            SwarmFault::Suspend => self.chaos.suspend(&mut self.clock, &mut self.ensemble, &mut self.oracle),
            SwarmFault::CutClients => self.cut_clients(),
        }
    }

    pub(super) fn undo(&mut self, fault: u64) {
        match self.chaos.faults.remove(&fault) {
            None => {}
            Some(Undo::Start(host)) => {
                self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host)
            }
            Some(Undo::Resume(host, life)) => self.resume(host, life),
            Some(Undo::Unblock(links, block)) => {
                self.clock.world_line("unblock", [fault, 0], || format!("{links:?}"));
                for (from, to) in links {
                    self.ensemble.unblock(&mut self.clock, &mut self.oracle, from, to, block);
                }
            }
            Some(Undo::HalfOpen(one, other)) if self.clock.in_chaos() => {
                self.ensemble.half_open(&mut self.clock, &mut self.oracle, one, other)
            }
            Some(Undo::HalfOpen(..)) => {}
            Some(Undo::Empty(host)) => {
                self.clock.write_down(|| Transition::Disk { host, turns: DiskTurn::Roomy });
                self.ensemble.hosts[host].disk.set_full(false);
                self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
            Some(Undo::Restore(host)) => {
                self.clock.write_down(|| Transition::Disk { host, turns: DiskTurn::Restored });
                self.ensemble.restore(host);
                self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
        }
    }

    /// Ends every fault.
    pub(super) fn undo_all(&mut self) {
        self.end_work();
        // Disks first: a process that starts must find a sound one.
        for host in 0..self.ensemble.hosts.len() {
            self.ensemble.pardon(&mut self.clock, host);
        }
        while let Some((fault, _)) = self.chaos.faults.first_key_value() {
            let fault = *fault;
            self.undo(fault);
        }
        for host in 0..self.ensemble.hosts.len() {
            self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
        }
    }

    pub(super) fn crash_for_a_while(&mut self, host: HostIndex) {
        self.doom(host);
        self.chaos.lasts_a_while(&mut self.clock, Undo::Start(host));
    }

    fn crash_many(&mut self) {
        let all = self.chaos.fate.chance(HALF);
        for host in 0..self.ensemble.hosts.len() {
            if all || self.chaos.fate.chance(HALF) {
                self.crash(host);
                self.chaos.lasts_a_while(&mut self.clock, Undo::Start(host));
            }
        }
    }

    fn cut_clients(&mut self) {
        for client in 0..self.population.clients.len() {
            if self.chaos.fate.chance(HALF) {
                self.clock.counters.client_cuts += 1;
                self.population.cut_client(&mut self.clock, client);
            }
        }
        for number in 0..self.population.applications.len() {
            if self.chaos.fate.chance(HALF) {
                self.clock.counters.client_cuts += 1;
                self.population.cut_application(&mut self.clock, number);
            }
        }
    }
}
