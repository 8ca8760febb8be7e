//! What a failure means in a format from elsewhere.
//!
//! A compare-and-set that failed may have been refused, which is an observation, or may never have been made.
//! The formats differ in which of the two they mean. The module `records` has the table, and the reasons.

use std::sync::Arc;

use super::event::BAD_VERSION;
use super::fields::error_text;
use super::{Datum, EventKind, Record};

/// What a failure without a name means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// A compare-and-set was refused.
    Refused,
    /// The operation did not happen, and nobody says why.
    DidNotHappen,
}

/// The error of a failure that has none and observed nothing.
const UNEXPLAINED: &str = "unexplained";

/// The same for one whose name means something else here.
const BAD_VERSION_ELSEWHERE: &str = "bad-version, as told elsewhere";

/// Brings the failures of a format from elsewhere to what the table in `records` says.
pub(super) fn name_failure(record: &mut Record, value_is_keyword: bool, unnamed: Failure) {
    if !matches!(record.kind, EventKind::Fail | EventKind::Info) {
        return;
    }
    if value_is_keyword && record.error.is_none() {
        record.error = error_text(&record.value);
        record.value = Datum::Nil;
    }
    match record.error.as_deref() {
        None if record.kind == EventKind::Fail && unnamed == Failure::DidNotHappen => {
            record.error = Some(Arc::from(UNEXPLAINED));
        }
        Some(BAD_VERSION) => record.error = Some(Arc::from(BAD_VERSION_ELSEWHERE)),
        _ => {}
    }
}
