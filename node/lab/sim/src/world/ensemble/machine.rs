//! Machines: what disks do and when, and how processes end, start again and stand still.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use lab_mutants::Driver;
use node_core::io::{Recovered, StoreOp};
use node_core::tree::TreeSnapshot;
use node_core::{Config, Phase, Role};
use node_log::{Log, MemStorage};
use node_wire::ids::ServerId;

use crate::drawn::Drawn;
use crate::host::{Host, Process, Rot, Store};
use crate::network::HostIndex;
use crate::script::{DiskChange, Transition};
use crate::world::{Clockwork, Ensemble, Event, Oracle};
use harness_world::clock::Clock;
use harness_world::dice::{Chance, Dice, HALF};
use harness_world::time::Time;

/// Snapshots that stay on disk.
pub(in crate::world) const KEEP_SNAPSHOTS: usize = 2;

/// Disk operations of one batch, generously: a crash falls upon one of these, or behind all of them.
pub(in crate::world) const OPERATIONS_OF_A_BATCH: u64 = 12;

/// Disk operations of a recovery, generously.
pub(in crate::world) const OPERATIONS_OF_A_START: u64 = 16;

/// A batch of appends fails with this probability.
const FAILS: Chance = Chance(100);

/// Disk operations within which it does.
const OPERATIONS: u64 = 3;

impl Ensemble {
    /// True when the disk failed since this was last asked: whoever failed with it did as it should.
    pub(in crate::world) fn disk_failed(&mut self, host: HostIndex) -> bool {
        let failed = self.hosts[host].disk.failed();
        std::mem::replace(&mut self.hosts[host].failures_seen, failed) < failed
    }

