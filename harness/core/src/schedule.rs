//! Plans the faults of a run ([`runs::schedule`]): a function of the seed.
//!
//! Several nemeses take turns, one fault per onset, in rounds that are shuffled each time.
//!
//! With overlap every nemesis keeps a rhythm of its own: its onsets are an interval apart, and those of the
//! next nemesis a *step* later, where k nemeses make k + 1 steps of half an interval. So all of them act at
//! once for two steps at least. They begin one by one in an order drawn for the run, and end one by one in an
//! order drawn for each round, a step apart again (FoundationDB's "swizzle"): what was broken first is healed
//! first, or last.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::fault::Nemesis;
use crate::seed;

/// A length as a small counter.
fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A duration in whole milliseconds.
fn whole_milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A schedule longer than this is cut: no run is that long at a sensible interval.
const MAX_FAULTS: usize = 10_000;

/// The schedule of a run, with kinds from the catalogue.
pub type Schedule = runs::schedule::Schedule<Nemesis>;
/// One of its faults.
pub type PlannedFault = runs::schedule::PlannedFault<Nemesis>;

/// What a schedule is made from.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The seed.
    pub seed: u64,
    /// The nemeses.
    pub nemeses: &'a [Nemesis],
    /// From onset to onset.
    pub interval: Duration,
    /// Whether they act at once.
    pub overlap: bool,
}

/// The calm before the first fault, as a share of the interval: as long as the calm between two.
fn lead_in(interval: Duration) -> Duration {
    interval / 2
}

/// The calm that the last fault needs behind it to show that the ensemble recovered.
fn tail(interval: Duration) -> Duration {
    interval / 4
}

/// How long a fault is held.
pub fn hold(interval: Duration) -> Duration {
    interval / 2
}

/// Between two onsets, and between two ends, of nemeses that act at once.
pub fn step(interval: Duration, nemeses: usize) -> Duration {
    hold(interval) / (narrow(nemeses) + 1)
}

impl Plan<'_> {
    /// The shortest workload with room for one fault; with overlap, for one of each.
    pub fn shortest(&self) -> Duration {
        lead_in(self.interval) + self.round() + tail(self.interval)
    }

    /// From the first onset to the last end of a round.
    fn round(&self) -> Duration {
        let others = if self.overlap { narrow(self.nemeses.len()).saturating_sub(1) } else { 0 };
        hold(self.interval) + step(self.interval, self.nemeses.len()) * others
    }

    /// The shortest workload in which every nemesis has a fault.
    pub fn room_for_all(&self) -> Duration {
        let others = if self.overlap { 0 } else { narrow(self.nemeses.len()).saturating_sub(1) };
        self.shortest() + self.interval * others
    }

    /// Plans the faults of a workload of length `time_limit`.
    pub fn faults(&self, time_limit: Duration) -> Schedule {
        let mut planner = Planner::new(self.seed);
        let mut onset = lead_in(self.interval);
        while !self.nemeses.is_empty()
            && planner.faults.len() < MAX_FAULTS
            && onset + self.round() + tail(self.interval) <= time_limit
        {
            if self.overlap {
                planner.all_at_once(self, onset);
            } else {
                planner.next_in_turn(self, onset);
            }
            onset += self.interval;
        }
        Schedule {
            seed: self.seed,
            nemeses: self.nemeses.to_vec(),
            interval_ms: whole_milliseconds(self.interval),
            hold_ms: whole_milliseconds(hold(self.interval)),
            overlap: self.overlap,
            faults: planner.faults,
        }
    }
}

struct Planner {
    rng: ChaCha8Rng,
    /// Its own stream, so that what takes turns does not change what is drawn for others.
    first_turns: ChaCha8Rng,
    turns: BTreeMap<Nemesis, u64>,
    /// Those of this round that are still to come, or with overlap the order of onsets.
    order: Vec<Nemesis>,
    faults: Vec<PlannedFault>,
}

