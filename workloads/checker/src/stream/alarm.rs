//! What the online checks find: an alarm that names lines of the history.

use std::fmt;

/// A value of a register; none is one that nobody wrote.
pub type Shown = Option<i64>;

/// Why no order of the operations exists. Operations are named by the record of their invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// A value was seen that the register can't hold any more, or that nobody had begun to write.
    Gone {
        /// The operation that saw it.
        seen_by: u64,
        /// Operations on another value that replaced it, if it ever was there.
        replaced_by: Vec<u64>,
    },
    /// A change was denied, and its value was seen.
    Denied {
        /// The change.
        change: u64,
        /// The operation that saw its value.
        seen_by: u64,
    },
    /// Two compare-and-sets took the same value away.
    TakenTwice {
        /// One of them.
        first: u64,
        /// The other.
        second: u64,
    },
    /// Compare-and-sets that each need the value of another one, in a circle.
    Circle {
        /// All of them.
        members: Vec<u64>,
    },
    /// The values decide that `earlier` comes first, but it was called only after `later` had returned.
    Inverted {
        /// What must come first.
        earlier: u64,
        /// What had returned before.
        later: u64,
    },
    /// Two stretches of time that would each have to come before the other.
    Entangled {
        /// Of each the operation that returned first (none is the register's beginning) and the one called last; the
        /// first of either returned before the last of the other was called.
        ends: [(Option<u64>, u64); 2],
    },
    /// A refusal from a value that the register held all the time.
    Held {
        /// An operation that shows the value and returned before the refused one was called; none is the beginning.
        before: Option<u64>,
        /// The refused compare-and-set.
        refused: u64,
        /// An operation that needs the value and was called after the refused one had returned.
        after: u64,
    },
}

/// A violation, found while the history was still being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The key.
    pub key: u64,
    /// The record whose arrival showed it.
    pub at_record: u64,
    /// The stamp of that record.
    pub at_ns: u64,
    /// Why no order exists.
    pub contradiction: Contradiction,
    /// The values that it is about, for whoever collects their operations.
    pub values: Vec<Shown>,
}

impl Contradiction {
    /// The operations that it names.
    #[must_use]
    pub fn records(&self) -> Vec<u64> {
        let mut records: Vec<u64> = match self {
            Self::Gone { seen_by, replaced_by } => replaced_by.iter().chain([seen_by]).copied().collect(),
            Self::Denied { change, seen_by } => vec![*change, *seen_by],
            Self::TakenTwice { first, second } => vec![*first, *second],
            Self::Circle { members } => members.clone(),
            Self::Inverted { earlier, later } => vec![*earlier, *later],
            Self::Entangled { ends } => {
                ends.iter().flat_map(|(first, last)| [*first, Some(*last)]).flatten().collect()
            }
            Self::Held { before, refused, after } => before.iter().chain([refused, after]).copied().collect(),
        };
        records.sort_unstable();
        records.dedup();
        records
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.contradiction {
            Contradiction::Gone { .. } => {
                "a value was seen that can't be there any more, or that nobody wrote"
            }
            Contradiction::Denied { .. } => "the value of a change that was denied was seen",
            Contradiction::TakenTwice { .. } => "two compare-and-sets replaced the same value",
            Contradiction::Circle { .. } => "compare-and-sets need each other's values in a circle",
            Contradiction::Inverted { .. } => "values were seen in another order than they were made in",
            Contradiction::Entangled { .. } => "two values would each have to come before the other",
            Contradiction::Held { .. } => {
                "a compare-and-set was refused although its value was there throughout"
            }
        };
        let records: Vec<String> = self.contradiction.records().iter().map(u64::to_string).collect();
        write!(f, "key {}: {what} (records {})", self.key, records.join(", "))
    }
}
