//! The workload `lock`: applications that stand in line for locks, write by the token that they got, and
//! release.
//!
//! Whoever waited for too long leaves the line, so there is coming and going in it all the while. What must
//! be true is in `workloads/src/holding`.

use crate::holding::{self, Holding};
use crate::workload::{Applications, Definition};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "lock",
    summary: "applications take locks, write by tokens, release: one holds, and no stale write is taken",
    applications: Some(Applications::Lock),
    marks: &holding::FUNCTIONS,
    generator: |params, rng| Box::new(Holding::new(params.keys, 1..=6, rng)),
    ..holding::COMMON
};
