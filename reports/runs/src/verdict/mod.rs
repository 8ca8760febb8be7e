//! The verdict, and the same in words.
//!
//! - [`judge`]: everything after a run, as a function of its folder.
//! - [`blame`]: which operation of a counterexample contradicts the others; [`broken`]: which promise, and
//!   the fact that shows it; [`held`]: who showed a value.
//! - [`findings`]: the sentence that each part of a report opens with; [`standing`] and [`verdicts`]: the
//!   word and the glyph of each check.

pub mod blame;
pub mod broken;
pub mod findings;
pub mod held;
pub mod judge;
pub mod standing;
pub mod verdicts;
