//! Disks that fail: what is done to them, and what their member may then do.
//!
//! A member whose disk refuses a write or a synchronization ends, as the real driver does, and starts again
//! later. A snapshot that can't be written is only a snapshot less. A disk that lies about old records must
//! be refused, or what it lies about must not matter: recovery that takes rot for sound data is a violation,
//! which the invariants' look at every recovery finds.
//!
//! Not rotten are the last record of a log, which can't be told from an interrupted write, and the epoch
//! files, which have no checksum, being ZooKeeper's. At most a minority of the members is rotten at a time.

use std::collections::BTreeMap;

use node_core::io::StoreOp;
use node_log::{LogError, MemStorage, Storage};
use node_wire::ids::{Epoch, Zxid};
use node_wire::logfile::{HEADER_LEN, RECORD_OVERHEAD, Record, RecordReader};

use super::nemesis::Undo;
use super::{Chaos, Clockwork, Ensemble, Oracle, World};
use crate::host::Rot;
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::script::{DiskTurn, Transition};
use harness_world::dice::{Chance, HALF};
use harness_world::time::Time;

/// The files of the epochs.
const EPOCHS: [&str; 2] = ["acceptedEpoch", "currentEpoch"];

/// Bytes that a failed synchronization may have stored all the same.
const MAX_KEPT_BYTES: u64 = 4096;

/// A process that could not start or go on for want of space is tried again within this time.
const RETRY_US: u64 = 300_000;

/// A process whose disk turned rotten is started within this time.
const ROTTEN_START_US: u64 = 50_000;

impl Ensemble {
    /// True when the disk failed since this was last asked: whoever failed with it did as it should.
    fn disk_failed(&mut self, host: HostIndex) -> bool {
        let failed = self.hosts[host].disk.failed();
        std::mem::replace(&mut self.hosts[host].failures_seen, failed) < failed
    }

    /// Recovery took a rotten disk. What it took is judged with every recovery.
    pub(super) fn survived_rot(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, host: HostIndex) {
        oracle.check_lost_epoch(clock, self, host);
        let Some(rot) = &self.hosts[host].rot else { return };
        clock.counters.rot_harmless += 1;
        if rot.lost.is_some() {
            // Nobody missed it, and what is written from now on may not go with it.
            self.hosts[host].rot = None;
            return;
        }
        // A log that is written to can't be told from its former self later; a snapshot never changes.
        if !rot.file.starts_with("snapshot.") {
            self.restore(host);
        }
    }

    /// Turns the bit back, if its file is still there.
    pub(super) fn restore(&mut self, host: HostIndex) {
        let machine = &mut self.hosts[host];
        let Some(rot) = machine.rot.take() else { return };
        if let Some(content) = &rot.lost {
            machine.disk.place(&rot.file, content);
            return;
        }
        if machine.disk.identity(&rot.file) == rot.identity {
            machine.disk.flip_bit(&rot.file, rot.bit);
        }
    }
}

