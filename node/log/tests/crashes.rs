//! Crashes at every operation of the disk, in every sequence that a random member comes up with.
//!
//! A sequence of operations on the log is run again and again, each time losing power one disk operation
//! later and keeping none, some or all of what was not synchronized. Whatever is then recovered must be a
//! history that the member had at that moment: with everything that was reported durable, and with nothing
//! that was reported to be cut off or replaced.

mod support;

use std::collections::BTreeSet;

use node_log::{Log, LogError, MemStorage, Recovered, write_snapshot};
use node_wire::ids::{Epoch, Zxid};
use proptest::prelude::*;
use support::{EMPTY, FAILURE, entry, extend, image, open, recovered_history, zxid};

/// Beyond this many disk operations a sequence is not a test of ours any more.
const MAX_DISK_OPERATIONS: u64 = 5000;

#[derive(Clone, Debug)]
enum Op {
    Append { bytes: usize },
    Flush,
    Truncate { back: usize },
    Snapshot { purge: bool },
    Install { ahead: u32 },
    AcceptEpoch,
    EnterEpoch,
    Roll,
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..200usize).prop_map(|bytes| Op::Append { bytes }),
        4 => Just(Op::Flush),
        3 => (0..6usize).prop_map(|back| Op::Truncate { back }),
        2 => any::<bool>().prop_map(|purge| Op::Snapshot { purge }),
        1 => (0..4u32).prop_map(|ahead| Op::Install { ahead }),
        1 => Just(Op::AcceptEpoch),
        1 => Just(Op::EnterEpoch),
        2 => Just(Op::Roll),
        1 => Just(Op::Reopen),
    ]
}

/// What the member knows about its disk.
#[derive(Clone, Debug)]
struct Model {
    /// Every state from the oldest that can be cut back to: the last zxid and the history.
    states: Vec<(Zxid, u64)>,
    /// The index of the state that is durable at least.
    durable: usize,
    /// A tree that is being installed.
    installing: Option<u64>,
    accepted: BTreeSet<Epoch>,
    current: BTreeSet<Epoch>,
    epoch: u32,
    /// The zxids of the snapshots since the last purge or installation.
    snapshots: BTreeSet<Zxid>,
    /// Makes every entry and every tree another one.
    serial: u64,
}

impl Model {
    fn new() -> Self {
        let zero = BTreeSet::from([Epoch::ZERO]);
        Self {
            states: vec![(Zxid::ZERO, EMPTY)],
            durable: 0,
            installing: None,
            accepted: zero.clone(),
            current: zero,
            epoch: 0,
            snapshots: BTreeSet::new(),
            serial: 0,
        }
    }

    fn last(&self) -> (Zxid, u64) {
        *self.states.last().expect("never empty")
    }

    fn settle(&mut self) {
        self.durable = self.states.len() - 1;
    }

    /// Whether a disk may hold this after a crash.
    fn allows(&self, recovered: &Recovered) -> Result<(), TestCaseError> {
        let history = recovered_history(recovered);
        let mut allowed = self.states[self.durable..].iter().map(|(_, history)| *history);
        let found = allowed.any(|had| had == history) || self.installing == Some(history);
        prop_assert!(found, "recovered {:?}\nbut the member had {self:?}", support::zxids(recovered));
        prop_assert!(self.accepted.contains(&recovered.accepted_epoch), "{:?}", self.accepted);
        prop_assert!(self.current.contains(&recovered.current_epoch), "{:?}", self.current);
        Ok(())
    }

