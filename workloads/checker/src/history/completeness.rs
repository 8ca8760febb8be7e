//! What is known about a history once it was read, in whatever format it came.

use super::{Extent, LoadError};

/// What is known about a history once it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completeness {
    /// How much of it is there.
    pub extent: Extent,
    /// What is missing or wrong, when it is not complete.
    pub problem: Option<String>,
    /// Whether this is a history from elsewhere, without trailer and without fields of ours.
    pub plain: bool,
    /// Records read.
    pub events: u64,
    /// Lines or elements that are no client's operation: the nemesis's, other lines of a log.
    pub skipped: u64,
    /// Clients that are known here by another number, or by a number instead of a name: what the file calls
    /// them, and the number.
    pub renamed: Vec<(String, u64)>,
}

impl Completeness {
    /// With what is missing, if anything is.
    pub(super) fn of(missing: Option<(Extent, String)>, plain: bool, events: u64, skipped: u64) -> Self {
        let (extent, problem) = missing.map_or((Extent::Whole, None), |(extent, why)| (extent, Some(why)));
        Self { extent, problem, plain, events, skipped, renamed: Vec::new() }
    }

    /// What is wrong with a history in which there is no operation.
    pub(super) fn without_operations(&self) -> LoadError {
        match (self.skipped, &self.problem) {
            (0, None) => LoadError::Empty,
            (0, Some(problem)) => LoadError::NoOperation(problem.clone()),
            (1, _) => LoadError::NoOperation("its only record is no client's".to_owned()),
            (skipped, _) => LoadError::NoOperation(format!("none of its {skipped} records is a client's")),
        }
    }
}