impl Chaos {
    pub(super) fn slow_disk(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble) {
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
    pub(super) fn fail_sync(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let host = self.anyone(ensemble);
        let keep = if self.fate.chance(HALF) { 0 } else { self.fate.scale(1, MAX_KEPT_BYTES) };
        clock.write_down(|| Transition::Disk { host, turns: DiskTurn::SyncFails(keep) });
        ensemble.hosts[host].disk.fail_sync(usize::try_from(keep).expect("a small number"));
    }

    pub(super) fn fill_disk(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let host = self.anyone(ensemble);
        clock.write_down(|| Transition::Disk { host, turns: DiskTurn::Full });
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

    pub(super) fn start_later(&mut self, clock: &mut Clockwork, host: HostIndex, within_us: u64) {
        let delay = clock.dice.between(1, within_us);
        self.lasts(clock, Undo::Start(host), delay);
    }

    /// A file disappears while its member is down, one that is missed.
    fn lose_file(
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

impl Oracle {
    /// Files of which the log must notice that they are lost: the directory can't say that there was more
    /// when the last log goes, or one behind which an epoch begins (its first zxid may follow any), or the
    /// only snapshot.
    pub(super) fn missed_files(&self, ensemble: &Ensemble, host: HostIndex) -> Vec<String> {
        let disk = &ensemble.hosts[host].disk;
        let names = disk.list().unwrap_or_default();
        let (logs, snapshots) = (by_zxid(&names, "log."), by_zxid(&names, "snapshot."));
        let newest = snapshots.last_key_value().map_or(0, |(zxid, _)| *zxid);
        // Where the next one holds nothing but a torn tail, this is the last.
        let holds_some =
            |name: &str| disk.read(name).is_ok_and(|content| !ends_of_records(content).is_empty());
        let mut files: Vec<String> = logs
            .values()
            .zip(logs.iter().skip(1))
            .filter(|(_, (next, _))| **next > newest + 1 && Zxid(**next).counter() != 1)
            .filter(|(_, (_, name))| holds_some(name))
            .map(|(name, _)| name.clone())
            .collect();
        if snapshots.len() > 1 {
            files.extend(snapshots.into_values().next_back());
        }
        if self.invariants.durable(host).epoch() > Epoch::ZERO && !(logs.is_empty() && newest == 0) {
            files.extend(EPOCHS.map(str::to_owned).into_iter().filter(|name| names.contains(name)));
        }
        files
    }

    /// A member starts although an epoch of it is lost: it could promise again what it promised to another.
    fn check_lost_epoch(&mut self, clock: &mut Clockwork, ensemble: &Ensemble, host: HostIndex) {
        let Some(Rot { file, lost: Some(content), .. }) = &ensemble.hosts[host].rot else { return };
        if is_epoch(file) && content[..] != *b"0" {
            let id = ensemble.server(host).0;
            self.report(
                clock,
                Rule::Recovery,
                format!("server {id} starts without its {file}, which is lost"),
            );
        }
    }
}

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

/// The zxid in the name of a log file: names do not sort as numbers do.
/// The files that may rot, and how many bytes of each, from its beginning.
pub(super) fn old_bytes(disk: &MemStorage) -> Vec<(String, usize)> {
    let names = disk.list().unwrap_or_default();
    let last_log = names.iter().filter_map(|name| zxid_of_log(name)).max();
    let mut old = Vec::new();
    for name in names {
        let Ok(content) = disk.read(&name) else { continue };
        let bytes = if name.starts_with("snapshot.") {
            content.len()
        } else if let Some(zxid) = zxid_of_log(&name) {
            let spared = usize::from(Some(zxid) == last_log);
            let ends = ends_of_records(content);
            ends.len().checked_sub(1 + spared).map_or(0, |index| ends[index])
        } else {
            0
        };
        if bytes > 0 {
            old.push((name, bytes));
        }
    }
    old
}

/// The files with this prefix, by the zxid behind it.
pub(super) fn by_zxid(names: &[String], prefix: &str) -> BTreeMap<u64, String> {
    let zxid = |name: &String| u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok();
    names.iter().filter_map(|name| Some((zxid(name)?, name.clone()))).collect()
}

/// Whether this is the file of an epoch.
pub(super) fn is_epoch(name: &str) -> bool {
    EPOCHS.contains(&name)
}

fn zxid_of_log(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("log.")?, 16).ok()
}

/// Where each sound record of a log ends.
fn ends_of_records(content: bytes::Bytes) -> Vec<usize> {
    let Ok(mut reader) = RecordReader::new(content) else { return Vec::new() };
    let mut end = HEADER_LEN;
    let mut ends = Vec::new();
    while let Record::Entry(entry) = reader.read_record() {
        end += entry.bytes.len() + RECORD_OVERHEAD;
        ends.push(end);
    }
    ends
}