    /// Carries an operation out. The model is changed first to what a crash on the way may leave, then to
    /// what is certain.
    fn run(&mut self, log: &mut Log<MemStorage>, op: &Op) -> Result<(), LogError> {
        if self.epoch == 0 {
            self.accept_epoch(log)?;
        }
        self.serial += 1;
        match op {
            Op::Append { bytes } => {
                let (last, history) = self.last();
                let next = if last.epoch() == Epoch(self.epoch) {
                    last.next().expect("few entries")
                } else {
                    zxid(self.epoch, 1)
                };
                let mut data = vec![0x42; *bytes];
                data.extend(self.serial.to_be_bytes());
                let entry = entry(next, &data);
                self.states.push((next, extend(history, &entry)));
                log.append(&entry)
            }
            Op::Flush => {
                log.flush_and_sync()?;
                self.settle();
                Ok(())
            }
            Op::Roll => {
                log.roll()?;
                self.settle();
                Ok(())
            }
            Op::Truncate { back } => self.truncate(log, *back),
            Op::Snapshot { purge } => self.snapshot(log, *purge),
            Op::Install { ahead } => {
                let (last, _) = self.last();
                let to = zxid(self.epoch, last.counter().saturating_sub(2) + ahead);
                let history = u64::MAX - self.serial;
                self.installing = Some(history);
                log.install(&image(to, history))?;
                self.installing = None;
                self.states = vec![(to, history)];
                self.settle();
                self.snapshots = BTreeSet::from([to]);
                Ok(())
            }
            Op::AcceptEpoch => self.accept_epoch(log),
            Op::EnterEpoch => self.enter_epoch(log),
            Op::Reopen => Ok(()),
        }
    }

    fn truncate(&mut self, log: &mut Log<MemStorage>, back: usize) -> Result<(), LogError> {
        log.flush_and_sync()?;
        let keep = self.states.len().saturating_sub(back).max(1);
        let to = self.states[keep - 1].0;
        self.durable = keep - 1;
        log.truncate(to)?;
        self.states.truncate(keep);
        self.snapshots.retain(|snapshot| *snapshot <= to);
        Ok(())
    }

    fn snapshot(&mut self, log: &mut Log<MemStorage>, purge: bool) -> Result<(), LogError> {
        log.flush_and_sync()?;
        self.settle();
        let (last, history) = self.last();
        write_snapshot(log.storage(), &image(last, history))?;
        self.snapshots.insert(last);
        log.roll()?;
        if purge {
            log.purge(2)?;
            while self.snapshots.len() > 2 {
                self.snapshots.pop_first();
            }
            if let Some(oldest) = self.snapshots.first().filter(|_| self.snapshots.len() == 2) {
                let forgotten = self.states.iter().take_while(|(zxid, _)| zxid < oldest).count();
                self.states.drain(..forgotten);
                self.settle();
            }
        }
        Ok(())
    }

    fn accept_epoch(&mut self, log: &mut Log<MemStorage>) -> Result<(), LogError> {
        self.epoch += 1;
        let epoch = Epoch(self.epoch);
        self.accepted.insert(epoch);
        log.set_accepted_epoch(epoch)?;
        self.accepted = BTreeSet::from([epoch]);
        self.settle();
        Ok(())
    }

    fn enter_epoch(&mut self, log: &mut Log<MemStorage>) -> Result<(), LogError> {
        let epoch = Epoch(self.epoch);
        self.current.insert(epoch);
        log.set_current_epoch(epoch)?;
        self.current = BTreeSet::from([epoch]);
        self.settle();
        Ok(())
    }
}

/// How much of the unsynchronized reaches the disk.
#[derive(Clone, Copy, Debug)]
enum Keep {
    Nothing,
    Everything,
    Half,
    Drawn(u64),
    /// The process is killed, and power lost only after the log was opened again.
    Killed,
}

fn lose_power(storage: &MemStorage, keep: Keep) {
    let mut state = match keep {
        Keep::Drawn(seed) => seed,
        _ => 0,
    };
    storage.crash(|unsynced| match keep {
        Keep::Nothing | Keep::Killed => 0,
        Keep::Everything => unsynced,
        Keep::Half => unsynced / 2,
        Keep::Drawn(_) => {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("31 bits") % (unsynced + 1)
        }
    });
}

