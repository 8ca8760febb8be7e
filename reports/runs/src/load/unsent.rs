//! What the bench itself did not send, in figures and in words.

use serde::{Deserialize, Serialize};

use crate::numbers::{count, lossy};

/// A share of all operations from which a run's first sentence says that they were not sent.
pub const NOTABLE: f64 = 0.05;

/// What the bench itself did not send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    /// Operations that fell due.
    pub due: u64,
    /// Of them those that were never sent, because too few clients were there for the rate.
    pub no_client_free: u64,
    /// Of them those that were never sent, because clients were being replaced.
    pub replaced: u64,
    /// From when to when operations were due that the bench did not send, in the order of time.
    pub stretches: Vec<(u64, u64)>,
    /// The parts of these in which no member was asked for a change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<(u64, u64)>,
}

impl Unsent {
    /// How many.
    pub fn number(&self) -> u64 {
        self.no_client_free + self.replaced
    }

    /// Which share of all.
    pub fn share(&self) -> f64 {
        if self.due == 0 { 0.0 } else { lossy(self.number()) / lossy(self.due) }
    }

    /// Whether it is so much that what was measured is the bench as well.
    pub fn is_notable(&self) -> bool {
        self.share() >= NOTABLE
    }

    /// Why, in words.
    pub fn why(&self) -> &'static str {
        match (self.no_client_free, self.replaced) {
            (_, 0) => "no client was free",
            (0, _) => "clients were being replaced",
            _ => "no client was free or clients were being replaced",
        }
    }

    /// How many, of how many, as people say it: `1,797 of 9,458 operations (19 %)`.
    pub fn in_figures(&self) -> String {
        let percent = self.share() * 100.0;
        let share = if percent < 1.0 { "below 1 %".to_owned() } else { format!("{percent:.0} %") };
        format!("{} of {} operations ({share})", count(self.number()), count(self.due))
    }
}

/// Whether one of these intervals, which are in order and apart, overlaps this one.
pub fn overlaps(sorted: &[(u64, u64)], (from, to): (u64, u64)) -> bool {
    let first = sorted.partition_point(|(_, end)| *end < from);
    sorted.get(first).is_some_and(|(begin, _)| *begin <= to)
}
