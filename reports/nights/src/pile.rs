//! What an attempt is taken for. Four piles that never mix, and the one in which nothing is to be done.
//!
//! Teams give up nightly chaos when they can't tell red from a broken bench. So what the system did
//! (a violation), what it took longer for (a regression), what could not be decided (unknown) and what the
//! bench itself did (a failure) have a place each, a word each and an exit status each.

use serde::{Deserialize, Serialize};

/// The piles, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pile {
    /// Every promise was tried hard enough, and held; every threshold as well.
    Valid,
    /// A number crossed its threshold, or an alarm was confirmed.
    Regression,
    /// Nothing can be said either way.
    Unknown,
    /// The harness, the machine or the engine failed.
    BenchFailure,
    /// A promise was broken.
    Violation,
}

/// The exit status of a night that somebody stopped, unless it found a violation.
pub const INTERRUPTED: u8 = 130;

/// Statuses of `harness run`.
const VALID: i32 = 0;
const VIOLATION: i32 = 1;
const UNKNOWN: i32 = 2;

impl Pile {
    /// All of them, best first.
    pub const ALL: [Self; 5] =
        [Self::Valid, Self::Regression, Self::Unknown, Self::BenchFailure, Self::Violation];

    /// What a run is taken for that ended with this exit status; none for one that a signal ended.
    pub fn of_status(status: Option<i32>) -> Self {
        match status {
            Some(VALID) => Self::Valid,
            Some(VIOLATION) => Self::Violation,
            Some(UNKNOWN) => Self::Unknown,
            Some(_) | None => Self::BenchFailure,
        }
    }

    /// The worst of several; valid of none.
    pub fn worst(piles: impl IntoIterator<Item = Self>) -> Self {
        piles.into_iter().max().unwrap_or(Self::Valid)
    }

    /// The exit status of a night whose worst pile this is. Of several statuses the first of 1, 255, 2, 3, 0
    /// counts, which is the order of the piles.
    pub fn status(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Violation => 1,
            Self::Unknown => 2,
            Self::Regression => 3,
            Self::BenchFailure => 255,
        }
    }

    /// The word used in every report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Regression => "regression",
            Self::Unknown => "unknown",
            Self::BenchFailure => "bench failure",
            Self::Violation => "violation",
        }
    }

    /// The same for more than one.
    pub fn names(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Regression => "regressions",
            Self::Unknown => "unknown",
            Self::BenchFailure => "bench failures",
            Self::Violation => "violations",
        }
    }

    /// Whether it is tried again: what the bench could not show may be shown by another try, and a violation
    /// is never tried away.
    pub fn is_tried_again(self) -> bool {
        matches!(self, Self::Unknown | Self::BenchFailure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_pile_decides_in_the_documented_order() {
        let statuses = |piles: &[Pile]| Pile::worst(piles.iter().copied()).status();
        assert_eq!(statuses(&[]), 0);
        assert_eq!(statuses(&[Pile::Regression, Pile::Valid]), 3);
        assert_eq!(statuses(&[Pile::Regression, Pile::Unknown]), 2);
        assert_eq!(statuses(&[Pile::BenchFailure, Pile::Unknown]), 255);
        assert_eq!(statuses(&[Pile::Violation, Pile::BenchFailure]), 1);
    }

    #[test]
    fn whatever_is_no_verdict_is_the_benchs_failure() {
        for status in [Some(254), Some(255), Some(130), Some(101), None] {
            assert_eq!(Pile::of_status(status), Pile::BenchFailure, "{status:?}");
        }
    }
}
