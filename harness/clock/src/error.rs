//! What can go wrong, and what to do about it.

use std::{fmt, io};

/// Why a clock was not shifted, or not read.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The process does not exist, or ended meanwhile.
    #[error("process {pid} is gone")]
    Gone {
        /// The process.
        pid: u32,
    },
    /// The kernel does not let this process trace that one.
    #[error("process {pid} can't be traced: {advice}")]
    Denied {
        /// The process.
        pid: u32,
        /// What forbids it, as far as it can be told, and what to do.
        advice: String,
    },
    /// The process or the machine is of a kind whose clock can't be shifted.
    #[error("the clock of process {pid} can't be shifted: {reason}")]
    Unsupported {
        /// The process.
        pid: u32,
        /// What about it.
        reason: &'static str,
    },
    /// Somebody else has changed the clock functions of the process.
    #[error(
        "the vDSO of process {pid} was already changed, but not by this version of this program: start the \
            process again"
    )]
    Foreign {
        /// The process.
        pid: u32,
    },
    /// No moment was found in which all threads stood outside the clock functions, or one did not stop at
    /// all. Nothing was changed.
    #[error("process {pid} could not be held at a harmless point ({state}): try again when it is less busy")]
    Busy {
        /// The process.
        pid: u32,
        /// What was in the way.
        state: &'static str,
    },
    /// An offset beyond [`crate::MAX_OFFSET_NS`].
    #[error("an offset of {offset_ns} ns is too far: at most 100 years either way")]
    TooFar {
        /// The offset.
        offset_ns: i64,
    },
    /// A read or write in the target, or of what the kernel tells about it, failed.
    #[error("failed to {action} of process {pid}")]
    Io {
        /// The process.
        pid: u32,
        /// What was tried.
        action: &'static str,
        /// What came of it.
        source: io::Error,
    },
    /// The thread that makes all ptrace calls could not be started, or ended.
    #[error("the thread that traces could not be started")]
    NoThread,
}

/// Why clocks can't be shifted here, and what to do. Its `Display` is meant for people.
#[derive(Debug)]
pub struct Unavailable(pub(crate) String);

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

impl From<ClockError> for Unavailable {
    fn from(error: ClockError) -> Self {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            text = format!("{text}: {source}");
            cause = source.source();
        }
        Self(text)
    }
}
