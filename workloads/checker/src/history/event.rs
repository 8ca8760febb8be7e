//! What kind of line one is, and what a register, a set or a list is asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The error that marks a compare-and-set refused for its version: a definite observation.
pub const BAD_VERSION: &str = "bad-version";

/// Whether a line is an invocation or one of the three completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A client asks.
    Invoke,
    /// It happened.
    Ok,
    /// It did not happen and never will.
    Fail,
    /// Nobody knows.
    Info,
}

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Function {
    /// Read a register, a set or a list.
    Read,
    /// Write a register.
    Write,
    /// Write it if it holds an expected value.
    Cas,
    /// Put a unique element into a set.
    Add,
    /// Put a unique element at the end of a list.
    Append,
    /// Make a named node; without a value, the place that others are made in.
    Create,
    /// Delete a named node.
    Delete,
    /// Ask whether a named node is there.
    Exists,
    /// Open a session.
    Open,
    /// Close the session.
    Close,
    /// Leave the session to expire. Nothing is sent.
    Abandon,
    /// Wait for a lock, or to be elected.
    Acquire,
    /// Write to a store that a token guards.
    Store,
    /// Give up what was acquired.
    Release,
    /// Put a unique element at the end of a queue.
    Enqueue,
    /// Be handed the first element of a queue.
    Dequeue,
    /// Say that an element that was handed out is done, so that nobody is handed it again.
    Acknowledge,
    /// Wait at a barrier until so many have come.
    Enter,
    /// Wait until all who entered are ready to go.
    Leave,
    /// Append to lists and read lists, all of it at once.
    Txn,
    /// Be told how a register changed, from a position on.
    Watch,
}

impl Function {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 21] = [
        Self::Read,
        Self::Write,
        Self::Cas,
        Self::Add,
        Self::Append,
        Self::Create,
        Self::Delete,
        Self::Exists,
        Self::Open,
        Self::Close,
        Self::Abandon,
        Self::Acquire,
        Self::Store,
        Self::Release,
        Self::Enqueue,
        Self::Dequeue,
        Self::Acknowledge,
        Self::Enter,
        Self::Leave,
        Self::Txn,
        Self::Watch,
    ];

    /// Those of a register.
    pub const REGISTER: [Self; 3] = [Self::Read, Self::Write, Self::Cas];

    /// The word used in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Cas => "cas",
            Self::Add => "add",
            Self::Append => "append",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Exists => "exists",
            Self::Open => "open",
            Self::Close => "close",
            Self::Abandon => "abandon",
            Self::Acquire => "acquire",
            Self::Store => "store",
            Self::Release => "release",
            Self::Enqueue => "enqueue",
            Self::Dequeue => "dequeue",
            Self::Acknowledge => "acknowledge",
            Self::Enter => "enter",
            Self::Leave => "leave",
            Self::Txn => "txn",
            Self::Watch => "watch",
        }
    }

    /// Whether it asks for a change of what the system holds: only then an unknown fate may still take
    /// effect.
    #[must_use]
    pub fn is_change(self) -> bool {
        match self {
            Self::Read | Self::Exists | Self::Abandon | Self::Watch => false,
            Self::Write
            | Self::Cas
            | Self::Add
            | Self::Append
            | Self::Create
            | Self::Delete
            | Self::Open
            | Self::Close
            | Self::Acquire
            | Self::Store
            | Self::Release
            | Self::Enqueue
            | Self::Dequeue
            | Self::Acknowledge
            | Self::Enter
            | Self::Leave
            | Self::Txn => true,
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