    /// Recovery took a rotten disk. What it took is judged with every recovery.
    pub(in crate::world) fn survived_rot(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        host: HostIndex,
    ) {
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
    pub(in crate::world) fn restore(&mut self, host: HostIndex) {
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

    pub(in crate::world) fn fsync_delay(&self, clock: &mut Clockwork, host: HostIndex) -> u64 {
        let usual = clock.dice.around(self.hosts[host].fsync_us);
        let stuck_us = self.hosts[host].slow_until.since(clock.now);
        if stuck_us > 0 && clock.drawn.rare.stuck {
            return usual + stuck_us;
        }
        let slow = clock.now < self.hosts[host].slow_until || clock.dice.chance(clock.drawn.stall);
        if slow { usual + clock.dice.between(0, clock.drawn.stall_us) } else { usual }
    }

    pub(in crate::world) fn take_snapshot(
        &mut self,
        clock: &mut Clockwork,
        host: HostIndex,
        snapshot: TreeSnapshot,
    ) {
        let life = self.hosts[host].life;
        let delay = self.fsync_delay(clock, host) * if clock.drawn.rare.stuck { 1 } else { 4 };
        let process = self.hosts[host].process.as_mut().expect("it just stepped");
        // One at a time: the next one comes soon enough.
        if process.snapshot.is_none() {
            process.snapshot = Some(snapshot);
            clock.plan(delay, Event::Snapshot { host, life });
        }
    }

    /// Whether a member that starts dies again: at some operation of its recovery, or behind it.
    pub(in crate::world) fn relapses(&self, clock: &mut Clockwork, host: HostIndex) -> bool {
        let chance = clock.drawn.rare.relapse;
        let relapses = clock.in_chaos() && chance != Chance::NEVER && clock.dice.chance(chance);
        if relapses {
            clock.counters.relapses += 1;
            clock.line(host, "relapse", [0, 0], String::new);
            if clock.dice.chance(HALF) {
                let nth = clock.dice.between(1, OPERATIONS_OF_A_START);
                self.hosts[host].disk.fail_from_nth(nth, ErrorKind::Other);
            }
        }
        relapses
    }

    /// A process begins with what was recovered.
    pub(in crate::world) fn breathe(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        host: HostIndex,
        log: Log<MemStorage>,
        recovered: Recovered,
    ) {
        let config = Config {
            id: self.server(host),
            voters: self.hosts[..clock.drawn.members].iter().map(|host| host.id).collect(),
            observers: self.hosts[clock.drawn.members..].iter().map(|host| host.id).collect(),
            peer_timeout: Duration::from_millis(clock.drawn.peer_timeout_ms),
            tick_time: Duration::from_millis(clock.drawn.tick_time_ms),
            init_limit: clock.drawn.init_limit,
            sync_limit: clock.drawn.init_limit,
            snap_count: clock.drawn.snap_count.into(),
            session_timeouts_ms: None,
            journal_entries: clock.drawn.journal_entries,
            last_counter: clock.drawn.last_counter,
            clients: node_core::ClientRules {
                container_check: Duration::from_millis(clock.drawn.reaping_ms),
                ..self.client_rules(clock)
            },
        };
        let machine = &mut self.hosts[host];
        machine.life += 1;
        let life = machine.life;
        let started = self.factory.start(config, recovered, machine.now(clock.now));
        machine.process = Some(Process {
            machine: started,
            log,
            store: Store::default(),
            votes: BTreeMap::new(),
            snapshot: None,
            role: Role::Looking,
            phase: Phase::Election,
            established: false,
            alone: false,
            truncated: false,
            pauses: 0,
            work: None,
            inbox: Vec::new(),
            dies_after: None,
            dies_storing: false,
        });
        oracle.progress.disturbed(host, clock.now);
        let delay = clock.dice.between(0, 10_000);
        clock.plan(delay, Event::Tick { host, life });
        for peer in 0..self.hosts.len() {
            // Observers have nothing to say to each other.
            if clock.drawn.changes || host.min(peer) < clock.drawn.members {
                self.plan_election_dial(clock, host, peer);
            }
        }
    }

    pub(in crate::world) fn pause(
        &mut self,
        clock: &mut Clockwork,
        oracle: &mut Oracle,
        host: HostIndex,
    ) -> bool {
        let Some(process) = self.hosts[host].process.as_mut() else { return false };
        process.pauses += 1;
        if let Some(work) = &mut process.work {
            work.paused = true;
        }
        oracle.progress.disturbed(host, clock.now);
        clock.counters.pauses += 1;
        clock.line(host, "pause", [0, 0], String::new);
        true
    }

    /// Heals a machine's disk and its process's death sentence.
    pub(in crate::world) fn pardon(&mut self, clock: &mut Clockwork, host: HostIndex) {
        clock.write_down(|| Transition::Disk { host, change: DiskChange::Sound });
        self.hosts[host].disk.set_full(false);
        self.hosts[host].disk.heal();
        self.restore(host);
        self.hosts[host].slow_until = Time::default();
        if let Some(process) = self.hosts[host].process.as_mut() {
            process.dies_after = None;
            process.dies_storing = false;
        }
    }

    /// Before a batch is carried out: lets the disk fail it, where the driver goes on then.
    pub(in crate::world) fn tempt(&self, clock: &mut Clockwork, host: HostIndex, batch: &[(u64, StoreOp)]) {
        if self.driver == Driver::SkipsFailedWrites
            && clock.in_chaos()
            && !clock.is_scripted()
            && batch.iter().all(|(_, op)| matches!(op, StoreOp::Append(_)))
            && clock.dice.chance(FAILS)
        {
            let nth = clock.dice.between(1, OPERATIONS);
            clock.write_down(|| Transition::DiskFails { host, nth, lasting: false });
            self.hosts[host].disk.fail_nth(nth, ErrorKind::StorageFull);
        }
    }

    /// After a batch was carried out: the disk is well again.
    pub(in crate::world) fn relent(&self, host: HostIndex) {
        if self.driver == Driver::SkipsFailedWrites {
            self.hosts[host].disk.heal();
        }
    }

    /// A member's clocks were set.
    pub(in crate::world) fn write_down_clock(&self, clock: &mut Clockwork, host: HostIndex, jump_us: u64) {
        clock.write_down(|| {
            let of_host = self.hosts[host].clock;
            Transition::Clock {
                host,
                wall_ms: of_host.wall_offset_ms,
                drift_ppm: of_host.wall_pace_ppm,
                fast_ppm: of_host.pace_ppm,
                jump_us,
            }
        });
    }

    pub(in crate::world) fn change_disk(&mut self, host: HostIndex, change: DiskChange) -> bool {
        let Some(machine) = self.hosts.get(host) else { return false };
        let disk = machine.disk.clone();
        match change {
            DiskChange::Full => disk.set_full(true),
            DiskChange::Roomy => disk.set_full(false),
            DiskChange::SyncFails(keeps) => disk.fail_sync(usize::try_from(keeps).unwrap_or(usize::MAX)),
            DiskChange::Restored => self.restore(host),
            DiskChange::Sound => {
                disk.set_full(false);
                disk.heal();
                self.restore(host);
            }
        }
        true
    }

    pub(in crate::world) fn rots(&mut self, host: HostIndex, file: &str, bit: usize) -> bool {
        if host >= self.hosts.len() || self.runs(host) || self.hosts[host].rot.is_some() {
            return false;
        }
        let machine = &mut self.hosts[host];
        if !machine.disk.flip_bit(file, bit) {
            return false;
        }
        let identity = machine.disk.identity(file);
        machine.rot = Some(Rot { file: file.to_owned(), identity, bit, refused: false, lost: None });
        true
    }
}

/// A machine whose process has not started.
pub(super) fn new_host(index: HostIndex, drawn: &Drawn, dice: &mut Dice) -> Host {
    let disk = MemStorage::new();
    Host {
        id: ServerId(u64::try_from(index).expect("members are few") + 1),
        disk,
        clock: Clock {
            mono_offset: dice.between(0, 1 << 40),
            pace_ppm: around_zero(dice, drawn.pace_ppm),
            wall_offset_ms: i64::try_from(dice.between(0, 10_000)).expect("small"),
            wall_pace_ppm: around_zero(dice, drawn.pace_ppm),
        },
        life: 0,
        process: None,
        fsync_us: dice.between(drawn.fsync_us.0, drawn.fsync_us.1),
        slow_until: Time::default(),
        interrupted: None,
        failures_seen: 0,
        rot: None,
    }
}

/// How much of what was not synchronized reaches the disk: nothing, everything, or a part.
pub(in crate::world) fn part_kept(dice: &mut Dice, all: u64) -> u64 {
    match dice.between(0, 3) {
        0 => 0,
        1 => all,
        _ => dice.between(0, all),
    }
}

/// As far below zero as above it, at most.
pub(in crate::world) fn around_zero(dice: &mut Dice, most: u64) -> i64 {
    let drawn = i64::try_from(dice.between(0, 2 * most)).expect("a bounded draw");
    drawn - i64::try_from(most).expect("a bounded draw")
}
