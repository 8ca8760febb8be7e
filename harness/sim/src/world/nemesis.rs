//! Faults: what the nemesis does to a world, and how each fault ends.
//!
//! A fault is resolved when it is injected (who leads now), counted, and carries its own end with it, so that
//! healing is nothing but ending all faults at once. Faults overlap freely.

use node_core::{Factory, Role};

use super::machine::around_zero;
use super::{Event, World};
use crate::dice::{Dice, HALF, Part};
use crate::network::{Block, HostIndex};
use crate::script::{DiskTurn, Transition};
use harness_core::fault::SwarmFault;

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

impl<F: Factory> World<F> {
    /// Injects the next fault and plans the one after it.
    pub(super) fn next_fault(&mut self) {
        if !self.in_chaos() {
            return;
        }
        self.fate = Dice::part(self.drawn.seed, Part::Turn(self.turn));
        self.turn += 1;
        let delay = self.fate.around(self.drawn.fault_every_us);
        self.plan(delay.max(1), Event::Nemesis);
        if self.reduction.turns.contains(&(self.turn - 1)) {
            return;
        }
        if self.faults.len() < MAX_FAULTS
            && let Some(kind) = self.choose_fault()
        {
            self.inject(kind);
        }
    }

    fn choose_fault(&mut self) -> Option<SwarmFault> {
        let sum: u64 = self.drawn.weights.iter().sum();
        if sum == 0 {
            return None;
        }
        let mut drawn = self.fate.between(0, sum - 1);
        SwarmFault::ALL.into_iter().zip(self.drawn.weights).find_map(|(kind, weight)| {
            if drawn < weight {
                return Some(kind);
            }
            drawn -= weight;
            None
        })
    }

    fn inject(&mut self, kind: SwarmFault) {
        self.world_line("fault", [u64::from(self.drawn.weights[kind as usize] > 0), 0], || {
            kind.name().to_owned()
        });
        match kind {
            SwarmFault::KillOne => {
                let host = self.anyone();
                self.crash_for_a_while(host);
            }
            SwarmFault::KillLeader => {
                let host = self.leader();
                self.crash_for_a_while(host);
            }
            SwarmFault::KillMany => self.crash_many(),
            SwarmFault::PauseOne => {
                let host = self.anyone();
                self.pause_for_a_while(host);
            }
            SwarmFault::PauseLeader => {
                let host = self.leader();
                self.pause_for_a_while(host);
            }
            SwarmFault::PartitionHalves => {
                let sides: Vec<bool> = (0..self.hosts.len()).map(|_| self.fate.chance(HALF)).collect();
                self.partition(&sides);
            }
            SwarmFault::PartitionLeader => {
                let host = self.leader();
                self.isolate(host);
            }
            SwarmFault::DeposeLeader => self.depose(),
            SwarmFault::PartitionOne => {
                let host = self.anyone();
                self.isolate(host);
            }
            SwarmFault::PartitionRing => self.ring(),
            SwarmFault::PartitionBridge => self.bridge(),
            SwarmFault::PartitionOnewayDeaf => self.deaf_leader(),
            SwarmFault::PartitionOnewayMute => self.mute_leader(),
            SwarmFault::PartitionRandom => self.one_way(),
            SwarmFault::PartitionSwizzle => self.swizzle(),
            SwarmFault::Reset => self.reset(),
            SwarmFault::SlowDisk => self.slow_disk(),
            SwarmFault::FailSync => self.fail_sync(),
            SwarmFault::FillDisk => self.fill_disk(),
            SwarmFault::RotDisk => self.rot_disk(),
            SwarmFault::KillInPhase => self.set_trap(),
            SwarmFault::ClockBump => self.wall_jump(),
            SwarmFault::ClockDrift => self.wall_drift(),
            SwarmFault::Suspend => self.suspend(),
            SwarmFault::CutClients => self.cut_clients(),
        }
    }

    pub(super) fn anyone(&mut self) -> HostIndex {
        self.fate.index(self.hosts.len())
    }

