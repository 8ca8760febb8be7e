//! What the fingerprints of all parts of a member have in common: how a moment counts in one.

use std::time::Duration;

/// How far off a deadline is. One that is over is over, however long.
pub(crate) fn until(deadline: Duration, at: Duration) -> Duration {
    deadline.saturating_sub(at)
}
