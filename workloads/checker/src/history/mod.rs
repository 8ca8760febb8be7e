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
pub use event::{BAD_VERSION, EventKind, Function};
pub use event_lines::EventLines;
pub use extent::Extent;
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

/// What an operation did, with its result when it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A read; the value is meaningful only when it ended ok. None is a register that nobody wrote.
    Read {
        /// What was read.
        value: Option<i64>,
    },
    /// A write.
    Write {
        /// What was written.
        value: i64,
    },
    /// A compare-and-set.
    Cas {
        /// What the register had to hold; none is a register that nobody wrote.
        from: Option<i64>,
        /// What it was to hold afterwards.
        to: i64,
    },
    /// A unique element put into a set.
    Add {
        /// The element.
        value: i64,
    },
    /// A unique element put at the end of a list.
    Append {
        /// The element.
        value: i64,
    },
    /// A place made, in which others are made.
    Make,
    /// A named node made.
    Create {
        /// Its name.
        name: i64,
        /// The number that it got, when numbers are given.
        number: Option<i64>,
    },
    /// A named node deleted.
    Delete {
        /// Its name.
        name: i64,
    },
    /// A look whether a named node is there.
    Exists {
        /// Its name.
        name: i64,
        /// Whether it was; meaningful only when it ended ok.
        present: bool,
    },
    /// A session opened.
    Open {
        /// Its time-out in milliseconds, once it is known.
        timeout_ms: Option<i64>,
    },
    /// The session closed.
    Close,
    /// The session left to expire.
    Abandon,
    /// A lock or a lead acquired. The moments of its term are in the operation's list.
    Acquire {
        /// Its token, once it is known.
        token: Option<i64>,
    },
    /// A write to a store that a token guards. The moments are in the operation's list.
    Store {
        /// The token.
        token: i64,
        /// What was written.
        value: i64,
    },
    /// What was acquired given up.
    Release {
        /// The token of what was given up.
        token: i64,
    },
    /// A unique element put at the end of a queue.
    Enqueue {
        /// The element.
        value: i64,
    },
    /// The first element of a queue handed out. Where it is claimed, the moments of the claim are in the
    /// operation's list.
    Dequeue {
        /// The element, once it is known; none where there was nothing.
        value: Option<i64>,
    },
    /// An element that was handed out done.
    Acknowledge {
        /// The element.
        value: i64,
    },
    /// A round of a barrier entered.
    Enter {
        /// The round.
        round: i64,
    },
    /// A round of a barrier left.
    Leave {
        /// The round.
        round: i64,
    },
    /// A transaction, whose micro-operations are the operation's.
    Txn {
        /// Whether one of them is an append.
        changes: bool,
    },
    /// How the register changed. What was told is in the operation's list.
    Watch {
        /// Who is told: each has a number.
        watcher: i64,
        /// The position up to which it was told before; none where it begins.
        from: Option<i64>,
    },
}

impl OpKind {
    /// The function's name.
    #[must_use]
    pub fn function(&self) -> Function {
        match self {
            Self::Read { .. } => Function::Read,
            Self::Write { .. } => Function::Write,
            Self::Cas { .. } => Function::Cas,
            Self::Add { .. } => Function::Add,
            Self::Append { .. } => Function::Append,
            Self::Make | Self::Create { .. } => Function::Create,
            Self::Delete { .. } => Function::Delete,
            Self::Exists { .. } => Function::Exists,
            Self::Open { .. } => Function::Open,
            Self::Close => Function::Close,
            Self::Abandon => Function::Abandon,
            Self::Acquire { .. } => Function::Acquire,
            Self::Store { .. } => Function::Store,
            Self::Release { .. } => Function::Release,
            Self::Enqueue { .. } => Function::Enqueue,
            Self::Dequeue { .. } => Function::Dequeue,
            Self::Acknowledge { .. } => Function::Acknowledge,
            Self::Enter { .. } => Function::Enter,
            Self::Leave { .. } => Function::Leave,
            Self::Txn { .. } => Function::Txn,
            Self::Watch { .. } => Function::Watch,
        }
    }

    /// Whether it asks for a change of what the system holds.
    #[must_use]
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Txn { changes: false }) && self.function().is_change()
    }

    /// The value that the register holds if this operation takes effect; none for what writes no register.
    #[must_use]
    pub fn written(&self) -> Option<i64> {
        match *self {
            Self::Write { value } => Some(value),
            Self::Cas { to, .. } => Some(to),
            _ => None,
        }
    }
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
    /// What it did.
    pub kind: OpKind,
    /// The elements that a read of a set or a list returned; of a lock and of a watch, what the answer told.
    pub list: Option<Arc<[i64]>>,
    /// The micro-operations of a transaction: with what was read, once it is known.
    pub micros: Option<Arc<[Micro]>>,
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
        matches!(self.kind, OpKind::Cas { .. })
            && self.outcome == Outcome::Fail
            && self.error.as_deref().is_none_or(|error| error == BAD_VERSION)
    }

    /// A write or a compare-and-set that happened.
    #[must_use]
    pub fn is_acknowledged_change(&self) -> bool {
        self.outcome == Outcome::Ok && self.kind.written().is_some()
    }

    /// A write or a compare-and-set whose fate is unknown.
    #[must_use]
    pub fn is_open_change(&self) -> bool {
        self.outcome == Outcome::Info && self.kind.written().is_some()
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
        let is_update = |op: &&Op| !matches!(op.kind, OpKind::Read { .. });
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
