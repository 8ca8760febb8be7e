//! Machines: what disks do and when, and how processes end, start again and stand still.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::time::Duration;

use node_core::io::{Input, Recovered, StoreOp};
use node_core::tree::TreeSnapshot;
use node_core::{Config, Factory, Phase, Role};
use node_log::{Log, LogOptions, MemStorage};
use node_wire::ids::ServerId;

use super::hand::Choice;
use super::{Event, World};
use crate::dice::{Chance, Dice, HALF};
use crate::drawn::Drawn;
use crate::host::{self, Host, Process, Source, Store};
use crate::judge::Found;
use crate::network::HostIndex;
use crate::script::{DiskTurn, Transition};
use crate::time::{Clock, Time};

/// Snapshots that stay on disk.
pub(super) const KEEP_SNAPSHOTS: usize = 2;

/// Disk operations of one batch, generously: a crash falls upon one of these, or behind all of them.
pub(super) const OPERATIONS_OF_A_BATCH: u64 = 12;

/// Disk operations of a batch of appends, mostly.
const OPERATIONS_OF_AN_APPEND: u64 = 3;

/// Disk operations of a recovery, generously.
pub(super) const OPERATIONS_OF_A_START: u64 = 16;

/// A process that died while it recovered is started again within this time.
const RELAPSE_US: u64 = 100_000;

/// Effects within which a process dies that was told to die in the middle of a step.
const EFFECTS_TO_LIVE: u64 = 12;

