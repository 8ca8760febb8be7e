//! Moments at which the machine itself stood still: whoever judges time must leave them out.

use crate::observed::Observed;

/// So much standing still within an interval makes time in it mean nothing.
const MOST_NS: u64 = 500_000_000;
/// A harness that hands an operation over this much later than it was due, at the ninety-ninth percentile,
/// shares a machine on which nobody's time means anything.
const MOST_LAG_MS: f64 = 50.0;

/// Whether the machine stood still too long between two moments, or was too busy all along.
pub fn within(observed: &Observed, from: u64, to: u64) -> bool {
    let shared = |stall: &(u64, u64)| stall.1.min(to).saturating_sub(stall.0.max(from));
    // One came after the other.
    let first = observed.stalls.partition_point(|stall| stall.1 < from);
    let still: u64 = observed.stalls[first..].iter().take_while(|stall| stall.0 < to).map(shared).sum();
    still > MOST_NS || too_busy(observed)
}

/// Whether the machine was too busy all along.
pub fn too_busy(observed: &Observed) -> bool {
    observed.lag.p99_ms > MOST_LAG_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stood_still_within_the_interval_counts() {
        let observed =
            Observed { stalls: vec![(0, 300_000_000), (900_000_000, 1_500_000_000)], ..Observed::default() };
        assert!(!within(&observed, 0, 1_000_000_000));
        assert!(within(&observed, 0, 2_000_000_000));
        assert!(!within(&observed, 2_000_000_000, 3_000_000_000));
        assert!(within(
            &Observed { lag: crate::lag::Lag { p99_ms: 80.0, ..Default::default() }, ..observed },
            0,
            1
        ));
    }
}
