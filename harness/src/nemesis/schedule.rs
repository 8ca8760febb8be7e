//! The faults of a run as planned: a function of the seed, written to `schedule.json`, replayable.
//!
//! Several nemeses take turns, one fault per onset, in rounds that are shuffled each time. What can only be
//! decided at the moment of injection (who leads) is left open; what is drawn then is drawn from
//! [`PlannedFault::draw`], so that the same schedule on the same roles makes the same faults.

use std::time::Duration;

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::Nemesis;
use crate::clock::whole_milliseconds;
use crate::seed;

/// A schedule longer than this is cut: no run is that long at a sensible interval.
const MAX_FAULTS: usize = 10_000;

/// What `schedule.json` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The seed it was drawn from.
    pub seed: u64,
    /// The nemeses that take turns.
    pub nemeses: Vec<Nemesis>,
    /// From onset to onset.
    pub interval_ms: u64,
    /// How long each fault is held.
    pub hold_ms: u64,
    /// The faults in the order of their onsets.
    pub faults: Vec<PlannedFault>,
}

/// One fault as planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// `F1`, `F2`, ...
    pub id: String,
    /// What kind.
    pub kind: Nemesis,
    /// Its onset, since the start of the workload.
    pub start_ms: u64,
    /// How long it is held.
    pub hold_ms: u64,
    /// Decides what is left to chance at the injection.
    pub draw: u64,
}

/// The calm before the first fault, as a share of the interval: as long as the calm between two.
fn lead_in(interval: Duration) -> Duration {
    interval / 2
}

/// The calm that the last fault needs behind it to show that the ensemble recovered.
fn tail(interval: Duration) -> Duration {
    interval / 4
}

/// The shortest workload with room for one fault.
pub fn shortest(interval: Duration) -> Duration {
    lead_in(interval) + hold(interval) + tail(interval)
}

/// How long a fault is held.
pub fn hold(interval: Duration) -> Duration {
    interval / 2
}

impl Schedule {
    /// Plans the faults of a workload of length `time_limit`.
    pub fn plan(seed: u64, nemeses: &[Nemesis], interval: Duration, time_limit: Duration) -> Self {
        let mut rng = seed::stream(seed, "schedule");
        let mut faults = Vec::new();
        let mut round: Vec<Nemesis> = Vec::new();
        let mut onset = lead_in(interval);
        while !nemeses.is_empty()
            && faults.len() < MAX_FAULTS
            && onset + hold(interval) + tail(interval) <= time_limit
        {
            if round.is_empty() {
                round = nemeses.to_vec();
                round.shuffle(&mut rng);
            }
            let Some(kind) = round.pop() else { break };
            faults.push(PlannedFault {
                id: format!("F{}", faults.len() + 1),
                kind,
                start_ms: whole_milliseconds(onset),
                hold_ms: whole_milliseconds(hold(interval)),
                draw: rng.next_u64(),
            });
            onset += interval;
        }
        Self {
            seed,
            nemeses: nemeses.to_vec(),
            interval_ms: whole_milliseconds(interval),
            hold_ms: whole_milliseconds(hold(interval)),
            faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(4);
    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn the_same_seed_plans_the_same_faults_and_another_does_not() {
        let plan = |seed| Schedule::plan(seed, &Nemesis::ALL, INTERVAL, LIMIT);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7).faults, plan(8).faults);
    }

    #[test]
    fn thirty_seconds_at_the_default_interval_hold_seven_faults() {
        let plan = Schedule::plan(1, &[Nemesis::PartitionLeader], INTERVAL, LIMIT);
        let onsets: Vec<u64> = plan.faults.iter().map(|fault| fault.start_ms).collect();
        assert_eq!(onsets, [2000, 6000, 10_000, 14_000, 18_000, 22_000, 26_000]);
        assert!(plan.faults.iter().all(|fault| fault.hold_ms == 2000));
        assert_eq!(plan.faults[6].id, "F7");
    }

    #[test]
    fn each_nemesis_takes_its_turn_in_every_round() {
        let three = [Nemesis::PartitionLeader, Nemesis::KillOne, Nemesis::PauseLeader];
        let plan = Schedule::plan(3, &three, INTERVAL, Duration::from_secs(100));
        for round in plan.faults.chunks_exact(3) {
            let mut kinds: Vec<Nemesis> = round.iter().map(|fault| fault.kind).collect();
            kinds.sort_unstable();
            assert_eq!(kinds, three);
        }
    }

    #[test]
    fn the_shortest_workload_has_room_for_one_fault_and_nothing_shorter_has() {
        let room = shortest(INTERVAL);
        let count = |limit| Schedule::plan(1, &[Nemesis::KillOne], INTERVAL, limit).faults.len();
        assert_eq!(count(room), 1);
        assert_eq!(count(room - Duration::from_millis(1)), 0);
    }

    #[test]
    fn without_a_nemesis_nothing_is_planned() {
        assert!(Schedule::plan(1, &[], INTERVAL, LIMIT).faults.is_empty());
    }
}