/// A machine whose process has not started.
pub(super) fn new_host<F: Factory>(index: HostIndex, drawn: &Drawn, dice: &mut Dice) -> Host<F> {
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
pub(super) fn part_kept(dice: &mut Dice, all: u64) -> u64 {
    match dice.between(0, 3) {
        0 => 0,
        1 => all,
        _ => dice.between(0, all),
    }
}

/// As far below zero as above it, at most.
pub(super) fn around_zero(dice: &mut Dice, most: u64) -> i64 {
    let drawn = i64::try_from(dice.between(0, 2 * most)).expect("a bounded draw");
    drawn - i64::try_from(most).expect("a bounded draw")
}

impl<F: Factory> World<F> {
    fn fsync_delay(&mut self, host: HostIndex) -> u64 {
        let usual = self.dice.around(self.hosts[host].fsync_us);
        let stuck_us = self.hosts[host].slow_until.since(self.now);
        if stuck_us > 0 && self.drawn.rare.stuck {
            return usual + stuck_us;
        }
        let slow = self.now < self.hosts[host].slow_until || self.dice.chance(self.drawn.stall);
        if slow { usual + self.dice.between(0, self.drawn.stall_us) } else { usual }
    }

    /// Lets the store's writer start on what waits.
    pub(super) fn start_store(&mut self, host: HostIndex) {
        let life = self.hosts[host].life;
        let Some(process) = self.hosts[host].process.as_mut() else { return };
        if process.pauses == 0 && process.store.start(process.snapshot.is_some()) {
            let begins = if !self.traps.is_empty() { process.store.running().cloned() } else { None };
            let doomed = process.dies_storing;
            let dies = begins.is_some_and(|op| self.trap_storing(host, &op)) || doomed;
            let delay = self.fsync_delay(host);
            self.plan(delay, Event::Stored { host, life });
            if dies {
                let delay = self.dice.between(0, delay);
                self.plan(delay, Event::Die { host, life });
            }
        }
    }

    pub(super) fn die(&mut self, host: HostIndex, life: u64) {
        if self.lives(host, life) && self.in_chaos() {
            self.crash(host);
        }
    }

    pub(super) fn store_finishes(&mut self, host: HostIndex, life: u64) {
        if !self.lives(host, life) {
            return;
        }
        let process = self.hosts[host].process.as_mut().expect("the process lives");
        let batch = process.store.take_running();
        let Some((ticket, _)) = batch.last() else { return };
        let ticket = *ticket;
        self.tempt(host, &batch);
        let ops = Some(batch.len());
        self.write_down(|_| Transition::Wrote { host, ops });
        if let Some((_, op)) = batch.first() {
            self.rehearse_operation(host, op);
        }
        self.disk_begins(host);
        let process = self.hosts[host].process.as_mut().expect("the process lives");
        if let Err(error) = host::carry_out(&mut process.log, &batch) {
            if !self.goes_on(host, &batch, &error) {
                self.store_failed(host, batch, &error);
            }
            self.disk_done();
            return;
        }
        self.disk_done();
        self.relent(host);
        for (_, op) in &batch {
            let finding = self.judge.stored(host, op);
            self.judged(finding);
            match op {
                StoreOp::Truncate(_) => self.counters.truncations += 1,
                StoreOp::Install(_) => self.counters.installs += 1,
                StoreOp::Append(_)
                | StoreOp::AcceptedEpoch(_)
                | StoreOp::CurrentEpoch(_)
                | StoreOp::Membership(_) => {}
            }
        }
        if self.trap_stored(host, &batch) {
            return;
        }
        self.give(host, life, Source::Store, Input::Stored { ticket });
        self.start_store(host);
    }

    pub(super) fn take_snapshot(&mut self, host: HostIndex, snapshot: TreeSnapshot) {
        let life = self.hosts[host].life;
        let delay = self.fsync_delay(host) * if self.drawn.rare.stuck { 1 } else { 4 };
        let process = self.hosts[host].process.as_mut().expect("it just stepped");
        // One at a time: the next one comes soon enough.
        if process.snapshot.is_none() {
            process.snapshot = Some(snapshot);
            self.plan(delay, Event::Snapshot { host, life });
        }
    }

    pub(super) fn snapshot_finishes(&mut self, host: HostIndex, life: u64) {
        if !self.lives(host, life) {
            return;
        }
        let machine = &mut self.hosts[host];
        let process = machine.process.as_mut().expect("the process lives");
        let Some(snapshot) = process.snapshot.take() else { return };
        self.write_down(|_| Transition::Snapshot { host });
        self.rehearse_snapshot(host, &snapshot);
        self.disk_begins(host);
        let machine = &mut self.hosts[host];
        let zxid = snapshot.zxid();
        if let Err(error) = node_log::write_snapshot(&machine.disk, snapshot.contents()) {
            self.snapshot_failed(host, &error);
            self.disk_done();
            return;
        }
        self.counters.snapshots += 1;
        self.line(host, "snapshot", [zxid.0, 0], || zxid.to_string());
        self.rehearse_purge(host);
        let log = &mut self.hosts[host].process.as_mut().expect("the process lives").log;
        if let Err(error) = log.roll().and_then(|()| log.purge(KEEP_SNAPSHOTS)) {
            self.store_failed(host, Vec::new(), &error);
            self.disk_done();
            return;
        }
        self.disk_done();
        self.start_store(host);
    }

    /// Counts an effect towards a death in the middle of a step. False when that was the last one.
    pub(super) fn survives_effect(&mut self, host: HostIndex) -> bool {
        let Some(process) = self.hosts[host].process.as_mut() else { return false };
        let Some(left) = process.dies_after.as_mut() else { return true };
        *left = left.saturating_sub(1);
        if *left > 0 {
            return true;
        }
        self.counters.mid_step_crashes += 1;
        self.crash(host);
        false
    }

    /// Ends a process at once, within its next effects, or while it stores something.
    pub(super) fn doom(&mut self, host: HostIndex) {
        let Some(process) = self.hosts[host].process.as_mut() else { return };
        if process.pauses > 0 || !self.dice.chance(self.drawn.mid_step) {
            self.crash(host);
        } else if self.dice.chance(HALF) {
            process.dies_after = Some(self.dice.between(1, EFFECTS_TO_LIVE));
        } else {
            process.dies_storing = true;
        }
    }

    /// Ends a process. What its disk keeps is drawn: all that was written, or of the unsynchronized any part.
    pub(super) fn crash(&mut self, host: HostIndex) {
        let Some(mut process) = self.hosts[host].process.take() else { return };
        self.hosts[host].life += 1;
        self.counters.crashes += 1;
        self.count_crash(process.phase, process.role);
        let power = self.decide(host, Choice::Power, |world| world.dice.chance(world.drawn.power).into()) > 0;
        self.line(host, "crash", [u64::from(power), 0], || {
            if power { "power lost" } else { "killed" }.to_owned()
        });
        let batch = process.store.take_running();
        self.hosts[host].interrupted = batch.first().map(|(_, op)| op.clone());
        let disk = self.hosts[host].disk.clone();
        if !batch.is_empty() {
            let appends = matches!(batch[0].1, StoreOp::Append(_));
            let operations = match (appends, self.planned.is_some()) {
                // A planned kill loses exactly what was not synced, as a log that is cut back does.
                (true, true) => 1,
                (true, false) => OPERATIONS_OF_AN_APPEND,
                (false, _) => OPERATIONS_OF_A_BATCH,
            };
            let nth = self.decide(host, Choice::Store, |world| world.dice.between(1, operations));
            disk.fail_from_nth(nth, ErrorKind::Other);
            // The failure is the crash; nobody is left to be told.
            let interrupted = host::carry_out(&mut process.log, &batch).is_err();
            self.counters.mid_store_crashes += u64::from(interrupted);
            disk.heal();
        }
        if let Some(snapshot) = process.snapshot.take() {
            let nth =
                self.decide(host, Choice::Snapshot, |world| world.dice.between(1, OPERATIONS_OF_A_BATCH));
            disk.fail_from_nth(nth, ErrorKind::Other);
            let interrupted = node_log::write_snapshot(&disk, snapshot.contents()).is_err();
            self.counters.mid_snapshot_crashes += u64::from(interrupted);
            disk.heal();
        }
        self.counters.power_losses += u64::from(power);
        if power {
            disk.crash(|unsynced| self.kept(host, unsynced));
        } else {
            disk.kill();
        }
        self.judge.ended(host);
        self.cut_host(host);
        self.crashed(host);
    }

    fn count_crash(&mut self, phase: Phase, role: Role) {
        let counter = match phase {
            Phase::Election => &mut self.counters.crash_looking,
            Phase::Discovery => &mut self.counters.crash_discovery,
            Phase::Synchronization => &mut self.counters.crash_synchronization,
            Phase::Broadcast => &mut self.counters.crash_broadcast,
        };
        *counter += 1;
        self.counters.crash_leader += u64::from(role == Role::Leading);
    }

    /// How much of what was not synchronized reaches the disk: nothing, everything, or a part.
    pub(super) fn kept(&mut self, host: HostIndex, unsynced: usize) -> usize {
        if self.planned.is_some() {
            return 0;
        }
        let all = u64::try_from(unsynced).expect("a disk in memory is small");
        let kept = self.decide(host, Choice::Keep, |world| part_kept(&mut world.dice, all));
        usize::try_from(kept.min(all)).expect("not more than there is")
    }

    pub(super) fn log_options(&self) -> LogOptions {
        let (preallocate_bytes, roll_bytes) = (self.drawn.preallocate_bytes, self.drawn.roll_bytes);
        LogOptions { preallocate_bytes, roll_bytes, note_synced: false }
    }

    pub(super) fn start_process(&mut self, host: HostIndex) {
        if self.hosts[host].process.is_some() || self.left_dead.contains(&host) {
            return;
        }
        self.write_down(|_| Transition::Start { host });
        let first = self.hosts[host].life == 0;
        if !first {
            self.rehearse_start(host);
        }
        let relapses = !first && self.relapses(host);
        let (log, found) = match Log::open(self.hosts[host].disk.clone(), self.log_options()) {
            Ok(opened) => opened,
            Err(error) => {
                self.recovery_failed(host, &error);
                return;
            }
        };
        if relapses {
            self.hosts[host].disk.heal();
        }
        self.survived_rot(host);
        let torn = found.repairs.torn_tail.is_some();
        self.counters.restarts += u64::from(!first);
        self.counters.torn_tails += u64::from(torn);
        let skipped = u64::try_from(found.repairs.damaged_snapshots.len()).unwrap_or(0);
        self.counters.skipped_snapshots += skipped;
        let base = found.image.zxid;
        let last = found.entries.last().map_or(base, node_wire::txn::Entry::zxid);
        self.line(host, "start", [base.0, last.0], || {
            format!(
                "snapshot {base}, log to {last}, epochs {} {}{}",
                found.accepted_epoch.0,
                found.current_epoch.0,
                if torn { ", torn tail cut" } else { "" }
            )
        });
        if !first {
            let (accepted, current) = (found.accepted_epoch.0, found.current_epoch.0);
            let torn = if torn { ", behind it a torn tail" } else { "" };
            self.remark(|_| {
                let id = host + 1;
                format!(
                    "s{id} finds acceptedEpoch {accepted}, currentEpoch {current}, its log up to {last}{torn}"
                )
            });
        }
        let interrupted = self.hosts[host].interrupted.take();
        let finding = self.judge.recovers(
            host,
            &Found {
                base,
                entries: &found.entries,
                accepted: found.accepted_epoch,
                current: found.current_epoch,
                interrupted: interrupted.as_ref(),
            },
        );
        self.judged(finding);
        if relapses {
            // What a recovery found is there for good: it may be told to others at once.
            drop(log);
            let disk = self.hosts[host].disk.clone();
            disk.crash(|unsynced| self.kept(host, unsynced));
            self.start_later(host, RELAPSE_US);
            return;
        }
        let recovered = Recovered {
            accepted_epoch: found.accepted_epoch,
            current_epoch: found.current_epoch,
            image: found.image,
            entries: found.entries,
        };
        self.breathe(host, log, recovered);
    }

    /// Whether a member that starts dies again: at some operation of its recovery, or behind it.
    fn relapses(&mut self, host: HostIndex) -> bool {
        let chance = self.drawn.rare.relapse;
        let relapses = self.in_chaos() && chance != Chance::NEVER && self.dice.chance(chance);
        if relapses {
            self.counters.relapses += 1;
            self.line(host, "relapse", [0, 0], String::new);
            if self.dice.chance(HALF) {
                let nth = self.dice.between(1, OPERATIONS_OF_A_START);
                self.hosts[host].disk.fail_from_nth(nth, ErrorKind::Other);
            }
        }
        relapses
    }

    /// A process begins with what was recovered.
    fn breathe(&mut self, host: HostIndex, log: Log<MemStorage>, recovered: Recovered) {
        let config = Config {
            id: self.server(host),
            voters: self.hosts[..self.drawn.members].iter().map(|host| host.id).collect(),
            observers: self.hosts[self.drawn.members..].iter().map(|host| host.id).collect(),
            peer_timeout: Duration::from_millis(self.drawn.peer_timeout_ms),
            tick_time: Duration::from_millis(self.drawn.tick_time_ms),
            init_limit: self.drawn.init_limit,
            sync_limit: self.drawn.init_limit,
            snap_count: self.drawn.snap_count.into(),
            session_timeouts_ms: None,
            journal_entries: self.drawn.journal_entries,
            last_counter: self.drawn.last_counter,
            clients: node_core::ClientRules {
                container_check: Duration::from_millis(self.drawn.reaping_ms),
                ..self.client_rules()
            },
        };
        let machine = &mut self.hosts[host];
        machine.life += 1;
        let life = machine.life;
        let started = self.factory.start(config, recovered, machine.clock.read(self.now));
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
            inbox: Vec::new(),
            dies_after: None,
            dies_storing: false,
        });
        self.progress.disturbed(host, self.now);
        let delay = self.dice.between(0, 10_000);
        self.plan(delay, Event::Tick { host, life });
        for peer in 0..self.hosts.len() {
            // Observers have nothing to say to each other.
            if self.drawn.changes || host.min(peer) < self.drawn.members {
                self.plan_election_dial(host, peer);
            }
        }
    }

    pub(super) fn pause(&mut self, host: HostIndex) -> bool {
        let Some(process) = self.hosts[host].process.as_mut() else { return false };
        process.pauses += 1;
        self.progress.disturbed(host, self.now);
        self.counters.pauses += 1;
        self.line(host, "pause", [0, 0], String::new);
        true
    }

    /// Lets a process go on: it finds what came meanwhile, each source in its order, the sources mixed.
    pub(super) fn resume(&mut self, host: HostIndex, life: u64) {
        if !self.lives(host, life) {
            return;
        }
        let process = self.hosts[host].process.as_mut().expect("the process lives");
        process.pauses = process.pauses.saturating_sub(1);
        self.progress.disturbed(host, self.now);
        if process.pauses > 0 {
            return;
        }
        let mut waiting: BTreeMap<Source, VecDeque<Input>> = BTreeMap::new();
        for (source, input) in std::mem::take(&mut process.inbox) {
            waiting.entry(source).or_default().push_back(input);
        }
        self.line(host, "resume", [0, 0], String::new);
        let mut sources: Vec<_> = waiting.into_iter().collect();
        while !sources.is_empty() && self.lives(host, life) && self.violation.is_none() {
            let chosen = self.dice.index(sources.len());
            let (source, inputs) = &mut sources[chosen];
            let source = *source;
            match inputs.pop_front() {
                Some(input) => self.take_in(host, source, input),
                None => drop(sources.swap_remove(chosen)),
            }
        }
        self.start_store(host);
    }

    /// Heals a machine's disk and its process's death sentence.
    pub(super) fn pardon(&mut self, host: HostIndex) {
        self.write_down(|_| Transition::Disk { host, turns: DiskTurn::Sound });
        self.hosts[host].disk.set_full(false);
        self.hosts[host].disk.heal();
        self.restore(host);
        self.hosts[host].slow_until = Time::default();
        if let Some(process) = self.hosts[host].process.as_mut() {
            process.dies_after = None;
            process.dies_storing = false;
        }
    }
}
