//! The directions of an ensemble's data: the rule in force in each, and what is counted there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::protocol::{Count, Delayed, Pair};
use super::rules::Rule;

/// One direction of data: its rule and its counters.
#[derive(Debug, Default)]
pub struct Lane {
    /// The rule in force.
    pub rule: watch::Sender<Rule>,
    /// Bytes handed on since the start.
    pub forwarded: AtomicU64,
    /// Bytes that came and were not handed on yet.
    pub waiting: AtomicU64,
    /// Connections whose making waits for the rule.
    pub dials_waiting: AtomicU64,
    /// Connections of members that the rule broke since the start, those included that were just made.
    pub refused: AtomicU64,
    /// How long what members said and was handed on since the last question for it was on its way, in us: the
    /// newest of it.
    delays: Mutex<VecDeque<u64>>,
}

/// So many delays are kept of a direction.
const MOST_DELAYS: usize = 256;

impl Lane {
    /// Under the same rule, with counters of its own: a probe goes as members' words go, and is none.
    pub fn for_probes(&self) -> Arc<Self> {
        Arc::new(Self { rule: self.rule.clone(), ..Self::default() })
    }

    /// The rule in force.
    pub fn rule(&self) -> Rule {
        *self.rule.borrow()
    }

    /// Counts a member's connection that the rule broke.
    pub fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes how long a piece was on its way.
    pub fn note_delay(&self, took: Duration) {
        let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        if delays.len() == MOST_DELAYS {
            delays.pop_front();
        }
        delays.push_back(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    fn count(&self, pair: Pair) -> Count {
        Count {
            pair,
            forwarded: self.forwarded.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            dials_waiting: self.dials_waiting.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

/// Every lane of the ensemble.
#[derive(Clone, Debug, Default)]
pub struct Board {
    lanes: BTreeMap<Pair, Arc<Lane>>,
    control: Arc<Lane>,
}

impl Board {
    /// A lane for each of these ordered pairs and for its way back.
    pub fn new(pairs: impl IntoIterator<Item = Pair>) -> Self {
        let mut lanes = BTreeMap::new();
        for pair in pairs {
            lanes.entry(pair).or_insert_with(Arc::default);
            lanes.entry(pair.back()).or_insert_with(Arc::default);
        }
        Self { lanes, control: Arc::default() }
    }

    /// The lane of a pair.
    pub fn lane(&self, pair: Pair) -> Option<Arc<Lane>> {
        self.lanes.get(&pair).cloned()
    }

    /// The lane that no rule ever touches: the control beside the probes.
    pub fn control(&self) -> Arc<Lane> {
        Arc::clone(&self.control)
    }

    /// Every pair.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.lanes.keys().copied()
    }

    /// Puts rules in force. False when a pair is not of this ensemble; then none of them is.
    pub fn set(&self, rules: &[(Pair, Rule)]) -> bool {
        if rules.iter().any(|(pair, _)| !self.lanes.contains_key(pair)) {
            return false;
        }
        for (pair, rule) in rules {
            self.lanes[pair].rule.send_replace(*rule);
        }
        true
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        for lane in self.lanes.values() {
            lane.rule.send_if_modified(|rule| std::mem::take(rule) != Rule::default());
        }
    }

    /// How long the newest of what members said since the last question was on its way, and by how much the
    /// rules hold each direction back.
    pub fn delays(&self) -> Vec<Delayed> {
        let taken =
            |lane: &Lane| std::mem::take(&mut *lane.delays.lock().unwrap_or_else(PoisonError::into_inner));
        let of = |(pair, lane): (&Pair, &Arc<Lane>)| {
            let Rule { delay_ms, jitter_ms, .. } = lane.rule();
            let [latency_us, jitter_us] = [delay_ms, jitter_ms].map(|ms| ms.saturating_mul(1_000));
            Delayed { pair: *pair, took_us: taken(lane).into(), latency_us, jitter_us }
        };
        self.lanes.iter().map(of).collect()
    }

    /// The counters of every lane.
    pub fn counts(&self) -> Vec<Count> {
        self.lanes.iter().map(|(pair, lane)| lane.count(*pair)).collect()
    }
}
