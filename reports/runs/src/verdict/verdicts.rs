//! How a verdict is told: in a word, and by a glyph.
//!
//! Sentences and screens use the same ones, so this module stands below both.

use checker::verdict::Verdict;

/// The glyph that stands beside a verdict, so that it is not told by colour alone.
pub fn glyph(verdict: Verdict) -> char {
    match verdict {
        Verdict::Valid => '✓',
        Verdict::Invalid => '✗',
        Verdict::Unknown => '?',
    }
}

/// The word for a verdict of a whole run.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "valid",
        Verdict::Invalid => "violation",
        Verdict::Unknown => "unknown",
    }
}