    /// Whoever leads; anyone when nobody does.
    pub(super) fn leader(&mut self) -> HostIndex {
        let leads = |established: bool| {
            self.hosts.iter().position(|host| {
                host.process.as_ref().is_some_and(|process| {
                    process.role == Role::Leading && process.established == established
                })
            })
        };
        match leads(true).or_else(|| leads(false)) {
            Some(host) => host,
            None => self.anyone(),
        }
    }

    pub(super) fn lasts_a_while(&mut self, undo: Undo) {
        let duration_us = self.fate.around(self.drawn.fault_us).max(1);
        self.lasts(undo, duration_us);
    }

    /// Notes how a fault ends and plans that end.
    pub(super) fn lasts(&mut self, undo: Undo, duration_us: u64) {
        let fault = self.next_fault;
        self.next_fault += 1;
        self.faults.insert(fault, undo);
        self.plan(duration_us, Event::Undo { fault });
    }

    pub(super) fn undo(&mut self, fault: u64) {
        match self.faults.remove(&fault) {
            None => {}
            Some(Undo::Start(host)) => self.start_process(host),
            Some(Undo::Resume(host, life)) => self.resume(host, life),
            Some(Undo::Unblock(links, block)) => {
                self.world_line("unblock", [fault, 0], || format!("{links:?}"));
                for (from, to) in links {
                    self.unblock(from, to, block);
                }
            }
            Some(Undo::HalfOpen(one, other)) if self.in_chaos() => self.half_open(one, other),
            Some(Undo::HalfOpen(..)) => {}
            Some(Undo::Empty(host)) => {
                self.write_down(|_| Transition::Disk { host, turns: DiskTurn::Roomy });
                self.hosts[host].disk.set_full(false);
                self.start_process(host);
            }
            Some(Undo::Restore(host)) => {
                self.write_down(|_| Transition::Disk { host, turns: DiskTurn::Restored });
                self.restore(host);
                self.start_process(host);
            }
        }
    }

    /// Ends every fault.
    pub(super) fn undo_all(&mut self) {
        // Disks first: a process that starts must find a sound one.
        for host in 0..self.hosts.len() {
            self.pardon(host);
        }
        while let Some((fault, _)) = self.faults.first_key_value() {
            let fault = *fault;
            self.undo(fault);
        }
        for host in 0..self.hosts.len() {
            self.start_process(host);
        }
    }

    pub(super) fn crash_for_a_while(&mut self, host: HostIndex) {
        self.doom(host);
        self.lasts_a_while(Undo::Start(host));
    }

    fn crash_many(&mut self) {
        let all = self.fate.chance(HALF);
        for host in 0..self.hosts.len() {
            if all || self.fate.chance(HALF) {
                self.crash(host);
                self.lasts_a_while(Undo::Start(host));
            }
        }
    }

    fn pause_for_a_while(&mut self, host: HostIndex) {
        let life = self.hosts[host].life;
        if self.pause(host) {
            self.lasts_a_while(Undo::Resume(host, life));
        }
    }

    fn wall_jump(&mut self) {
        let host = self.anyone();
        let jump = i64::try_from(self.fate.between(0, 2 * MAX_JUMP_MS)).expect("a bounded jump");
        let centre = i64::try_from(MAX_JUMP_MS).expect("a bounded jump");
        self.hosts[host].clock.wall_offset_ms = jump - centre;
        self.write_down_clock(host, 0);
        self.counters.wall_jumps += 1;
    }

    fn wall_drift(&mut self) {
        let host = self.anyone();
        self.hosts[host].clock.wall_pace_ppm = around_zero(&mut self.fate, MAX_DRIFT_PPM);
        self.write_down_clock(host, 0);
        self.counters.wall_drifts += 1;
    }

    /// The monotonic clock has gone on while nothing ran.
    fn suspend(&mut self) {
        let host = self.anyone();
        let jump_us = self.fate.scale(10_000, MAX_SUSPENSION_US);
        self.hosts[host].clock.mono_offset += jump_us;
        self.patience.jumped(host);
        self.write_down_clock(host, jump_us);
        self.counters.suspensions += 1;
    }

    fn cut_clients(&mut self) {
        for client in 0..self.clients.len() {
            if self.fate.chance(HALF) {
                self.counters.client_cuts += 1;
                self.cut_client(client);
            }
        }
    }
}
