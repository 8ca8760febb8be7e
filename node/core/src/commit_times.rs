//! How long a leader's proposals waited for their commit: kept by whoever drives a leader and wants to tell
//! it.
//!
//! The core itself knows no such thing: its driver sees a proposal when the leader gives it to the store, and
//! a commit when the leader has applied it. Both drivers, the process and the simulator, count through here,
//! so that they mean the same. Lengths are put into buckets of three per cent, so that a second of them is a
//! short line whatever the load.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use node_wire::ids::Zxid;

/// How often what was counted is taken.
pub const TELL_EVERY: Duration = Duration::from_secs(1);

/// Proposals that wait; a leader without a quorum takes in no more than its clients may have outstanding, and
/// what is beyond this is not counted.
const MAX_WAITING: usize = 65_536;

/// Lengths below this many microseconds have a bucket each; of longer ones so many highest bits are kept.
const EXACT_US: u64 = 64;

/// Lengths in microseconds, each with how many were that long, ascending.
pub type Counted = Vec<(u64, u64)>;

/// What is under way, and what was counted since it was last told.
#[derive(Clone, Debug, Default)]
pub struct CommitTimes {
    waiting: VecDeque<(Zxid, Duration)>,
    counted: BTreeMap<u64, u64>,
    told: Duration,
}

impl CommitTimes {
    /// A leader proposes a transaction at this moment.
    pub fn proposed(&mut self, zxid: Zxid, now: Duration) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((zxid, now));
        }
    }

    /// Whether a proposal waits for its commit.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The leader has committed everything up to here.
    pub fn committed(&mut self, applied: Zxid, now: Duration) {
        while let Some((_, since)) = self.waiting.pop_front_if(|(zxid, _)| *zxid <= applied) {
            let us = u64::try_from(now.saturating_sub(since).as_micros()).unwrap_or(u64::MAX);
            *self.counted.entry(bucket(us)).or_default() += 1;
        }
    }

    /// What was counted, when it is time to tell it.
    pub fn due(&mut self, now: Duration) -> Option<Counted> {
        (now.saturating_sub(self.told) >= TELL_EVERY).then(|| self.take(now)).flatten()
    }

    /// What was counted, and an end to waiting: it leads no more, and what becomes of its proposals is for
    /// others to say.
    pub fn over(&mut self, now: Duration) -> Option<Counted> {
        self.waiting.clear();
        self.take(now)
    }

    fn take(&mut self, now: Duration) -> Option<Counted> {
        self.told = now;
        let counted = std::mem::take(&mut self.counted);
        (!counted.is_empty()).then(|| counted.into_iter().collect())
    }
}

/// The greatest length in the bucket of this one.
fn bucket(us: u64) -> u64 {
    let shift = (u64::BITS - us.leading_zeros()).saturating_sub(EXACT_US.ilog2());
    us | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_commit_answers_every_proposal_up_to_it_and_none_beyond() {
        let mut times = CommitTimes::default();
        times.proposed(Zxid(1), MS);
        times.proposed(Zxid(2), 2 * MS);
        times.proposed(Zxid(3), 3 * MS);
        times.committed(Zxid(2), 4 * MS);
        assert!(times.is_waiting());
        assert_eq!(times.due(5 * MS), None, "not each time");
        assert_eq!(times.due(TELL_EVERY), Some(vec![(bucket(2000), 1), (bucket(3000), 1)]));
        assert_eq!(times.due(3 * TELL_EVERY), None, "nothing is told twice");
    }

    #[test]
    fn what_waits_when_its_leader_leads_no_more_is_never_counted() {
        let mut times = CommitTimes::default();
        times.proposed(Zxid(1), MS);
        times.committed(Zxid(1), 2 * MS);
        times.proposed(Zxid(2), 2 * MS);
        assert_eq!(times.over(3 * MS), Some(vec![(bucket(1000), 1)]));
        times.committed(Zxid(9), 9 * MS);
        assert_eq!(times.over(10 * MS), None);
    }

    #[test]
    fn a_bucket_is_never_wider_than_three_per_cent_and_never_below_what_was_measured() {
        assert_eq!([0, 1, 63, 64, 65, 127, 128].map(bucket), [0, 1, 63, 65, 65, 127, 131]);
        for us in [100, 999, 12_345, 7_777_777, u64::MAX] {
            let upper = bucket(us);
            assert!(upper >= us && upper - us <= us / 32, "{us}: {upper}");
        }
    }

    #[test]
    fn a_leader_without_a_quorum_costs_a_bounded_memory() {
        let mut times = CommitTimes::default();
        for zxid in 0..2 * u64::try_from(MAX_WAITING).expect("small") {
            times.proposed(Zxid(zxid), MS);
        }
        assert_eq!(times.waiting.len(), MAX_WAITING);
    }
}
