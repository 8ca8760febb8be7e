//! How processes start, and their disks' writers: where a fault may be waiting for them.

use node_core::io::Recovered;
use node_log::Log;

use crate::invariants::Found;
use crate::network::HostIndex;
use crate::script::{Crash, Transition};
use crate::world::ensemble::membership::{Set, set_of};
use crate::world::{Chaos, Clockwork, Ensemble, Event, Oracle};

/// A process that died while it recovered is started again within this time.
const RELAPSE_US: u64 = 100_000;

impl Chaos {
    /// Lets the store's writer start on what waits.
    pub(in crate::world) fn start_store(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        host: HostIndex,
    ) {
        let life = ensemble.hosts[host].life;
        let Some(process) = ensemble.hosts[host].process.as_mut() else { return };
        if process.pauses == 0 && process.store.start(process.snapshot.is_some()) {
            let begins = if !self.traps.is_empty() { process.store.running().cloned() } else { None };
            let doomed = process.dies_storing;
            let dies = begins.is_some_and(|op| self.trap_storing(clock, host, &op)) || doomed;
            let delay = ensemble.fsync_delay(clock, host);
            clock.plan(delay, Event::Stored { host, life });
            if dies {
                let delay = clock.dice.between(0, delay);
                clock.plan(delay, Event::Die { host, life });
            }
        }
    }

    pub(in crate::world) fn start_process(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
    ) {
        if ensemble.hosts[host].process.is_some() || self.left_dead.contains(&host) {
            return;
        }
        clock.write_down(|| Transition::Start { host });
        let first = ensemble.hosts[host].life == 0;
        if !first {
            self.try_failures_of_start(clock, ensemble, oracle, host);
        }
        let relapses = !first && ensemble.relapses(clock, host);
        let (log, found) = match Log::open(ensemble.hosts[host].disk.clone(), clock.log_options()) {
            Ok(opened) => opened,
            Err(error) => {
                self.recovery_failed(clock, ensemble, oracle, host, &error);
                return;
            }
        };
        if relapses {
            ensemble.hosts[host].disk.heal();
        }
        ensemble.survived_rot(clock, oracle, host);
        clock.note_start(host, first, &found);
        let base = found.image.zxid;
        let interrupted = ensemble.hosts[host].interrupted.take();
        let recovered = Found {
            base,
            entries: &found.entries,
            accepted: found.accepted_epoch,
            current: found.current_epoch,
            interrupted: interrupted.as_ref(),
        };
        oracle.judge(clock, |invariants| invariants.recovers(host, &recovered));
        if relapses {
            // What a recovery found is there for good: it may be told to others at once.
            drop(log);
            let disk = ensemble.hosts[host].disk.clone();
            disk.crash(|unsynced| clock.kept(host, unsynced));
            self.start_later(clock, host, RELAPSE_US);
            return;
        }
        let recovered = Recovered {
            accepted_epoch: found.accepted_epoch,
            current_epoch: found.current_epoch,
            image: found.image,
            entries: found.entries,
        };
        ensemble.breathe(clock, oracle, host, log, recovered);
    }

    pub(in crate::world) fn living(&self, ensemble: &Ensemble) -> Set {
        set_of((0..ensemble.hosts.len()).filter(|host| !self.left_dead.contains(host)))
    }

    /// True while the living are a quorum whatever may rule.
    pub(in crate::world) fn living_suffice(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        oracle: &Oracle,
    ) -> bool {
        oracle.is_quorum_of_all(clock, self.living(ensemble))
    }

    /// The dead come back.
    pub(in crate::world) fn raise_the_dead(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        for host in std::mem::take(&mut self.left_dead) {
            self.start_process(clock, ensemble, oracle, host);
        }
    }

    pub(in crate::world) fn starts(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
    ) -> bool {
        if host >= ensemble.hosts.len() || ensemble.runs(host) {
            return false;
        }
        clock.scripted().crashes[host] = Crash::default();
        self.start_process(clock, ensemble, oracle, host);
        true
    }
}
