//! Disks that fail under their members, and disks that rot.

use node_core::io::StoreOp;
use node_log::LogError;

use crate::host::Rot;
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::script::Transition;
use crate::world::World;
use crate::world::chaos::disks::RETRY_US;
use crate::world::chaos::nemesis::Undo;
use crate::world::ensemble::files::old_bytes;
use harness_world::dice::HALF;

/// A process whose disk turned rotten is started within this time.
const ROTTEN_START_US: u64 = 50_000;

impl World {
    /// The store's writer could not do what it was asked: the process ends.
    pub(super) fn store_failed(&mut self, host: HostIndex, batch: Vec<(u64, StoreOp)>, error: &LogError) {
        let failed = self.ensemble.disk_failed(host);
        let rotten = self.ensemble.hosts[host].rot.is_some();
        if !failed && !rotten {
            let id = self.ensemble.server(host).0;
            self.oracle.report(
                &mut self.clock,
                Rule::Halt,
                format!("server {id} failed to {error}, though its disk is well"),
            );
            return;
        }
        self.clock.line(host, "disk-failed", [u64::from(failed), u64::from(rotten)], || error.to_string());
        match (failed, error.is_storage_full()) {
            (true, true) => self.clock.counters.full_disk_ends += 1,
            (true, false) => self.clock.counters.failed_syncs += 1,
            (false, _) => self.clock.counters.rot_ends += 1,
        }
        self.crash(host);
        // The writer gave up in the middle of this.
        self.ensemble.hosts[host].interrupted = batch.into_iter().next().map(|(_, op)| op);
        self.chaos.start_later(&mut self.clock, host, RETRY_US);
    }

    /// A snapshot less: the log has it all.
    pub(super) fn snapshot_failed(&mut self, host: HostIndex, error: &LogError) {
        if !self.ensemble.disk_failed(host) {
            let id = self.ensemble.server(host).0;
            self.oracle.report(
                &mut self.clock,
                Rule::Halt,
                format!("server {id} failed to {error}, though its disk is well"),
            );
            return;
        }
        self.clock.line(host, "snapshot-failed", [0, 0], || error.to_string());
        self.clock.counters.failed_snapshots += 1;
        if self.chaos.power_fails(host) {
            self.crash(host);
            self.chaos.start_later(&mut self.clock, host, RETRY_US);
            return;
        }
        self.chaos.start_store(&mut self.clock, &mut self.ensemble, host);
    }

    /// A bit of something old turns over while its member is down; then it is started.
    pub(super) fn rot_disk(&mut self) {
        let host = self.chaos.anyone(&self.ensemble);
        let rotten = self.ensemble.hosts.iter().filter(|host| host.rot.is_some()).count();
        if self.ensemble.hosts[host].rot.is_some() || rotten >= (self.clock.drawn.members - 1) / 2 {
            return;
        }
        self.crash(host);
        let starts_us = self.chaos.fate.between(1, ROTTEN_START_US);
        self.chaos.lasts(&mut self.clock, Undo::Start(host), starts_us);
        if self.clock.drawn.rare.losses && self.chaos.fate.chance(HALF) {
            self.chaos.lose_file(&mut self.clock, &mut self.ensemble, &self.oracle, host);
            return;
        }
        let old = old_bytes(&self.ensemble.hosts[host].disk);
        if old.is_empty() {
            return;
        }
        let (file, bytes) = &old[self.chaos.fate.index(old.len())];
        let bit = self.chaos.fate.index(bytes * 8);
        self.clock.write_down(|| Transition::Rots { host, file: file.clone(), bit });
        let disk = &self.ensemble.hosts[host].disk;
        let rot = Rot { file: file.clone(), identity: disk.identity(file), bit, refused: false, lost: None };
        assert!(disk.flip_bit(file, bit), "the bit is in the file");
        self.clock.counters.rots += 1;
        let figure = u64::try_from(bit).expect("files are small");
        self.clock.line(host, "rot", [figure, 0], || format!("bit {bit} of {}", rot.file));
        self.ensemble.hosts[host].rot = Some(rot);
        self.chaos.lasts_a_while(&mut self.clock, Undo::Restore(host));
    }
}
