//! Hypothetical crashes: what a member's disk would hold, had the member died there.
//!
//! A process that is killed in the middle of an installation, and loses power in the middle of the recovery
//! behind it, is too rare to wait for, and most bugs of logs are in such places. A disk in memory can be
//! forked. So at chosen moments a fork of a member's disk goes through ends that did not happen:
//!
//! - *An operation that throws history away* is interrupted at one of its disk operations, and up to two
//!   recoveries behind it as well, by kills and by power losses. The last recovery must find what the
//!   invariant of recoveries accepts, and nothing of the old history beside a tree that took its place.
//! - *A start* is interrupted in the same way. And what a recovery found is there for good: it may be told to
//!   others at once.
//! - *A file that is lost, a bit that turns over* while the member is down: the log refuses to open, or
//!   nothing that was durable is missing.
//! - *A snapshot*, and the purge behind it, are interrupted in the same way; sometimes an older tree takes
//!   the place of all instead.
//! - *A purge* leaves enough to do without the newest snapshot, and counts none that is damaged.
//!
//! Nothing of it touches the world, and its dice are its own: a world with them is the same world
//! without them.

use std::io::ErrorKind;
use std::sync::Arc;

use node_core::io::StoreOp;
use node_core::tree::TreeSnapshot;
use node_log::{MemStorage, Recovered, Storage};
use node_wire::ids::{Epoch, Zxid};
use node_wire::snapshot::Image;

use crate::host;
use crate::network::HostIndex;
use crate::world::ensemble::files::{by_zxid, is_epoch, old_bytes};
use crate::world::ensemble::machine::{
    KEEP_SNAPSHOTS, OPERATIONS_OF_A_BATCH, OPERATIONS_OF_A_START, part_kept,
};
use crate::world::{Chaos, Clockwork, Ensemble, Oracle};
use harness_world::dice::{Chance, Dice, HALF};

/// Ends that are tried for one operation that throws history away.
const ENDS_OF_AN_OPERATION: usize = 3;

/// Recoveries behind it that do not end at most.
const INTERRUPTED_STARTS: u64 = 2;

/// How many of a world's snapshots are tried, and how many of its purges.
const SNAPSHOTS: Chance = Chance(600);

const PURGES: Chance = Chance(1_000);

/// Disk operations of a snapshot and of the purge behind it, generously.
const OPERATIONS_OF_A_SNAPSHOT: u64 = 14;

/// An end without harm to what is stored.
const DIED: &str = "died";

/// What a recovery came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct Facts {
    pub(in crate::world) base: Zxid,
    pub(in crate::world) last: Zxid,
    pub(in crate::world) accepted: Epoch,
    pub(in crate::world) current: Epoch,
}

impl Facts {
    pub(in crate::world) fn of(found: &Recovered) -> Self {
        let base = found.image.zxid;
        let last = found.entries.last().map_or(base, node_wire::txn::Entry::zxid);
        Self { base, last, accepted: found.accepted_epoch, current: found.current_epoch }
    }
}

/// A process that uses a disk ends: it is killed, or the power is lost.
pub(in crate::world) fn end(disk: &MemStorage, dice: &mut Dice) {
    disk.heal();
    if dice.chance(HALF) {
        disk.kill();
    } else {
        lose_power(disk, dice);
    }
}

/// Of what was not synchronized nothing, everything or a part is kept.
fn lose_power(disk: &MemStorage, dice: &mut Dice) {
    disk.crash(|unsynced| {
        let all = u64::try_from(unsynced).expect("a disk in memory is small");
        usize::try_from(part_kept(dice, all)).expect("not more than there is")
    });
}

impl Chaos {
    /// A fork of a member's disk, where that is well. None where nothing would be judged, or where the disk
    /// follows a script.
    fn forked_disk(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        oracle: &Oracle,
        host: HostIndex,
    ) -> Option<MemStorage> {
        let machine = &ensemble.hosts[host];
        let judged = clock.options.look_inside && oracle.violation.is_none();
        let drawn = !clock.is_planned && self.appointment.is_none();
        let well = machine.rot.is_none() && !machine.disk.is_full();
        (judged && drawn && well).then(|| machine.disk.fork())
    }

