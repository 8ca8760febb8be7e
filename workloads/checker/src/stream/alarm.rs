//! What the online test finds: an alarm that names records of the history.

use std::fmt;

use crate::register::blocks::Contradiction;
use crate::register::blocks::terms::Shown;

/// A violation, found while the history was still being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The key.
    pub key: u64,
    /// The record whose arrival showed it.
    pub at_record: u64,
    /// The stamp of that record.
    pub at_ns: u64,
    /// Why no order exists; operations are named by the records of their invocations.
    pub contradiction: Contradiction<u64>,
    /// The values that it is about, for whoever collects their operations.
    pub values: Vec<Shown>,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records: Vec<String> = self.contradiction.operations().iter().map(u64::to_string).collect();
        write!(f, "key {}: {} (records {})", self.key, self.contradiction.as_str(), records.join(", "))
    }
}
