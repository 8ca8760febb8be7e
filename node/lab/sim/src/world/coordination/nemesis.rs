//! Faults are injected and undone.

use crate::network::HostIndex;
use crate::part::Part;
use crate::script::{DiskChange, Transition};
use crate::world::chaos::nemesis::Undo;
use crate::world::{Event, World};
use harness_core::fault::SwarmFault;
use harness_world::dice::{Dice, HALF};

/// Faults in force at once, at most.
const MAX_FAULTS: usize = 24;

impl World {
    /// Injects the next fault and plans the one after it.
    pub(in crate::world) fn next_fault(&mut self) {
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

    pub(in crate::world) fn undo(&mut self, fault: u64) {
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
                self.clock.write_down(|| Transition::Disk { host, change: DiskChange::Roomy });
                self.ensemble.hosts[host].disk.set_full(false);
                self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
            Some(Undo::Restore(host)) => {
                self.clock.write_down(|| Transition::Disk { host, change: DiskChange::Restored });
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