    /// The store is about to do this.
    pub(in crate::world) fn try_crashes_in_operation(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        op: &StoreOp,
    ) {
        if !matches!(op, StoreOp::Install(_) | StoreOp::Truncate(_)) {
            return;
        }
        for _ in 0..ENDS_OF_AN_OPERATION {
            let Some(disk) = self.forked_disk(clock, ensemble, oracle, host) else { return };
            disk.heal();
            let Ok((mut log, _)) = clock.open(&disk) else { return };
            let nth = self.hypothetical.between(1, OPERATIONS_OF_A_BATCH);
            disk.fail_from_nth(nth, ErrorKind::Other);
            // Interrupted or not: both are ends.
            let _ = host::carry_out(&mut log, &[(0, op.clone())]);
            drop(log);
            end(&disk, &mut self.hypothetical);
            self.try_crashes_in_recovery(clock, ensemble, oracle, host, &disk, Some(op));
        }
    }

    /// Recoveries that do not end, one that does, and one behind that.
    fn try_crashes_in_recovery(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        disk: &MemStorage,
        interrupted: Option<&StoreOp>,
    ) {
        for _ in 0..self.hypothetical.between(0, INTERRUPTED_STARTS) {
            let nth = self.hypothetical.between(1, OPERATIONS_OF_A_START);
            disk.fail_from_nth(nth, ErrorKind::Other);
            let _ = clock.open(disk);
            end(disk, &mut self.hypothetical);
        }
        clock.counters.hypothetical_crashes += 1;
        match clock.open(disk) {
            Ok((_, found)) => {
                oracle.check_hypothetical(clock, ensemble, host, &found, interrupted, DIED);
                self.try_permanence(clock, ensemble, oracle, host, disk, &found);
            }
            Err(error) => {
                oracle.report_hypothetical(clock, ensemble, host, DIED, &format!("it would fail to {error}"))
            }
        }
    }

    /// The power is lost right behind a recovery.
    fn try_permanence(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        disk: &MemStorage,
        found: &Recovered,
    ) {
        lose_power(disk, &mut self.hypothetical);
        let facts = Facts::of(found);
        match clock.open(disk) {
            Ok((_, again)) if Facts::of(&again) == facts => {}
            Ok((_, again)) => {
                let again = Facts::of(&again);
                let sentence = format!(
                    "a recovery found {} to {} and the epochs {} {}, and the next one {} to {} and {} {}",
                    facts.base,
                    facts.last,
                    facts.accepted.0,
                    facts.current.0,
                    again.base,
                    again.last,
                    again.accepted.0,
                    again.current.0
                );
                oracle.report_hypothetical(clock, ensemble, host, DIED, &sentence);
            }
            Err(error) => {
                oracle.report_hypothetical(
                    clock,
                    ensemble,
                    host,
                    DIED,
                    &format!("a second recovery would fail to {error}"),
                );
            }
        }
    }

    /// A member is about to start.
    pub(super) fn try_failures_of_start(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
    ) {
        let Some(disk) = self.forked_disk(clock, ensemble, oracle, host) else { return };
        disk.heal();
        match self.hypothetical.between(0, 2) {
            0 => {
                let interrupted = ensemble.hosts[host].interrupted.clone();
                self.try_crashes_in_recovery(clock, ensemble, oracle, host, &disk, interrupted.as_ref());
            }
            1 => self.try_lost_file(clock, ensemble, oracle, host, &disk),
            _ => self.try_rot(clock, ensemble, oracle, host, &disk),
        }
    }

    fn try_lost_file(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        disk: &MemStorage,
    ) {
        let files = oracle.missed_files(ensemble, host);
        if files.is_empty() {
            return;
        }
        let file = &files[self.hypothetical.index(files.len())];
        let content = disk.read(file).unwrap_or_default();
        if disk.remove(file).and_then(|()| disk.sync_dir()).is_err() {
            return;
        }
        clock.counters.hypothetical_crashes += 1;
        let Ok((_, found)) = clock.open(disk) else { return };
        if is_epoch(file) && content[..] != *b"0" {
            oracle.report_hypothetical(
                clock,
                ensemble,
                host,
                &format!("lost its {file}"),
                "it would start without it",
            );
        }
        let interrupted = ensemble.hosts[host].interrupted.clone();
        oracle.check_hypothetical(
            clock,
            ensemble,
            host,
            &found,
            interrupted.as_ref(),
            &format!("lost its {file}"),
        );
    }

