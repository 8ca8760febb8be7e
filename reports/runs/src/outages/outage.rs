//! Outages, as `results.json` has them.

use serde::{Deserialize, Serialize};

use crate::numbers::ns_to_ms;

/// An interval in which no client had a write acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The earliest moment at which a write was due and had to wait.
    pub from_ns: u64,
    /// The acknowledgement that ended it, or the end of the run.
    pub to_ns: u64,
    /// The fault that is blamed for it: of an election that was held meanwhile, or at work as it began, or
    /// asked for in its first half.
    #[serde(default)]
    pub fault: Option<String>,
    /// Whether the run ended before a write was acknowledged again.
    #[serde(default)]
    pub open: bool,
}

impl Outage {
    /// How long it took, in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// The same in milliseconds.
    pub fn ms(&self) -> f64 {
        ns_to_ms(self.ns())
    }
}

/// Which keys had an outage of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyOutages {
    /// Keys that were changed often enough to say.
    pub keys: u64,
    /// Of them those with an outage.
    pub with: u64,
    /// The longest outage of each of those, the longest first, of ten keys at most.
    pub longest: Vec<KeyOutage>,
}

impl KeyOutages {
    /// The longest of all.
    pub fn worst(&self) -> Option<&KeyOutage> {
        self.longest.first()
    }
}

/// A stretch in which changes to a key were asked for and none was decided, while those to others were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyOutage {
    /// The key.
    pub key: u64,
    /// The same of its changes alone. It ends with the change that was decided next, or the last that anybody
    /// asked for.
    #[serde(flatten)]
    pub outage: Outage,
}
