//! What came of hunting bugs in real members: a row for each.

use std::time::Duration;

use lab_mutants::{Mutant, Recipe};

/// What came of a bug.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) bug: Mutant,
    pub(super) end: End,
}

/// How a hunt ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// Convicted.
    Found { recipe: Recipe, runs: u32, took: Duration, checks: Vec<String>, page: String },
    /// Not convicted in so many runs.
    NotFound { recipe: Recipe, runs: u32, took: Duration },
    /// Its recipe can't be run here.
    CanNot(String),
    /// Only the simulator finds it, for this reason.
    SimulatorOnly(&'static str),
}