/// Runs the operations until one fails. Answers with the model at that moment.
fn run(storage: &MemStorage, ops: &[Op]) -> Result<(Model, Result<(), LogError>), TestCaseError> {
    let mut model = Model::new();
    let mut log = match open(storage) {
        Ok((log, recovered)) => {
            model.allows(&recovered)?;
            log
        }
        Err(error) => return Ok((model, Err(error))),
    };
    for op in ops {
        if matches!(op, Op::Reopen) {
            // What was only appended is forgotten with the process.
            model.states.truncate(model.durable + 1);
            drop(log);
            log = match open(storage) {
                Ok((log, recovered)) => {
                    model.allows(&recovered)?;
                    log
                }
                Err(error) => return Ok((model, Err(error))),
            };
        } else if let Err(error) = model.run(&mut log, op) {
            return Ok((model, Err(error)));
        }
    }
    Ok((model, Ok(())))
}

/// Opens what a crash left, sees that it is a history the member had, and that it stays and can go on.
fn check_recovery(storage: &MemStorage, model: &Model, keep: Keep) -> Result<(), TestCaseError> {
    if matches!(keep, Keep::Killed) {
        storage.heal();
    } else {
        lose_power(storage, keep);
    }
    let opened = open(storage);
    prop_assert!(opened.is_ok(), "{:?} after {model:?}", opened.err());
    let (log, recovered) = opened.expect("just looked");
    model.allows(&recovered)?;
    drop(log);

    // What was recovered once is durable.
    storage.crash(|_| 0);
    let (mut log, again) = open(storage).expect("it was opened before");
    prop_assert_eq!(recovered_history(&again), recovered_history(&recovered));
    prop_assert_eq!(again.repairs, node_log::Repairs::default());

    // And the log goes on behind it.
    let epoch = Epoch(model.epoch + 1);
    log.set_accepted_epoch(epoch).expect("a sound disk");
    let next = entry(zxid(epoch.0, 1), b"next");
    log.append(&next).expect("a later entry");
    log.flush_and_sync().expect("a sound disk");
    let expected = extend(recovered_history(&recovered), &next);
    storage.crash(|_| 0);
    let (_, last) = open(storage).expect("a sound disk");
    prop_assert_eq!(recovered_history(&last), expected);
    Ok(())
}

/// Fails a second time, at every disk operation of the recovery, and loses power then.
fn check_interrupted_recovery(failed: &MemStorage, model: &Model) -> Result<(), TestCaseError> {
    for operation in 1..MAX_DISK_OPERATIONS {
        let storage = failed.fork();
        storage.fail_from_nth(operation, FAILURE);
        if open(&storage).is_ok() {
            return Ok(());
        }
        check_recovery(&storage, model, Keep::Drawn(operation))?;
    }
    Err(TestCaseError::fail("opening never ended"))
}

/// Runs a sequence to its end, losing power one disk operation later each time.
fn sweep(ops: &[Op], seed: u64) -> Result<(), TestCaseError> {
    for operation in 1..MAX_DISK_OPERATIONS {
        let drawn = Keep::Drawn(seed ^ operation);
        let mut finished = false;
        for keep in [Keep::Nothing, Keep::Everything, Keep::Half, drawn, Keep::Killed] {
            let storage = MemStorage::new();
            storage.fail_from_nth(operation, FAILURE);
            let (model, outcome) = run(&storage, ops)?;
            finished = match outcome {
                Ok(()) => true,
                Err(LogError::Io { .. }) => false,
                Err(error) => return Err(TestCaseError::fail(format!("{error} in {model:?}"))),
            };
            match keep {
                Keep::Half => {
                    lose_power(&storage, keep);
                    check_interrupted_recovery(&storage, &model)?;
                }
                Keep::Killed => {
                    check_interrupted_recovery(&storage, &model)?;
                    check_recovery(&storage, &model, keep)?;
                }
                Keep::Nothing | Keep::Everything | Keep::Drawn(_) => {
                    check_recovery(&storage, &model, keep)?;
                }
            }
        }
        if finished {
            return Ok(());
        }
    }
    Err(TestCaseError::fail("the sequence never ended"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_crash_at_any_disk_operation_leaves_a_history_that_the_member_had(
        ops in prop::collection::vec(op(), 1..25),
        seed in any::<u64>(),
    ) {
        sweep(&ops, seed)?;
    }
}
