//! What became of a check, as reports tell it.
//!
//! A verdict alone says too little. A check that met nothing it could judge did not find that all was well,
//! and one that measured what is not promised may have seen it broken. Neither is a violation or makes a run
//! unknown; both would be read as praise under the word `valid`.

use checker::verdict::{CheckResult, Verdict};
use workloads::promise::KEPT;

use crate::verdicts;

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// What it judged was kept.
    Valid,
    /// A promise was broken.
    Invalid,
    /// Not decided.
    Unknown,
    /// Nothing happened that it could judge.
    NothingJudged,
    /// It measured what is not promised, and what was not kept.
    NotPromised,
}

impl Standing {
    /// That of one check.
    pub fn of(check: &CheckResult) -> Self {
        let kept = check.evidence.get(KEPT).and_then(serde_json::Value::as_bool);
        match (check.verdict, kept) {
            (Verdict::Invalid, _) => Self::Invalid,
            (Verdict::Unknown, _) => Self::Unknown,
            (Verdict::Valid, _) if check.nothing_judged => Self::NothingJudged,
            (Verdict::Valid, Some(false)) => Self::NotPromised,
            (Verdict::Valid, _) => Self::Valid,
        }
    }

    /// How many of these checks have it.
    pub fn count(self, checks: &[CheckResult]) -> usize {
        checks.iter().filter(|check| Self::of(check) == self).count()
    }

    /// The glyph that stands beside the word.
    pub fn glyph(self) -> char {
        match self {
            Self::Valid => verdicts::glyph(Verdict::Valid),
            Self::Invalid => verdicts::glyph(Verdict::Invalid),
            Self::Unknown => verdicts::glyph(Verdict::Unknown),
            Self::NothingJudged => '–',
            Self::NotPromised => '!',
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Valid => verdicts::word(Verdict::Valid),
            Self::Invalid => verdicts::word(Verdict::Invalid),
            Self::Unknown => verdicts::word(Verdict::Unknown),
            Self::NothingJudged => "nothing judged",
            Self::NotPromised => "not kept",
        }
    }
}

/// What of so many checks is neither valid, nor violated, nor unknown: `1 had nothing to judge`.
pub fn others(checks: &[CheckResult]) -> Vec<String> {
    let words = [
        (Standing::NothingJudged, "had nothing to judge"),
        (Standing::NotPromised, "measured what is not promised and was not kept"),
    ];
    let some = words.into_iter().map(|(standing, words)| (standing.count(checks), words));
    some.filter(|(number, _)| *number > 0).map(|(number, words)| format!("{number} {words}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_judged_nothing_or_measured_a_loss_is_not_called_valid() {
        let checks = [
            CheckResult::new("linearizable", Verdict::Valid, "it holds"),
            CheckResult::nothing_judged("progress", "nothing was long enough"),
            CheckResult::new("durability", Verdict::Valid, "lost").with_evidence(json!({"kept": false})),
            CheckResult::new("append", Verdict::Valid, "whole").with_evidence(json!({"kept": true})),
        ];
        let standings = checks.each_ref().map(Standing::of);
        assert_eq!(
            standings,
            [Standing::Valid, Standing::NothingJudged, Standing::NotPromised, Standing::Valid]
        );
        assert_eq!(
            others(&checks),
            ["1 had nothing to judge", "1 measured what is not promised and was not kept"]
        );
    }
}
