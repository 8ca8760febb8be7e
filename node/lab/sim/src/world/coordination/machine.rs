//! Stores finish, processes end, and those that stood still go on.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;

use node_core::io::{Input, StoreOp};

use crate::host::{self, Source};
use crate::network::HostIndex;
use crate::script::Transition;
use crate::world::World;
use crate::world::clockwork::mover::Choice;
use crate::world::ensemble::machine::{KEEP_SNAPSHOTS, OPERATIONS_OF_A_BATCH};
use harness_world::dice::HALF;

/// Disk operations of a batch of appends, mostly.
const OPERATIONS_OF_AN_APPEND: u64 = 3;

/// Effects within which a process dies that was told to die in the middle of a step.
const EFFECTS_TO_LIVE: u64 = 12;

impl World {
    pub(in crate::world) fn die(&mut self, host: HostIndex, life: u64) {
        if self.ensemble.lives(host, life) && self.clock.in_chaos() {
            self.crash(host);
        }
    }

    pub(in crate::world) fn store_finishes(&mut self, host: HostIndex, life: u64) {
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
            self.chaos.try_crashes_in_operation(&mut self.clock, &self.ensemble, &mut self.oracle, host, op);
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

    pub(in crate::world) fn snapshot_finishes(&mut self, host: HostIndex, life: u64) {
        if !self.ensemble.lives(host, life) {
            return;
        }
        let machine = &mut self.ensemble.hosts[host];
        let process = machine.process.as_mut().expect("the process lives");
        let Some(snapshot) = process.snapshot.take() else { return };
        self.clock.write_down(|| Transition::Snapshot { host });
        self.chaos.try_crashes_in_snapshot(
            &mut self.clock,
            &self.ensemble,
            &mut self.oracle,
            host,
            &snapshot,
        );
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
        self.chaos.try_crashes_in_purge(&mut self.clock, &self.ensemble, &mut self.oracle, host);
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
    pub(in crate::world) fn crash(&mut self, host: HostIndex) {
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
    pub(in crate::world) fn resume(&mut self, host: HostIndex, life: u64) {
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
