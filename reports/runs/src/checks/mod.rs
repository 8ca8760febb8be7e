//! The checks of a run: each is a judgement with its evidence.
//!
//! A check is a value: a file here, and a line in the list below, which is the order in which checks are
//! read.
//!
//! - [`promises`]: what the system promised, judged on the history by `workloads`, with what stood beside it.
//! - [`command`]: what the user's own command found, where one worked on the members.
//! - [`template`]: what test commands in the containers found, and what programs there assert.
//! - [`progress`]: a quorum that is connected goes on; [`recovery`]: every member comes back;
//!   [`comes_back`]: so does the whole, and each key.
//! - [`leadership`]: of applications, somebody holds again; [`notifications`]: one is told, and not all.
//! - [`holders`]: whoever was hit while it held was asked to act afterwards.
//! - [`fencing`]: no change is acknowledged in an epoch that had ended.
//! - [`mod@bench`]: what the bench itself owes. None of the bench's checks can convict.

use checker::history::Loaded;
use checker::verdict::CheckResult;
use workloads::judge::Effort;

use crate::observed::Observed;
use crate::results::{FaultRecord, RunInfo};

/// What a check is given: a run that is over, and how much may be spent on it.
pub struct Case<'a> {
    /// What was decided before the first operation.
    pub run: &'a RunInfo,
    /// The history.
    pub loaded: &'a Loaded,
    /// The faults.
    pub faults: &'a [FaultRecord],
    /// What was seen beside the history.
    pub observed: &'a Observed,
    /// Steps, memory and time for what is searched.
    pub effort: &'a Effort<'a>,
    /// The last lines of a member's log.
    pub logs: recovery::Logs<'a>,
}

/// A check, or several that belong together.
pub struct Check {
    /// What it looks at, in a few words.
    pub about: &'static str,
    /// Makes it; nothing where there is nothing to judge.
    pub judge: fn(&Case<'_>) -> Vec<CheckResult>,
}

macro_rules! checks {
    ($($file:ident,)*) => {
        $(pub mod $file;)*

        /// All of them, in the order in which they are read.
        pub const ALL: &[Check] = &[$($file::CHECK),*];
    };
}

checks! {
    promises,
    command,
    template,
    fencing,
    progress,
    recovery,
    comes_back,
    leadership,
    notifications,
    holders,
    bench,
}
