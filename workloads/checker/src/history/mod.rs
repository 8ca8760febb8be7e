//! Histories: what clients asked and were told, as lines and as operations.
//!
//! On disk a history is one JSON object per line: an [`Event`] for every invocation and every completion,
//! and, for a history of ours, a trailer with the count of lines and the SHA-256 of all bytes before it. In
//! memory it is a [`History`]: the events paired to operations ([`Op`]), with every call and return given a
//! rank in one total order of real time. The checks use ranks only.
//!
//! The pairing follows Jepsen: a process has one operation at a time; `ok` happened, `fail` definitely did
//! not happen, `info` may have happened or may still happen at any later moment, and its process is never
//! used again. An invocation without completion counts as `info`.
//!
//! | f | value of the invocation | value of an `ok` |
//! |---|---|---|
//! | `read` | `null` | what was read: an integer, `null` for nothing, or the elements in brackets |
//! | `write` | the value | the same |
//! | `cas` | `[from, to]` | the same |
//! | `add`, `append`, `delete` | the element or name | the same |
//! | `create` | the name, or `null` for a place for others | the name, or `[name, number]` when it got one |
//! | `exists` | the name | `[name, 1]` where it is, `[name, 0]` where it is not |
//! | `open` | `null` | the session's time-out in milliseconds |
//! | `close`, `abandon` | `null` | `null` |
//! | `acquire` | `null` | `[token, since, until]` |
//! | `store` | `[token, value]` | `[token, value, looked, until, stored]` |
//! | `release` | the token | the same |
//! | `txn` | micro-operations, as `["append",5,1]` and `["r",5,null]` | the same, with what was read |
//! | `watch` | `[from, watcher]`, with `null` from where it begins | `[position, value, version, ...]` |
//!
//! Any other word may stand in a history, with whatever value its workload gives it; [`Vocabulary`] says what
//! must be known of it.
//!
//! A transaction's key is that of its first micro-operation.
//!
//! `open`, `close` and `abandon` are about the session that their line names; only workloads that judge
//! sessions record them. Nothing is sent for `abandon`: it says that nothing will be sent any more. Names are
//! integers too.
//!
//! Applications `acquire` a lock or a lead, write to a store that its token guards, and `release` it. Their
//! moments are on the clock of the history, in ns: since when and until when the holder was certain that
//! nobody else held, when it looked at that before it wrote, and when the store took the write. The version
//! of a `store` is its place in the order of what the store took.
//!
//! A *watcher* is told how a register changed: the values in their order, each with its version, or -1 where
//! none is told, and the position from which it goes on.
//!
//! Histories from elsewhere come in other formats and with other operations: [`records()`] reads them one
//! [`Record`] at a time, and says what each format leaves open and how that is decided here.
//! An event and a record are both a [`Line`]; they differ in what is known of the operation.

mod completeness;
mod compressed;
mod compressor;
mod convert;
mod datum;
mod describe;
mod during;
mod edn;
mod elements;
mod event;
mod event_lines;
mod extent;
mod failure;
mod fields;
#[cfg(test)]
mod fixtures;
mod function;
mod kind;
mod limits;
mod lines;
mod load;
mod load_error;
mod micro;
mod operations;
mod pair;
mod processes;
mod record;
mod records;
pub mod scan;
mod seal;
mod text_log;
mod tuples;
mod value;
mod writer;

pub use completeness::Completeness;
pub use compressor::Compressor;
pub(crate) use convert::event_of;
pub use datum::Datum;
pub use describe::describe;
pub(crate) use describe::{call, called, returned, value_of};
pub use during::{Interval, Presence, counts_during};
pub use event::{BAD_VERSION, EventKind};
pub use event_lines::EventLines;
pub use extent::Extent;
pub use function::{Effect, Function, MAX_FUNCTION_BYTES, Vocabulary};
pub use kind::OpKind;
pub use limits::MAX_LINE_BYTES;
pub use load::{Loaded, load, load_until};
pub use load_error::LoadError;
pub use micro::{Micro, What, is_answered};
pub use operations::Pairing;
pub use pair::PairError;
pub(crate) use pair::{Pairs, Stamp, ranks};
pub use record::{Event, Line, Record};
pub use records::{Format, Records, content, records, records_until};
pub use value::Value;
pub use writer::{Finished, HistoryWriter};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A rank in the total order of calls and returns.
pub type Rank = u32;

