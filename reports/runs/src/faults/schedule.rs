//! `schedule.json`: the faults of a run as planned, and replayable.
//!
//! What can only be decided at the moment of injection (who leads) is left open; what is drawn then is drawn
//! from [`PlannedFault::draw`], so that the same schedule on the same roles makes the same faults. A kind of
//! fault is an identifier here (`K` is text where nobody asks the catalogue), described beside it in
//! `run.json`.

use serde::{Deserialize, Serialize};

/// What `schedule.json` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule<K = String> {
    /// The seed it was drawn from.
    pub seed: u64,
    /// The nemeses that take turns.
    pub nemeses: Vec<K>,
    /// From onset to onset.
    pub interval_ms: u64,
    /// How long each fault is held; with overlap, the least after which the first of a round is healed.
    pub hold_ms: u64,
    /// Whether nemeses act at once.
    #[serde(default)]
    pub overlap: bool,
    /// The faults in the order of their onsets.
    pub faults: Vec<PlannedFault<K>>,
}

/// One fault as planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault<K = String> {
    /// `F1`, `F2`, ...
    pub id: String,
    /// What kind.
    pub kind: K,
    /// Its onset, since the start of the workload.
    pub start_ms: u64,
    /// How long it is held.
    pub hold_ms: u64,
    /// Decides what is left to chance at the injection.
    pub draw: u64,
    /// Counts the faults of this kind from a drawn start: what is to come in turn goes by its parity.
    #[serde(default)]
    pub turn: u64,
}

impl<K> Schedule<K> {
    /// The same with every kind as something else.
    ///
    /// # Errors
    /// What is said of the first kind that can't be.
    pub fn try_map<L, E>(self, mut kind: impl FnMut(K) -> Result<L, E>) -> Result<Schedule<L>, E> {
        let Self { seed, nemeses, interval_ms, hold_ms, overlap, faults } = self;
        let nemeses = nemeses.into_iter().map(&mut kind).collect::<Result<_, E>>()?;
        let mut mapped = Vec::with_capacity(faults.len());
        for PlannedFault { id, kind: of, start_ms, hold_ms, draw, turn } in faults {
            mapped.push(PlannedFault { id, kind: kind(of)?, start_ms, hold_ms, draw, turn });
        }
        Ok(Schedule { seed, nemeses, interval_ms, hold_ms, overlap, faults: mapped })
    }
}

impl<K: Clone + Ord> Schedule<K> {
    /// The kinds of its faults, and those that were asked for and found no room.
    pub fn kinds(&self) -> Vec<K> {
        let mut kinds = self.nemeses.clone();
        kinds.extend(self.faults.iter().map(|fault| fault.kind.clone()));
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The nemeses of which it has faults, in their order, and those of which it has none: what is left to be
    /// tried another time.
    pub fn tried_and_not(&self) -> (Vec<K>, Vec<K>) {
        let is_tried = |nemesis: &K| self.faults.iter().any(|fault| fault.kind == *nemesis);
        self.nemeses.iter().cloned().partition(is_tried)
    }

    /// The faults of which one must be gone before the next begins, each row in order.
    pub fn lanes(&self) -> Vec<Vec<PlannedFault<K>>> {
        if !self.overlap {
            return vec![self.faults.clone()];
        }
        let of = |kind: &K| self.faults.iter().filter(|fault| fault.kind == *kind).cloned().collect();
        self.nemeses.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_without_a_catalogue() {
        let text = r#"{"seed":7,"nemeses":["kill-one","stop-the-moon"],
            "interval_ms":4000,"hold_ms":2000,"overlap":true,
            "faults":[{"id":"F1","kind":"kill-one","start_ms":2000,"hold_ms":2000,"draw":5}]}"#;
        let schedule: Schedule = serde_json::from_str(text).expect("a schedule");
        let kinds = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<String>>();
        assert_eq!(schedule.tried_and_not(), (kinds(&["kill-one"]), kinds(&["stop-the-moon"])));
        assert_eq!(schedule.kinds(), kinds(&["kill-one", "stop-the-moon"]));
        assert_eq!(schedule.lanes().iter().map(Vec::len).collect::<Vec<_>>(), [1, 0]);
    }
}
