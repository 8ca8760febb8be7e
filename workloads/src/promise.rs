//! What a system promises of a workload, and what a check then says.
//!
//! The checks of a workload ask for the most that any system promises. A system that promises less is judged
//! by less: where its reads may be stale they are left out, and where it promises nothing the same checks
//! *measure*. What they find is told with its numbers, and it is no violation.

use checker::verdict::{CheckResult, Verdict};
use serde::{Deserialize, Serialize};

/// In the evidence of a check that measured: whether what was not promised was kept all the same.
pub const KEPT: &str = "kept";

/// What a system promises of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Every operation takes effect at one moment between its call and its answer, and what was acknowledged
    /// stays.
    #[default]
    Linearizable,
    /// The same of everything that changes something. A read may be stale, in the order of its session.
    LinearizableUpdates,
    /// Whoever watches is told every change, once and in order.
    EveryChange,
    /// Whoever watches is told what changed last, in the end, and never goes back. Changes may be left out.
    Latest,
    /// Nothing: what was acknowledged may be lost.
    Nothing,
}

impl Promise {
    /// All of them, the strongest first.
    pub const ALL: [Self; 5] =
        [Self::Linearizable, Self::LinearizableUpdates, Self::EveryChange, Self::Latest, Self::Nothing];

    /// Its name on the command line and in every file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linearizable => "linearizable",
            Self::LinearizableUpdates => "linearizable-updates",
            Self::EveryChange => "every-change",
            Self::Latest => "latest",
            Self::Nothing => "nothing",
        }
    }

    /// One line about it.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Linearizable => {
                "every operation takes effect at one moment, and what was acknowledged stays"
            }
            Self::LinearizableUpdates => "the same of all that changes something; a read may be stale",
            Self::EveryChange => "whoever watches is told every change, once and in order",
            Self::Latest => {
                "whoever watches is told what changed last, and never goes back; changes may be left out"
            }
            Self::Nothing => "what was acknowledged may be lost: that is measured, and is no violation",
        }
    }

    /// The promise of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|promise| promise.name() == name)
    }

    /// What a check of the workload says under this promise.
    #[must_use]
    pub(crate) fn judged(self, result: CheckResult) -> CheckResult {
        if self != Self::Nothing || result.verdict != Verdict::Invalid {
            return result;
        }
        let summary = format!("not promised, and not kept: {}", result.summary);
        let mut measured = CheckResult { verdict: Verdict::Valid, summary, ..result };
        if measured.evidence.is_null() {
            measured.evidence = serde_json::json!({});
        }
        measured.evidence[KEPT] = false.into();
        measured
    }
}

impl std::fmt::Display for Promise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_promised_is_measured_and_accuses_nobody() {
        let found = |verdict| CheckResult::new("set", verdict, "3 of 9 were lost");
        for promise in Promise::ALL {
            assert_eq!(Promise::named(promise.name()), Some(promise));
            let judged = promise.judged(found(Verdict::Invalid));
            let measured = promise == Promise::Nothing;
            assert_eq!(judged.verdict == Verdict::Valid, measured);
            assert!(judged.summary.ends_with("3 of 9 were lost"));
            assert_eq!(judged.evidence.get(KEPT).is_some(), measured);
            assert_eq!(promise.judged(found(Verdict::Unknown)).verdict, Verdict::Unknown);
        }
    }
}
