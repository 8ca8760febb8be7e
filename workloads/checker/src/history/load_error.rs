//! Why a history could not be read.
//!
//! Every reader of every format fails with this error, so it stands below all of them.

use super::PairError;

/// Why a history could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The reader failed.
    #[error("read the history: {0}")]
    Io(#[from] std::io::Error),
    /// A line is not an event.
    #[error("line {line}: {reason}")]
    Malformed {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A line contradicts those before it.
    #[error("line {line}: {source}")]
    Pair {
        /// The line's number, from 1.
        line: u64,
        /// The contradiction.
        source: PairError,
    },
    /// No line at all.
    #[error("the history is empty")]
    Empty,
    /// Something, and nothing in it is an operation.
    #[error("nothing in it was read as an operation: {0}")]
    NoOperation(String),
}

/// The position inside one line is the column; the line that serde counts is always 1.
pub(super) fn in_one_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column", " at column")
}
