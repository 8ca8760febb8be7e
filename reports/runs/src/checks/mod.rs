//! The checks of a run: each is a judgement with its evidence.
//!
//! - [`promises`]: what the system promised, judged on the history by `workloads`, with what stood beside it.
//! - [`progress`]: a quorum that is connected goes on; [`recovery`]: every member comes back.
//! - [`mod@bench`]: what the bench itself owes. None of these can convict.

pub mod bench;
pub mod progress;
pub mod promises;
pub mod recovery;
