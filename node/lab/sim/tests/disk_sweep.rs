//! Whichever disk operation of a member fails, and however: nothing durable is lost, nothing acknowledged is
//! lost, and the ensemble goes on.
//!
//! Drawn faults sample the operations of a disk; here none is left out. A small world follows a script that
//! makes a member do one thing (recover, append, begin new files, be truncated, install a tree, take
//! snapshots and purge, change epochs), and is lived through again and again, each time with the next
//! operation of that member's disk failing, until one run passes untouched. After the failure the process
//! ends and starts again, everything that was durable and acknowledged must be there, and the ensemble must
//! go on: the rules of every world are in force.
//!
//! The idea is SQLite's: its tests let every allocation and every write fail in turn.

use std::io::ErrorKind;

use harness_world::dice::Chance;
use lab_sim::{Act, Counters, DiskAppointment, Drawn, Options, Outcome, simulate_appointed};
use node_core::JOURNAL_ENTRIES;
use node_wire::ids::Zxid;

/// Operations of a scripted world at most: one that goes on beyond is a bug of the script.
const MAX_OPERATIONS: u64 = 5_000;

/// By then all members have started and one leads.
const LED_US: u64 = 350_000;

/// How long scripted worlds last before they must go on by themselves.
const SCRIPT_US: u64 = LED_US + 700_000;

/// The member whose disk fails, where the script does not ask for the leader's.
const FOLLOWER: usize = 0;

/// Of equals the largest id leads.
const LEADER: usize = 2;

/// What the member with the failing disk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    /// It ends and recovers, twice.
    Recover,
    /// It logs what the leader proposes.
    Append,
    /// It begins a new log file every few entries.
    Roll,
    /// It leads, proposes what reaches nobody, and is truncated by its successor.
    Truncate,
    /// It was away and takes over a whole tree.
    Install,
    /// It takes snapshots and purges what they make superfluous.
    Snapshot,
    /// It follows one leader after the other.
    Epochs,
}

impl Scenario {
    fn victim(self) -> usize {
        match self {
            Self::Truncate => LEADER,
            Self::Recover | Self::Append | Self::Roll | Self::Install | Self::Snapshot | Self::Epochs => {
                FOLLOWER
            }
        }
    }

    fn acts(self) -> Vec<(u64, Act)> {
        let mut acts = self.acts_once_led();
        for (at, _) in &mut acts {
            *at += LED_US;
        }
        acts
    }

    /// What happens after a leader stands, and when: in microseconds from then.
    fn acts_once_led(self) -> Vec<(u64, Act)> {
        match self {
            Self::Append | Self::Roll | Self::Snapshot => Vec::new(),
            Self::Recover => vec![
                (100_000, Act::Crash(FOLLOWER)),
                (150_000, Act::Start(FOLLOWER)),
                (300_000, Act::Crash(FOLLOWER)),
                (350_000, Act::Start(FOLLOWER)),
            ],
            Self::Truncate => vec![(100_000, Act::Mute(LEADER)), (400_000, Act::Unmute(LEADER))],
            Self::Install => vec![(100_000, Act::Crash(FOLLOWER)), (300_000, Act::Start(FOLLOWER))],
            Self::Epochs => vec![
                (50_000, Act::Crash(LEADER)),
                (250_000, Act::Start(LEADER)),
                (350_000, Act::Crash(1)),
                (500_000, Act::Start(1)),
            ],
        }
    }

    /// Calm options in which only what is appointed happens.
    fn calm(self) -> Drawn {
        let mut drawn = Drawn::of_seed(0);
        drawn.members = 3;
        drawn.observers = 0;
        drawn.peer_timeout_ms = 100;
        drawn.tick_time_ms = 100;
        drawn.init_limit = 5;
        drawn.snap_count = if self == Self::Snapshot { 6 } else { 1_000 };
        drawn.journal_entries = if self == Self::Install { 2 } else { JOURNAL_ENTRIES };
        drawn.last_counter = Zxid::LAST_COUNTER;
        drawn.watchers = 0;
        drawn.local = false;
        drawn.read_only = false;
        drawn.changes = false;
        drawn.operators = 0;
        drawn.siege = false;
        drawn.preallocate_bytes = if self == Self::Append { 2_048 } else { 0 };
        drawn.roll_bytes = if matches!(self, Self::Roll | Self::Snapshot) { 512 } else { 1 << 20 };
        drawn.link_us = (100, 200);
        drawn.jitter_us = 50;
        drawn.fsync_us = (200, 400);
        drawn.tick_jitter_us = 100;
        drawn.weights = [0; _];
        for chance in [
            &mut drawn.spike,
            &mut drawn.stall,
            &mut drawn.told_late,
            &mut drawn.refuse,
            &mut drawn.mid_step,
            &mut drawn.power,
            &mut drawn.codec,
        ] {
            *chance = Chance::NEVER;
        }
        drawn.warmup_us = 0;
        drawn.chaos_us = SCRIPT_US;
        drawn.clients = 3;
        drawn.keys = 1;
        drawn.read_percent = if self == Self::Truncate { 0 } else { 20 };
        drawn.cas_percent = 20;
        drawn.think_us = 20_000;
        drawn.patient_us = 20_000;
        drawn.op_timeout_us = 300_000;
        drawn.session_timeout_ms = 400;
        drawn.visitors = 0;
        drawn
    }
}

/// How the operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskFailure {
    /// With an error.
    Error,
    /// With an error that says that there is no space.
    Full,
    /// Not at all: power is lost at that operation.
    Power,
}

/// Lives through a scenario with the Nth disk operation failing. None when there is no Nth operation.
fn live_with_failure(scenario: Scenario, failure: DiskFailure, nth: u64) -> Option<Outcome> {
    let mut calm = scenario.calm();
    let power = failure == DiskFailure::Power;
    if power {
        calm.power = Chance::ALWAYS;
    }
    let kind = if failure == DiskFailure::Full { ErrorKind::StorageFull } else { ErrorKind::Other };
    let appointment = DiskAppointment { host: scenario.victim(), nth, kind, power };
    simulate_appointed(calm, &scenario.acts(), appointment, Options::default())
}

/// Every operation of a scenario, failing in each way.
fn every_operation_fails(scenario: Scenario) -> Counters {
    let mut counters = Counters::default();
    for failure in [DiskFailure::Error, DiskFailure::Full, DiskFailure::Power] {
        let mut operations = 0;
        for nth in 1.. {
            assert!(nth < MAX_OPERATIONS, "{scenario:?} goes on for ever");
            let Some(outcome) = live_with_failure(scenario, failure, nth) else { break };
            operations += 1;
            counters += outcome.counters;
            assert_eq!(outcome.violation, None, "{scenario:?} {failure:?}: operation {nth}");
        }
        println!("{scenario:?} {failure:?}: {operations} operations");
        assert!(operations > 50, "{scenario:?} {failure:?}: only {operations} operations");
    }
    counters
}

#[test]
fn recovery_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Recover).restarts > 0);
}

#[test]
fn appending_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Append).commits > 0);
}

#[test]
fn rolling_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Roll).commits > 0);
}

#[test]
fn truncation_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Truncate).truncations > 100);
}

#[test]
fn installation_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Install).installs > 100);
}

#[test]
fn snapshots_and_purging_survive_every_failure() {
    assert!(every_operation_fails(Scenario::Snapshot).snapshots > 100);
}

#[test]
fn changes_of_the_epoch_survive_every_failure() {
    assert!(every_operation_fails(Scenario::Epochs).elections > 100);
}
