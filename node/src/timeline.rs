//! How long elections and outages lasted, and how many transactions were proposed and committed, as this member
//! saw it.

use std::time::{Duration, Instant};

use node_core::io::{Event, SyncKind};
use node_wire::ids::{ServerId, Zxid};
use node_wire::txn::Entry;

use crate::metrics::Metrics;

/// What is remembered between events.
#[derive(Debug)]
pub(crate) struct Timeline {
    me: ServerId,
    looking_since: Option<Instant>,
    unavailable_since: Option<Instant>,
    leads: bool,
    leads_since: Option<Instant>,
    /// What was counted as committed.
    committed: Zxid,
}

impl Timeline {
    pub(crate) fn new(me: ServerId, applied: Zxid) -> Self {
        Self {
            me,
            looking_since: None,
            unavailable_since: None,
            leads: false,
            leads_since: None,
            committed: applied,
        }
    }

    /// How long the member has led an established epoch, if it does.
    pub(crate) fn leads_for(&self) -> Option<Duration> {
        self.leads_since.map(|since| since.elapsed())
    }

    pub(crate) fn appended(&self, entry: &Entry, metrics: &Metrics) {
        if self.leads {
            metrics.proposal_count.one();
            metrics.proposals.note(entry.bytes.len());
        } else {
            metrics.learner_proposal_received_count.one();
        }
    }

    /// The tree stands here now.
    pub(crate) fn applied(&mut self, applied: Zxid, metrics: &Metrics) {
        // Within an epoch the counter counts by one; of an older one nothing is missed but its very end.
        let before = if applied.epoch() == self.committed.epoch() { self.committed.counter() } else { 0 };
        metrics.commit_count.add(u64::from(applied.counter().saturating_sub(before)));
        self.committed = self.committed.max(applied);
    }

    pub(crate) fn told(&mut self, event: &Event, applied: Zxid, metrics: &Metrics) {
        let now = Instant::now();
        self.applied(applied, metrics);
        match event {
            Event::Looking { .. } => {
                metrics.looking_count.one();
                self.leads = false;
                self.leads_since = None;
                self.looking_since = Some(now);
                self.unavailable_since.get_or_insert(now);
            }
            Event::Elected { leader, .. } => {
                self.leads = *leader == self.me;
                if let Some(since) = self.looking_since.take() {
                    metrics.election_time.record_time(now.saturating_duration_since(since));
                }
            }
            Event::Established { leader, .. } => {
                self.leads = *leader == self.me;
                self.leads_since = self.leads.then_some(now);
                if let Some(since) = self.unavailable_since.take() {
                    let outage = now.saturating_duration_since(since);
                    metrics.unavailable_time.record_time(outage);
                    if self.leads {
                        metrics.leader_unavailable_time.record_time(outage);
                    }
                }
            }
            Event::Synchronizing { how, .. } => match how {
                SyncKind::Diff | SyncKind::Trunc => metrics.diff_count.one(),
                SyncKind::Snap => metrics.snap_count.one(),
            },
            Event::ReadOnly => {}
            Event::Diverged { .. } => metrics.digest_mismatches_count.one(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_wire::ids::{Epoch, Round};

    #[test]
    fn commits_are_counted_by_the_distance_of_zxids() {
        let metrics = Metrics::new();
        let mut timeline = Timeline::new(ServerId(1), Zxid::new(Epoch(1), 5));
        for (epoch, counter, total) in [(1, 5, 0), (1, 8, 3), (2, 2, 5), (2, 2, 5), (2, 12, 15)] {
            timeline.applied(Zxid::new(Epoch(epoch), counter), &metrics);
            assert_eq!(metrics.commit_count.get(), total);
        }
    }

    #[test]
    fn an_election_ends_when_the_vote_is_decided_and_an_outage_when_the_epoch_stands() {
        let metrics = Metrics::new();
        let mut timeline = Timeline::new(ServerId(1), Zxid::ZERO);
        let mut tell = |event| timeline.told(&event, Zxid::ZERO, &metrics);
        tell(Event::Looking { round: Round(1), left: None, reason: String::new() });
        tell(Event::Elected { leader: ServerId(1), round: Round(1) });
        assert_eq!((metrics.election_time.values().count, metrics.unavailable_time.values().count), (1, 0));
        tell(Event::Looking { round: Round(2), left: None, reason: String::new() });
        tell(Event::Elected { leader: ServerId(1), round: Round(2) });
        tell(Event::Established { leader: ServerId(1), epoch: Epoch(1) });
        assert_eq!((metrics.looking_count.get(), metrics.election_time.values().count), (2, 2));
        assert_eq!(metrics.leader_unavailable_time.values().count, 1);
        assert!(timeline.leads_for().is_some());
    }
}
