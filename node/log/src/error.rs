//! What can go wrong, in words that name the file and say what to do.

use std::io;

use node_wire::ids::{Epoch, Zxid};
use thiserror::Error;

/// Why the log can't be opened, or can't do what was asked.
///
/// Messages are fragments that fit after "failed to".
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The disk refused. Once the log is open this ends it: see [`LogError::Poisoned`].
    #[error("{action} {file}: {source}{}", remedy(.source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// What the system said.
        source: io::Error,
    },

    /// An earlier write or synchronization failed. What the disk holds is unknown until the log is opened
    /// again, and a synchronization that is tried a second time may lie.
    #[error("use the log after it failed to {cause}; restart the member once the disk is well")]
    Poisoned {
        /// The first failure.
        cause: String,
    },

    /// Entries exist, but the member's promises do not.
    #[error(
        "find the file {missing} beside the log; without it this member has forgotten which leader it \
         promised to follow and could help make a second one: restore the file from a backup of this member, \
         or empty its data directory and let it join under a new id"
    )]
    NoEpochFiles {
        /// The file that is not there.
        missing: &'static str,
    },

    /// An epoch file does not hold one decimal number.
    #[error(
        "read an epoch from {file}, which holds {content:?}; restore the file from a backup of this member"
    )]
    BadEpochFile {
        /// The file.
        file: &'static str,
        /// Its beginning.
        content: String,
    },

    /// The two epoch files contradict each other.
    #[error(
        "reconcile currentEpoch {current} with the lower acceptedEpoch {accepted}; the files are not of one \
         moment: restore both from the same backup of this member"
    )]
    EpochsDisagree {
        /// From acceptedEpoch.
        accepted: Epoch,
        /// From currentEpoch.
        current: Epoch,
    },

    /// The history is of an epoch that this member never accepted.
    #[error(
        "reconcile the last zxid {last} with the lower acceptedEpoch {accepted}; the epoch files are older \
         than the log: restore both from the same backup of this member"
    )]
    EpochBehindLog {
        /// The last zxid of the history.
        last: Zxid,
        /// From acceptedEpoch.
        accepted: Epoch,
    },

    /// A record in the middle of the history is damaged: entries that may have been acknowledged would be
    /// lost if the log was cut there.
    #[error(
        "read {file} at byte {offset}: {reason}, and {evidence}; cutting the log there could lose what was \
         acknowledged: restore the file, or, when the other members alone are a majority in service, move \
         everything but acceptedEpoch away and let this member copy the history from them"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where the first damaged record begins.
        offset: u64,
        /// What is wrong with it.
        reason: String,
        /// Why this is not the end of an interrupted write.
        evidence: Evidence,
    },

    /// Two entries do not follow each other although nothing between them is left.
    #[error(
        "find the entries between {after} and {found} in {file}; a log file or a snapshot is missing: \
         restore it, or, when the other members alone are a majority in service, move everything but \
         acceptedEpoch away and let this member copy the history from them"
    )]
    Hole {
        /// The file that begins behind the hole.
        file: String,
        /// The last zxid before the hole.
        after: Zxid,
        /// The first zxid behind it.
        found: Zxid,
    },

    /// The newest snapshots are damaged and the log does not hold what they held.
    #[error(
        "read {file}: {reason}, and the log does not reach back behind it; restore the file, or, when the \
         other members alone are a majority in service, move everything but acceptedEpoch away and let this \
         member copy the history from them"
    )]
    DamagedSnapshot {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },

    /// Two whole trees are about to replace the history, and which is the later one nobody can say.
    #[error(
        "tell which of {file} and {other} is to replace the history; a member leaves one at most, so the \
         directory is not of one moment: restore all of it from one backup of this member, or, when the \
         other members alone are a majority in service, move everything but acceptedEpoch away and let this \
         member copy the history from them"
    )]
    TwoInstallations {
        /// One of the files.
        file: String,
        /// Another one.
        other: String,
    },

    /// An entry does not come after the last one.
    #[error("append {zxid} behind {last}: zxids must ascend")]
    OutOfOrder {
        /// The entry's.
        zxid: Zxid,
        /// The last one in the log.
        last: Zxid,
    },

    /// An entry is too large to be read back.
    #[error("append {zxid}: its {size} bytes are more than the log takes in one record")]
    TooLarge {
        /// The entry's.
        zxid: Zxid,
        /// Its encoded size.
        size: usize,
    },

    /// The history can't be cut there because the snapshots and entries that would rebuild it are gone.
    /// Nothing was changed.
    #[error(
        "cut the log back to {to}: what that state could be rebuilt from is gone; the leader must send its \
         snapshot"
    )]
    CannotTruncate {
        /// The zxid asked for.
        to: Zxid,
    },

    /// An epoch would go backwards, or the current one past the accepted one.
    #[error("set {file} to {asked} while {limit_file} is {limit}: epochs only go forward")]
    EpochOrder {
        /// The file to be written.
        file: &'static str,
        /// The epoch asked for.
        asked: Epoch,
        /// The file that forbids it.
        limit_file: &'static str,
        /// What it holds.
        limit: Epoch,
    },

    /// The note of the synchronized position can't be read.
    #[error("read the note {file}, which holds {content:?}; it is not needed to open the log: remove it")]
    BadSyncedNote {
        /// The file.
        file: &'static str,
        /// Its beginning.
        content: String,
    },
}

impl LogError {
    /// Names the file and what was tried on it.
    pub(crate) fn io(action: &'static str, file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { action, file, source }
    }

    /// Whether the disk is full, so that space is what the operator has to make.
    pub fn is_storage_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_full(source))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn remedy(error: &io::Error) -> &'static str {
    if is_full(error) { "; make space on the disk and restart the member" } else { "" }
}

/// Why a damaged record is not the end of a write that a crash interrupted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Evidence {
    /// Something sound was written behind it. (A power failure can do this too, when the disk stored the
    /// pages of the last write out of order; nothing tells the two apart.)
    #[error("a sound record follows at byte {0}")]
    RecordBehind(u64),
    /// The writer went on to another file.
    #[error("a later log file follows")]
    FileBehind,
    /// A snapshot is only taken of what is durable.
    #[error("a snapshot shows that more of it had been durable")]
    SnapshotAhead,
    /// Its checksum holds.
    #[error("it is as it was written")]
    AsWritten,
}
