//! Machines: what disks do and when, and how processes end, start again and stand still.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::time::Duration;

use node_core::io::{Input, Recovered, StoreOp};
use node_core::tree::TreeSnapshot;
use node_core::{Config, Phase, Role};
use node_log::{Log, LogOptions, MemStorage};
use node_wire::ids::ServerId;

use super::mover::Choice;
use super::{Chaos, Clockwork, Ensemble, Event, Oracle, World};
use crate::drawn::Drawn;
use crate::host::{self, Host, Process, Source, Store};
use crate::invariants::Found;
use crate::network::HostIndex;
use crate::script::{DiskTurn, Transition};
use harness_world::clock::Clock;
use harness_world::dice::{Chance, Dice, HALF};
use harness_world::time::Time;

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

impl Clockwork {
    /// A process starts with what its log recovered.
    fn note_start(&mut self, host: HostIndex, first: bool, found: &node_log::Recovered) {
        let torn = found.repairs.torn_tail.is_some();
        self.counters.restarts += u64::from(!first);
        self.counters.torn_tails += u64::from(torn);
        let skipped = u64::try_from(found.repairs.damaged_snapshots.len()).unwrap_or(0);
        self.counters.skipped_snapshots += skipped;
        let base = found.image.zxid;
        let last = found.entries.last().map_or(base, node_wire::txn::Entry::zxid);
        let (accepted, current) = (found.accepted_epoch.0, found.current_epoch.0);
        self.line(host, "start", [base.0, last.0], || {
            let torn = if torn { ", torn tail cut" } else { "" };
            format!("snapshot {base}, log to {last}, epochs {accepted} {current}{torn}")
        });
        if !first {
            let torn = if torn { ", behind it a torn tail" } else { "" };
            let id = host + 1;
            self.remark(|| {
                format!(
                    "s{id} finds acceptedEpoch {accepted}, currentEpoch {current}, its log up to {last}{torn}"
                )
            });
        }
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
        if self.is_planned {
            return 0;
        }
        let all = u64::try_from(unsynced).expect("a disk in memory is small");
        let kept = self.decide(host, Choice::Keep, |dice, _| part_kept(dice, all));
        usize::try_from(kept.min(all)).expect("not more than there is")
    }

    pub(super) fn log_options(&self) -> LogOptions {
        let (preallocate_bytes, roll_bytes) = (self.drawn.preallocate_bytes, self.drawn.roll_bytes);
        LogOptions { preallocate_bytes, roll_bytes, note_synced: false }
    }
}

impl Ensemble {
    fn fsync_delay(&self, clock: &mut Clockwork, host: HostIndex) -> u64 {
        let usual = clock.dice.around(self.hosts[host].fsync_us);
        let stuck_us = self.hosts[host].slow_until.since(clock.now);
        if stuck_us > 0 && clock.drawn.rare.stuck {
            return usual + stuck_us;
        }
        let slow = clock.now < self.hosts[host].slow_until || clock.dice.chance(clock.drawn.stall);
        if slow { usual + clock.dice.between(0, clock.drawn.stall_us) } else { usual }
    }

