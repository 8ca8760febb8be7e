//! Kinds of faults, as a run folder describes them.
//!
//! A kind is an identifier: nothing compares it with a name that it knows. What must be known of one to judge
//! and to draw a run is written down with the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A kind of fault, described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultKind {
    /// What it does, in a line.
    pub about: String,
    /// How it acts.
    pub mechanism: String,
    /// What was said of it, and what holds where nothing was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}