impl Planner {
    fn new(seed: u64) -> Self {
        Self {
            rng: seed::stream(seed, "schedule"),
            first_turns: seed::stream(seed, "turns"),
            turns: BTreeMap::new(),
            order: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn next_in_turn(&mut self, plan: &Plan<'_>, onset: Duration) {
        if self.order.is_empty() {
            self.order = plan.nemeses.to_vec();
            self.order.shuffle(&mut self.rng);
        }
        if let Some(kind) = self.order.pop() {
            self.add(kind, onset, onset + hold(plan.interval));
        }
    }

    fn all_at_once(&mut self, plan: &Plan<'_>, first: Duration) {
        if self.order.is_empty() {
            self.order = plan.nemeses.to_vec();
            self.order.shuffle(&mut self.rng);
        }
        let step = step(plan.interval, plan.nemeses.len());
        let mut ends: Vec<u32> = (0..narrow(plan.nemeses.len())).collect();
        ends.shuffle(&mut self.rng);
        for ((kind, begins), ends) in self.order.clone().into_iter().zip(0..).zip(ends) {
            self.add(kind, first + step * begins, first + hold(plan.interval) + step * ends);
        }
    }

    fn add(&mut self, kind: Nemesis, from: Duration, to: Duration) {
        let first_turns = &mut self.first_turns;
        let turn = self.turns.entry(kind).or_insert_with(|| first_turns.next_u64() % 2);
        let start_ms = whole_milliseconds(from);
        self.faults.push(PlannedFault {
            id: format!("F{}", self.faults.len() + 1),
            kind,
            start_ms,
            hold_ms: whole_milliseconds(to) - start_ms,
            draw: self.rng.next_u64(),
            turn: *turn,
        });
        *turn += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(4);
    const LIMIT: Duration = Duration::from_secs(30);

    fn plan(seed: u64, nemeses: &[Nemesis], overlap: bool) -> Plan<'_> {
        Plan { seed, nemeses, interval: INTERVAL, overlap }
    }

    #[test]
    fn the_same_seed_plans_the_same_faults_and_another_does_not() {
        for overlap in [false, true] {
            let faults = |seed| plan(seed, Nemesis::ALL, overlap).faults(LIMIT);
            assert_eq!(faults(7), faults(7));
            assert_ne!(faults(7).faults, faults(8).faults);
        }
    }

    #[test]
    fn thirty_seconds_at_the_default_interval_hold_seven_faults() {
        let plan = plan(1, &[Nemesis::PARTITION_LEADER], false).faults(LIMIT);
        let onsets: Vec<u64> = plan.faults.iter().map(|fault| fault.start_ms).collect();
        assert_eq!(onsets, [2000, 6000, 10_000, 14_000, 18_000, 22_000, 26_000]);
        assert!(plan.faults.iter().all(|fault| fault.hold_ms == 2000));
        assert_eq!(plan.faults[6].id, "F7");
    }

    #[test]
    fn each_nemesis_takes_its_turn_in_every_round() {
        let three = [Nemesis::PARTITION_LEADER, Nemesis::KILL_ONE, Nemesis::PAUSE_LEADER];
        let plan = plan(3, &three, false).faults(Duration::from_secs(100));
        for round in plan.faults.chunks_exact(3) {
            let mut kinds: Vec<Nemesis> = round.iter().map(|fault| fault.kind).collect();
            kinds.sort_unstable();
            assert_eq!(kinds, three);
        }
    }

    #[test]
    fn what_comes_in_turn_comes_in_turn_from_a_drawn_start() {
        let first = |seed| {
            let plan = plan(seed, &[Nemesis::PARTITION_ONEWAY, Nemesis::KILL_ONE], false).faults(LIMIT);
            let turns: Vec<u64> = plan
                .faults
                .iter()
                .filter(|fault| fault.kind == Nemesis::PARTITION_ONEWAY)
                .map(|fault| fault.turn)
                .collect();
            assert!(turns.len() > 2 && turns.windows(2).all(|pair| pair[1] == pair[0] + 1), "{turns:?}");
            turns[0]
        };
        let starts: std::collections::BTreeSet<u64> = (0..20).map(first).collect();
        assert_eq!(starts, [0, 1].into());
    }

    #[test]
    fn with_overlap_all_nemeses_of_a_round_are_at_work_at_once_and_each_keeps_its_rhythm() {
        let three = [Nemesis::PARTITION_LEADER, Nemesis::KILL_ONE, Nemesis::CLOCK_BUMP];
        let mut first_is_healed_first = 0;
        for seed in 0..50 {
            let schedule = plan(seed, &three, true).faults(LIMIT);
            assert_eq!(schedule.faults.len(), 21);
            let end = |fault: &PlannedFault| fault.start_ms + fault.hold_ms;
            for round in schedule.faults.chunks_exact(3) {
                let last_onset = round.iter().map(|fault| fault.start_ms).max().expect("three");
                let first_end = round.iter().map(end).min().expect("three");
                assert_eq!(first_end - last_onset, 1000, "two steps of half a second");
                first_is_healed_first += u32::from(end(&round[0]) == first_end);
            }
            assert!(schedule.faults.windows(2).all(|pair| pair[0].start_ms <= pair[1].start_ms));
            for lane in schedule.lanes() {
                assert_eq!(lane.len(), 7);
                assert!(lane.windows(2).all(|pair| pair[1].start_ms - pair[0].start_ms == 4000));
                assert!(lane.windows(2).all(|pair| end(&pair[0]) < pair[1].start_ms));
            }
        }
        assert!(
            (60..140).contains(&first_is_healed_first),
            "{first_is_healed_first} of 300, a third expected"
        );
    }

    #[test]
    fn without_overlap_there_is_one_lane() {
        let schedule = plan(1, Nemesis::ALL, false).faults(LIMIT);
        assert_eq!(schedule.lanes(), vec![schedule.faults.clone()]);
    }

    #[test]
    fn a_schedule_of_an_older_build_is_read() {
        let old = r#"{"seed":1,"nemeses":["kill-one"],"interval_ms":4000,"hold_ms":2000,
            "faults":[{"id":"F1","kind":"kill-one","start_ms":2000,"hold_ms":2000,"draw":5}]}"#;
        let schedule: runs::schedule::Schedule = serde_json::from_str(old).expect("read");
        assert!(!schedule.overlap);
        assert_eq!(schedule.faults[0].turn, 0);
    }

    #[test]
    fn the_shortest_workload_has_room_for_one_round_and_nothing_shorter_has() {
        let two = [Nemesis::KILL_ONE, Nemesis::CLOCK_BUMP];
        for (plan, faults) in [(plan(1, &two, false), 1), (plan(1, &two, true), 2)] {
            let count = |limit| plan.faults(limit).faults.len();
            assert_eq!(count(plan.shortest()), faults);
            assert_eq!(count(plan.shortest() - Duration::from_millis(1)), 0);
        }
    }

    #[test]
    fn nemeses_without_a_turn_are_known_and_so_is_how_long_all_would_take() {
        let twelve = &Nemesis::ALL[..12];
        for overlap in [false, true] {
            let plan = plan(3, twelve, overlap);
            let (tried, not) = plan.faults(LIMIT).tried_and_not();
            assert_eq!((tried.len(), not.len()), if overlap { (12, 0) } else { (7, 5) });
            assert!(tried.is_sorted() && not.is_sorted(), "in the order in which they were named");
            let room = plan.room_for_all();
            assert!(plan.faults(room).tried_and_not().1.is_empty());
            let short = plan.faults(room - Duration::from_millis(1)).tried_and_not().1;
            assert!(!short.is_empty(), "{room:?} is the shortest");
        }
    }

    #[test]
    fn without_a_nemesis_nothing_is_planned() {
        assert!(plan(1, &[], false).faults(LIMIT).faults.is_empty());
    }
}
