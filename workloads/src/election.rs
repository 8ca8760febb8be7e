//! The workload `election`: applications that stand for election, write by the token of their term, and
//! resign.
//!
//! Whoever stands goes on standing when it was not elected in time, so the line is long, and a change of
//! leader must be told to one of it. Terms are longer than in the workload `lock`. What must be true is the
//! same (`workloads/src/holding`).
//!
//! A history alone looks like one of locks, because its functions are the same. It is judged as such then,
//! which is sound.

use crate::holding::{self, Holding};
use crate::workload::{Applications, Definition};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "election",
    summary: "applications are elected, write by their terms' tokens, resign: terms never overlap",
    applications: Some(Applications::Election),
    marks: &[],
    words: &[],
    generator: |params, rng| Box::new(Holding::new(params.keys, 10..=30, rng).that_stays()),
    ..holding::COMMON
};
