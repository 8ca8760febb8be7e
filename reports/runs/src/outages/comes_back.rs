//! Whether a system promises to come back once nothing is broken any more, and how soon.
//!
//! The promise has a source, as what is promised of a workload has: the system's file, its own description,
//! or nobody, where the usual is expected of a replicated system.

use serde::{Deserialize, Serialize};

use crate::numbers::NS_PER_S;

/// Silences after which members give up on one another, in the usual bound.
pub const TIMEOUTS: u64 = 40;
/// The least that the usual bound is, in ns: elections and restarts need disks, and disks may be busy.
pub const LEAST_NS: u64 = 30 * NS_PER_S;
/// So many times what the run took from its start to the first acknowledged change.
pub const STARTS: u64 = 3;

/// What a system promises about coming back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComesBack {
    /// When.
    pub when: When,
    /// Within how long, in ms; none where the usual bound holds ([`ComesBack::bound_ns`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// Where it is said; empty where nobody says it and the usual is expected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Members that end are started again by a policy of their own, which the bench leaves out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
}

/// When a system acknowledges changes again without anybody's help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// While any member that clients reach is there, whatever else is broken.
    Always,
    /// When nothing keeps a quorum of its members apart any more.
    #[default]
    WithQuorum,
    /// Not by itself: an operator must act.
    Never,
}

impl When {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Always, Self::WithQuorum, Self::Never];

    /// The word in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::WithQuorum => "with-quorum",
            Self::Never => "never",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|when| when.name() == name)
    }
}

impl ComesBack {
    /// The silence from which on a system did not come back, in ns. Unless it says so itself it is the
    /// largest of [`TIMEOUTS`] silences after which members give up on one another (`patience_ms`),
    /// [`LEAST_NS`], and [`STARTS`] times what this run took from its start to the first acknowledged change
    /// (`first_ns`). None where it promises nothing, or where nobody knows its time-outs.
    pub fn bound_ns(&self, patience_ms: Option<u64>, first_ns: u64) -> Option<u64> {
        if self.when == When::Never {
            return None;
        }
        if let Some(within) = self.within_ms {
            return Some(within.saturating_mul(1_000_000));
        }
        let timeouts = patience_ms?.saturating_mul(1_000_000).saturating_mul(TIMEOUTS);
        Some(timeouts.max(LEAST_NS).max(first_ns.saturating_mul(STARTS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = NS_PER_S;

    #[test]
    fn the_usual_bound_is_the_largest_of_three_and_a_systems_own_word_comes_first() {
        let usual = ComesBack::default();
        assert_eq!(usual.bound_ns(Some(250), S), Some(30 * S));
        assert_eq!(usual.bound_ns(Some(2500), S), Some(100 * S));
        assert_eq!(usual.bound_ns(Some(250), 20 * S), Some(60 * S), "it is slow to start");
        assert_eq!(usual.bound_ns(None, S), None, "nobody knows its time-outs");
        let own = ComesBack { within_ms: Some(5000), ..ComesBack::default() };
        assert_eq!(own.bound_ns(None, 20 * S), Some(5 * S));
        let never = ComesBack { when: When::Never, ..own };
        assert_eq!(never.bound_ns(Some(250), S), None);
    }

    #[test]
    fn every_word_is_known_by_its_name() {
        for when in When::ALL {
            assert_eq!(When::named(when.name()), Some(when));
            assert_eq!(serde_json::to_value(when).ok(), Some(when.name().into()));
        }
    }
}