    /// Turns one bit over in old data of a forked disk. The log must refuse to open then, or recover all that
    /// was durable.
    fn try_rot(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        disk: &MemStorage,
    ) {
        let old = old_bytes(disk);
        if old.is_empty() {
            return;
        }
        let (file, bytes) = &old[self.hypothetical.index(old.len())];
        let bit = self.hypothetical.index(bytes * 8);
        disk.flip_bit(file, bit);
        clock.counters.hypothetical_crashes += 1;
        let Ok((_, found)) = clock.open(disk) else { return };
        let interrupted = ensemble.hosts[host].interrupted.clone();
        let ends = format!("found bit {bit} of {file} turned over");
        oracle.check_hypothetical(clock, ensemble, host, &found, interrupted.as_ref(), &ends);
    }

    /// A snapshot is about to be written, and what it makes superfluous to go.
    pub(in crate::world) fn try_crashes_in_snapshot(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
        snapshot: &TreeSnapshot,
    ) {
        if !self.hypothetical.chance(SNAPSHOTS) {
            return;
        }
        let Some(disk) = self.forked_disk(clock, ensemble, oracle, host) else { return };
        disk.heal();
        let Ok((mut log, found)) = clock.open(&disk) else { return };
        let nth = self.hypothetical.between(1, OPERATIONS_OF_A_SNAPSHOT);
        disk.fail_from_nth(nth, ErrorKind::Other);
        // A tree that is older than the log: what is behind it has to go as well.
        let replaces = self.hypothetical.chance(HALF);
        let tree = found
            .entries
            .first()
            .filter(|_| replaces)
            .map(|entry| Image { zxid: entry.zxid(), ..found.image.clone() });
        let op = tree.map(|tree| StoreOp::Install(Arc::new(tree)));
        match &op {
            Some(op) => {
                let _ = host::carry_out(&mut log, &[(0, op.clone())]);
            }
            None => {
                let written = node_log::write_snapshot(&disk, snapshot.contents());
                let _ = written.and_then(|()| log.roll()).and_then(|()| log.purge(KEEP_SNAPSHOTS));
            }
        }
        drop(log);
        end(&disk, &mut self.hypothetical);
        self.try_crashes_in_recovery(clock, ensemble, oracle, host, &disk, op.as_ref());
    }

    /// A snapshot was written, and what it makes superfluous is about to go.
    pub(in crate::world) fn try_crashes_in_purge(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
    ) {
        if !self.hypothetical.chance(PURGES) {
            return;
        }
        let Some(disk) = self.forked_disk(clock, ensemble, oracle, host) else { return };
        let snapshots = |disk: &MemStorage| -> Vec<String> {
            by_zxid(&disk.list().unwrap_or_default(), "snapshot.").into_values().collect()
        };
        let there = snapshots(&disk);
        if there.len() <= KEEP_SNAPSHOTS {
            return;
        }
        clock.counters.hypothetical_crashes += 1;
        let rots = self.hypothetical.chance(HALF);
        let damage = |disk: &MemStorage, name: &str, dice: &mut Dice| {
            let bytes = disk.read(name).map_or(0, |content| content.len());
            if bytes > 0 {
                disk.flip_bit(name, dice.index(bytes * 8));
            }
        };
        if rots {
            // Of those that it would keep, so that it has to keep one more.
            let name = &there[there.len() - KEEP_SNAPSHOTS];
            damage(&disk, name, &mut self.hypothetical);
        }
        if node_log::purge(&disk, KEEP_SNAPSHOTS).is_err() {
            return;
        }
        if let Some(newest) = snapshots(&disk).last() {
            damage(&disk, newest, &mut self.hypothetical);
        }
        let ends = "purged and found its newest snapshot damaged";
        match clock.open(&disk) {
            Ok((_, found)) => oracle.check_hypothetical(clock, ensemble, host, &found, None, ends),
            Err(error) => {
                oracle.report_hypothetical(clock, ensemble, host, ends, &format!("it would fail to {error}"))
            }
        }
    }
}
