//! What kind of line one is.

use serde::{Deserialize, Serialize};

/// The error that marks a compare-and-set refused for its version: a definite observation.
pub const BAD_VERSION: &str = "bad-version";

/// Whether a line is an invocation or one of the three completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A client asks.
    Invoke,
    /// It happened.
    Ok,
    /// It did not happen and never will.
    Fail,
    /// Nobody knows.
    Info,
}