    pub(super) fn take_snapshot(&mut self, clock: &mut Clockwork, host: HostIndex, snapshot: TreeSnapshot) {
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
    fn relapses(&self, clock: &mut Clockwork, host: HostIndex) -> bool {
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
    fn breathe(
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

    pub(super) fn pause(&mut self, clock: &mut Clockwork, oracle: &mut Oracle, host: HostIndex) -> bool {
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
    pub(super) fn pardon(&mut self, clock: &mut Clockwork, host: HostIndex) {
        clock.write_down(|| Transition::Disk { host, turns: DiskTurn::Sound });
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

impl Chaos {
    /// Lets the store's writer start on what waits.
    pub(super) fn start_store(&mut self, clock: &mut Clockwork, ensemble: &mut Ensemble, host: HostIndex) {
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

    pub(super) fn start_process(
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
            self.rehearse_start(clock, ensemble, oracle, host);
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
}

impl World {
    pub(super) fn die(&mut self, host: HostIndex, life: u64) {
        if self.ensemble.lives(host, life) && self.clock.in_chaos() {
            self.crash(host);
        }
    }

    pub(super) fn store_finishes(&mut self, host: HostIndex, life: u64) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let process = self.ensemble.hosts[host].process.as_mut().expect("the process lives");
        let batch = process.store.take_running();
        let Some((ticket, _)) = batch.last() else { return };
        let ticket = *ticket;
        self.ensemble.tempt(&mut self.clock, host, &batch);
        let ops = Some(batch.len());
        self.clock.write_down(|| Transition::Wrote { host, ops });
        if let Some((_, op)) = batch.first() {
            self.chaos.rehearse_operation(&mut self.clock, &self.ensemble, &mut self.oracle, host, op);
        }
        self.clock.disk_begins(host);
        let process = self.ensemble.hosts[host].process.as_mut().expect("the process lives");
        if let Err(error) = host::carry_out(&mut process.log, &batch) {
            if !self.chaos.goes_on(
                &mut self.clock,
                &mut self.ensemble,
                &mut self.oracle,
                host,
                &batch,
                &error,
            ) {
                self.store_failed(host, batch, &error);
            }
            self.clock.disk_done();
            return;
        }
        self.clock.disk_done();
        self.ensemble.relent(host);
        for (_, op) in &batch {
            self.oracle.judge(&mut self.clock, |invariants| invariants.stored(host, op));
            match op {
                StoreOp::Truncate(_) => self.clock.counters.truncations += 1,
                StoreOp::Install(_) => self.clock.counters.installs += 1,
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
        self.chaos.start_store(&mut self.clock, &mut self.ensemble, host);
    }

    pub(super) fn snapshot_finishes(&mut self, host: HostIndex, life: u64) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let machine = &mut self.ensemble.hosts[host];
        let process = machine.process.as_mut().expect("the process lives");
        let Some(snapshot) = process.snapshot.take() else { return };
        self.clock.write_down(|| Transition::Snapshot { host });
        self.chaos.rehearse_snapshot(&mut self.clock, &self.ensemble, &mut self.oracle, host, &snapshot);
        self.clock.disk_begins(host);
        let machine = &mut self.ensemble.hosts[host];
        let zxid = snapshot.zxid();
        if let Err(error) = node_log::write_snapshot(&machine.disk, snapshot.contents()) {
            self.snapshot_failed(host, &error);
            self.clock.disk_done();
            return;
        }
        self.clock.counters.snapshots += 1;
        self.clock.line(host, "snapshot", [zxid.0, 0], || zxid.to_string());
        self.chaos.rehearse_purge(&mut self.clock, &self.ensemble, &mut self.oracle, host);
        let log = &mut self.ensemble.hosts[host].process.as_mut().expect("the process lives").log;
        if let Err(error) = log.roll().and_then(|()| log.purge(KEEP_SNAPSHOTS)) {
            self.store_failed(host, Vec::new(), &error);
            self.clock.disk_done();
            return;
        }
        self.clock.disk_done();
        self.chaos.start_store(&mut self.clock, &mut self.ensemble, host);
    }

    /// Counts an effect towards a death in the middle of a step. False when that was the last one.
    pub(super) fn survives_effect(&mut self, host: HostIndex) -> bool {
        let Some(process) = self.ensemble.hosts[host].process.as_mut() else { return false };
        let Some(left) = process.dies_after.as_mut() else { return true };
        *left = left.saturating_sub(1);
        if *left > 0 {
            return true;
        }
        self.clock.counters.mid_step_crashes += 1;
        self.crash(host);
        false
    }

    /// Ends a process at once, within its next effects, or while it stores something.
    pub(super) fn doom(&mut self, host: HostIndex) {
        let Some(process) = self.ensemble.hosts[host].process.as_mut() else { return };
        if process.pauses > 0 || !self.clock.dice.chance(self.clock.drawn.mid_step) {
            self.crash(host);
        } else if self.clock.dice.chance(HALF) {
            process.dies_after = Some(self.clock.dice.between(1, EFFECTS_TO_LIVE));
        } else {
            process.dies_storing = true;
        }
    }

    /// Ends a process. What its disk keeps is drawn: all that was written, or of the unsynchronized any part.
    pub(super) fn crash(&mut self, host: HostIndex) {
        let Some(mut process) = self.ensemble.hosts[host].process.take() else { return };
        self.ensemble.hosts[host].life += 1;
        self.clock.counters.crashes += 1;
        self.clock.count_crash(process.phase, process.role);
        let power = self.clock.decide(host, Choice::Power, |dice, drawn| dice.chance(drawn.power).into()) > 0;
        self.clock.line(host, "crash", [u64::from(power), 0], || {
            if power { "power lost" } else { "killed" }.to_owned()
        });
        let batch = process.store.take_running();
        self.ensemble.hosts[host].interrupted = batch.first().map(|(_, op)| op.clone());
        let disk = self.ensemble.hosts[host].disk.clone();
        if !batch.is_empty() {
            let appends = matches!(batch[0].1, StoreOp::Append(_));
            let operations = match (appends, self.clock.is_planned) {
                // A planned kill loses exactly what was not synced, as a log that is cut back does.
                (true, true) => 1,
                (true, false) => OPERATIONS_OF_AN_APPEND,
                (false, _) => OPERATIONS_OF_A_BATCH,
            };
            let nth = self.clock.decide(host, Choice::Store, |dice, _| dice.between(1, operations));
            disk.fail_from_nth(nth, ErrorKind::Other);
            // The failure is the crash; nobody is left to be told.
            let interrupted = host::carry_out(&mut process.log, &batch).is_err();
            self.clock.counters.mid_store_crashes += u64::from(interrupted);
            disk.heal();
        }
        if let Some(snapshot) = process.snapshot.take() {
            let nth =
                self.clock.decide(host, Choice::Snapshot, |dice, _| dice.between(1, OPERATIONS_OF_A_BATCH));
            disk.fail_from_nth(nth, ErrorKind::Other);
            let interrupted = node_log::write_snapshot(&disk, snapshot.contents()).is_err();
            self.clock.counters.mid_snapshot_crashes += u64::from(interrupted);
            disk.heal();
        }
        self.clock.counters.power_losses += u64::from(power);
        if power {
            disk.crash(|unsynced| self.clock.kept(host, unsynced));
        } else {
            disk.kill();
        }
        self.oracle.inform(&self.clock, |invariants| invariants.ended(host));
        self.cut_host(host);
        self.clock.crashed(host);
    }

    /// Lets a process go on: it finds what came meanwhile, each source in its order, the sources mixed.
    pub(super) fn resume(&mut self, host: HostIndex, life: u64) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let process = self.ensemble.hosts[host].process.as_mut().expect("the process lives");
        process.pauses = process.pauses.saturating_sub(1);
        self.oracle.progress.disturbed(host, self.clock.now);
        if process.hears() {
            self.clock.line(host, "resume", [0, 0], String::new);
        }
        self.go_on(host, life);
        self.chaos.start_store(&mut self.clock, &mut self.ensemble, host);
    }

    /// Gives a process what came while it heard nothing, until it works again.
    pub(super) fn go_on(&mut self, host: HostIndex, life: u64) {
        let Some(process) = self.ensemble.hosts[host].process.as_mut() else { return };
        if !process.hears() {
            return;
        }
        let mut waiting: BTreeMap<Source, VecDeque<Input>> = BTreeMap::new();
        for (source, input) in std::mem::take(&mut process.inbox) {
            waiting.entry(source).or_default().push_back(input);
        }
        let mut sources: Vec<_> = waiting.into_iter().collect();
        while !sources.is_empty() && self.ensemble.lives(host, life) && self.oracle.violation.is_none() {
            let chosen = self.clock.dice.index(sources.len());
            let (source, inputs) = &mut sources[chosen];
            let source = *source;
            match inputs.pop_front() {
                Some(input) => self.take_in(host, source, input),
                None => drop(sources.swap_remove(chosen)),
            }
            if let Some(process) = self.ensemble.hosts[host].process.as_mut()
                && process.work.is_some()
            {
                let left = sources.drain(..);
                let left =
                    left.flat_map(|(source, inputs)| inputs.into_iter().map(move |input| (source, input)));
                process.inbox.extend(left);
            }
        }
    }
}
