//! The workload `standby`: one application is active, others stand by, and whoever becomes active shuts the
//! one before it out of the store first.
//!
//! Here there is no line: when the active one goes, all who stand by try to take its place. It leaves a mark
//! of itself behind, unless it went in order, so that the next one knows whom to shut out. What must be true
//! is the same as in the workload `election`, and so is what stands of a history alone.

use crate::holding::{self, Holding};
use crate::workload::{Applications, Definition};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "standby",
    summary: "one application is active, others stand by: whoever takes over shuts the one before out",
    applications: Some(Applications::Standby),
    marks: &[],
    words: &[],
    generator: |params, rng| Box::new(Holding::new(params.keys, 10..=30, rng).that_stays()),
    ..holding::COMMON
};
