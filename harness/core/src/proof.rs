//! What a look at the ensemble showed.

use runs::faults::FaultDetail;

/// Whether something is as it should be, and what was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// Whether it is as it should be.
    pub holds: bool,
    /// What was seen.
    pub detail: FaultDetail,
}

impl Proof {
    /// A proof in words.
    #[must_use]
    pub fn new(holds: bool, evidence: String) -> Self {
        Self { holds, detail: evidence_of(evidence) }
    }

    /// Both, and what both saw.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let words = [self.detail.evidence.take(), other.detail.evidence];
        self.detail.evidence = Some(words.into_iter().flatten().collect::<Vec<_>>().join("; "));
        self.detail.matrix = self.detail.matrix.or(other.detail.matrix);
        self.holds &= other.holds;
        self
    }
}

/// What was seen, in words alone.
pub(crate) fn evidence_of(words: String) -> FaultDetail {
    FaultDetail { evidence: Some(words), ..FaultDetail::default() }
}
