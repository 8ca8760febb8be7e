//! Disks that fail: what is done to them, and what their member may then do.
//!
//! A member whose disk refuses a write or a synchronization ends, as the real driver does, and starts again
//! later. A snapshot that can't be written is only a snapshot less. A disk that lies about old records must
//! be refused, or what it lies about must not matter: recovery that takes rot for sound data is a violation,
//! which the invariants' look at every recovery finds.
//!
//! Not rotten are the last record of a log, which can't be told from an interrupted write, and the epoch
//! files, which have no checksum, being ZooKeeper's. At most a minority of the members is rotten at a time.

use node_log::{LogError, Storage};

use super::nemesis::Undo;
use crate::host::Rot;
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::script::{DiskChange, Transition};
use crate::world::{Chaos, Clockwork, Ensemble, Oracle};
use harness_world::dice::{Chance, HALF};
use harness_world::time::Time;

/// Bytes that a failed synchronization may have stored all the same.
const MAX_KEPT_BYTES: u64 = 4096;

/// A process that could not start or go on for want of space is tried again within this time.
pub(in crate::world) const RETRY_US: u64 = 300_000;

impl Chaos {
    pub(in crate::world) fn slow_disk(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble) {
        let host = if clock.drawn.rare.stuck { self.leader(ensemble) } else { self.anyone(ensemble) };
        let until = clock.now + self.fate.around(clock.drawn.fault_us);
        // What does nothing at all is healed with all the rest.
        let healed = Time(clock.drawn.warmup_us + clock.drawn.chaos_us);
        let until = if clock.drawn.rare.stuck { until.min(healed) } else { until };
        // A second fault doesn't end the first: a synchronization that is stuck stays so.
        let slow_until = &mut ensemble.hosts[host].slow_until;
        *slow_until = until.max(*slow_until);
        clock.counters.slow_disks += 1;
    }

    /// The next synchronization fails and keeps nothing, everything, or a part.
    pub(in crate::world) fn fail_sync(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let host = self.anyone(ensemble);
        let keep = if self.fate.chance(HALF) { 0 } else { self.fate.scale(1, MAX_KEPT_BYTES) };
        clock.write_down(|| Transition::Disk { host, change: DiskChange::SyncFails(keep) });
        ensemble.hosts[host].disk.fail_sync(usize::try_from(keep).expect("a small number"));
    }

    pub(in crate::world) fn fill_disk(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let host = self.anyone(ensemble);
        clock.write_down(|| Transition::Disk { host, change: DiskChange::Full });
        ensemble.hosts[host].disk.set_full(true);
        clock.counters.full_disks += 1;
        self.lasts_a_while(clock, Undo::Empty(host));
    }

    /// A member that can't read its disk stays down until somebody has seen to it.
    pub(super) fn recovery_failed(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        error: &LogError,
    ) {
        if let Some(rot) = &mut ensemble.hosts[host].rot {
            let first = !std::mem::replace(&mut rot.refused, true);
            clock.counters.rot_refused += u64::from(first);
            clock.line(host, "refused", [0, 0], || error.to_string());
        } else if ensemble.disk_failed(host) {
            clock.line(host, "no-start", [0, 0], || error.to_string());
            if self.power_fails(host) || clock.drawn.rare.relapse != Chance::NEVER && clock.dice.chance(HALF)
            {
                let disk = ensemble.hosts[host].disk.clone();
                disk.crash(|unsynced| clock.kept(host, unsynced));
            } else {
                ensemble.hosts[host].disk.kill();
            }
            self.start_later(clock, host, RETRY_US);
        } else {
            let id = ensemble.server(host).0;
            oracle.report(clock, Rule::Recovery, format!("server {id} failed to {error}"));
        }
    }

    pub(in crate::world) fn start_later(&mut self, clock: &mut Clockwork, host: HostIndex, within_us: u64) {
        let delay = clock.dice.between(1, within_us);
        self.lasts(clock, Undo::Start(host), delay);
    }

    /// A file disappears while its member is down, one that is missed.
    pub(in crate::world) fn lose_file(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &Oracle,
        host: HostIndex,
    ) {
        let files = oracle.missed_files(ensemble, host);
        if files.is_empty() {
            return;
        }
        let file = files[self.fate.index(files.len())].clone();
        let disk = ensemble.hosts[host].disk.clone();
        let Ok(content) = disk.read(&file) else { return };
        disk.remove(&file).and_then(|()| disk.sync_dir()).expect("a disk that is well");
        clock.counters.lost_files += 1;
        clock.line(host, "loses", [0, 0], || file.clone());
        ensemble.hosts[host].rot =
            Some(Rot { file, identity: None, bit: 0, refused: false, lost: Some(content) });
        self.lasts_a_while(clock, Undo::Restore(host));
    }
}
