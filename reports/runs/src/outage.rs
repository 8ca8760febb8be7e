//! Outages of single keys, as `results.json` has them.

use serde::{Deserialize, Serialize};

use crate::numbers::ns_to_ms;

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

/// A stretch in which changes to a key were asked for and none was decided, while those to others were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyOutage {
    /// The key.
    pub key: u64,
    /// The earliest moment at which a change was due and had to wait.
    pub from_ns: u64,
    /// The change that was decided next, or the last that anybody asked for.
    pub to_ns: u64,
    /// The fault that is blamed for it, as for an outage of all keys.
    #[serde(default)]
    pub fault: Option<String>,
    /// Whether none was decided again.
    #[serde(default)]
    pub open: bool,
}

impl KeyOutage {
    /// How long it took.
    pub fn ms(&self) -> f64 {
        ns_to_ms(self.to_ns.saturating_sub(self.from_ns))
    }
}

impl KeyOutages {
    /// The longest of all.
    pub fn worst(&self) -> Option<&KeyOutage> {
        self.longest.first()
    }
}