/// The rank of a return that never came.
pub const NEVER: Rank = Rank::MAX;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It happened between its call and its return.
    Ok,
    /// It did not happen and never will.
    Fail,
    /// It may have happened, or may yet.
    Info,
}

/// One operation: an invocation and, when there was one, its completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Index of the invocation's line.
    pub index: u64,
    /// The logical process.
    pub process: u64,
    /// The key.
    pub key: u64,
    /// What was asked for.
    pub f: Function,
    /// The argument, as the invocation's line has it.
    pub asked: Value,
    /// The result; nothing where it did not end ok.
    pub told: Value,
    /// Whether it asks for a change: then its unknown fate stays open.
    pub changes: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// When it was invoked, ns since the start of the run.
    pub invoke_ns: u64,
    /// When it was due, for an open loop.
    pub due_ns: Option<u64>,
    /// When it completed; none when it stayed open.
    pub complete_ns: Option<u64>,
    /// Rank of the call.
    pub call: Rank,
    /// Rank of the return; [`NEVER`] when the operation stays open.
    pub ret: Rank,
    /// The member that the client spoke to.
    pub node: Option<u64>,
    /// The member that did it, by the answer's own word.
    pub by: Option<u64>,
    /// The session's bits.
    pub session: Option<u64>,
    /// The zxid in the reply's header.
    pub zxid: Option<u64>,
    /// The version that the reply's Stat showed.
    pub version: Option<i64>,
    /// The mzxid that the reply's Stat showed.
    pub mzxid: Option<u64>,
    /// The version that a compare-and-set asked for.
    pub expect: Option<i64>,
    /// The error's name.
    pub error: Option<Arc<str>>,
}

/// How the error of an operation begins that never left its client.
pub const NOT_SENT: &str = "not-sent";

impl Op {
    /// Whether it asks for a change of what the system holds.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.changes
    }

    /// Whether it may have left its client.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        !self.error.as_deref().is_some_and(|error| error.starts_with(NOT_SENT))
    }

    /// A compare-and-set that was refused because the register did not hold what it asked for: an
    /// observation, unlike a failure that says nothing about the register (never sent, no such node).
    /// Histories from elsewhere name no error; there a failed compare-and-set means the comparison failed.
    #[must_use]
    pub fn is_refused_cas(&self) -> bool {
        self.f == Function::CAS
            && self.outcome == Outcome::Fail
            && self.error.as_deref().is_none_or(|error| error == BAD_VERSION)
    }

    /// A write or a compare-and-set that happened.
    #[must_use]
    pub fn is_acknowledged_change(&self) -> bool {
        self.outcome == Outcome::Ok && self.kind().written().is_some()
    }

    /// A write or a compare-and-set whose fate is unknown.
    #[must_use]
    pub fn is_open_change(&self) -> bool {
        self.outcome == Outcome::Info && self.kind().written().is_some()
    }
}

/// Operations in the order of their calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    ops: Vec<Op>,
}

impl History {
    /// Pairs events to operations.
    ///
    /// # Errors
    /// [`PairError`] when the events do not form a history.
    pub fn from_events(events: impl IntoIterator<Item = Event>) -> Result<Self, PairError> {
        let mut pairing = Pairing::default();
        for event in events {
            pairing.push(event)?;
        }
        Ok(pairing.finish())
    }

    /// All operations, in the order of their calls.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The same history without its reads.
    #[must_use]
    pub fn updates(&self) -> Self {
        let is_update = |op: &&Op| op.f != Function::READ;
        Self { ops: self.ops.iter().filter(is_update).cloned().collect() }
    }

    /// The keys that occur, ascending.
    #[must_use]
    pub fn keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.ops.iter().map(|op| op.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The operations grouped by key, keys ascending, each group in the order of the calls.
    #[must_use]
    pub fn by_key(&self) -> Vec<(u64, Vec<&Op>)> {
        let mut groups: std::collections::BTreeMap<u64, Vec<&Op>> = std::collections::BTreeMap::new();
        for op in &self.ops {
            groups.entry(op.key).or_default().push(op);
        }
        groups.into_iter().collect()
    }
}
