//! From files to a history.
//!
//! The newest sound snapshot is the base, and the entries behind it in the log are what a member has. What is
//! found is believed only as far as it proves itself:
//!
//! - every record has its checksum, every file begins with the entry in its name, zxids ascend;
//! - where one file ends and the next begins, and behind the base, entries follow each other without a gap
//!   (inside a file a gap is taken as written: the file was written in one piece);
//! - a damaged snapshot is stepped over only when the log holds the very entry that it is named after, and
//!   all that was before it: behind an older snapshot, or from the first entry that there can be. A snapshot
//!   of zxid 0 holds no entry, so that a log from the first entry on has all that it had. A log that
//!   begins with a later epoch may have been purged, and a member that stands on nothing would call its
//!   remains the whole.
//!
//! A write that a crash interrupted leaves a damaged record at the end of the last file with nothing sound
//! behind it. It was never reported as durable and is cut off. Damage anywhere else means that the disk lost
//! something which may have been acknowledged: that is refused, because a member that forgets makes the
//! others forget too. One case can't be told apart and counts as interrupted: damage to the very last record.

use node_wire::ids::{Epoch, Zxid};
use node_wire::snapshot::{Image, SnapshotFile, ZxidDigest};
use node_wire::txn::Entry;

use crate::error::{Evidence, LogError};
use crate::names;
use crate::records::{LogFile, Tail};
use crate::snapshots;
use crate::storage::Storage;

/// What was found on disk.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The highest epoch this member promised to follow.
    pub accepted_epoch: Epoch,
    /// The epoch of the last leader whose history this member holds.
    pub current_epoch: Epoch,
    /// The newest sound snapshot; empty for a new member.
    pub image: Image,
    /// The digest of the tree that its writer had at that zxid, which for a fuzzy snapshot lies behind its
    /// own.
    pub digest: Option<ZxidDigest>,
    /// Every logged entry behind the snapshot, ascending.
    pub entries: Vec<Entry>,
    /// What had to be put in order, for the operator.
    pub repairs: Repairs,
}

/// What opening a log put in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// An interrupted write that was cut off.
    pub torn_tail: Option<TornTail>,
    /// Snapshots that were stepped over: their names and what is wrong with them.
    pub damaged_snapshots: Vec<(String, String)>,
    /// Whether an interrupted [`install`](crate::Log::install) was completed.
    pub completed_install: bool,
    /// Files that were half-written and have been removed.
    pub removed_temporary: Vec<String>,
}

/// The end of a log that was cut off because a crash interrupted its write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The log file.
    pub file: String,
    /// Where it ends now; 0 when nothing was left and the file is gone.
    pub offset: u64,
    /// How many bytes went, padding included.
    pub cut_bytes: u64,
    /// What was wrong with the first of them.
    pub reason: String,
}

/// A base and the log files behind it.
#[derive(Debug)]
pub(crate) struct History {
    /// The base; empty when there is no snapshot.
    pub(crate) image: Image,
    /// The digest that stands in it.
    pub(crate) digest: Option<ZxidDigest>,
    /// Log files from the one that may hold the base's own entry to the last. At most the last is torn.
    pub(crate) files: Vec<LogFile>,
    /// The file before the first of them, not read.
    pub(crate) earlier: Option<Zxid>,
    /// Snapshots that were stepped over.
    pub(crate) damaged_snapshots: Vec<(String, String)>,
}

impl History {
    /// Reads the history from the newest sound snapshot at or before `limit`.
    pub(crate) fn read<S: Storage>(storage: &S, names: &[String], limit: Zxid) -> Result<Self, LogError> {
        let (SnapshotFile { image, digest }, damaged) = snapshots::newest_sound(storage, names, limit)?;
        let base = image.zxid;
        let logs = names::logs(names);
        let start = logs.iter().rposition(|(first, _)| *first <= base).unwrap_or(0);
        let earlier = start.checked_sub(1).map(|index| logs[index].0);
        let mut files = Vec::new();
        for (first, name) in logs.into_iter().skip(start) {
            files.push(LogFile::read(storage, first, name)?);
        }
        check_tails(&files, base)?;
        check_seams(&files, base)?;
        let damaged_snapshots =
            damaged.iter().map(|(_, name, reason)| (name.clone(), reason.clone())).collect();
        let history = Self { image, digest, files, earlier, damaged_snapshots };
        for (zxid, file, reason) in damaged {
            // Of before the first transaction it holds nothing, and only what is behind it can be missing.
            let is_held = zxid == Zxid::ZERO || history.records().any(|entry| entry.zxid() == zxid);
            if !history.reaches_back() || !is_held {
                return Err(LogError::DamagedSnapshot { file, reason });
            }
        }
        Ok(history)
    }

    /// Whether nothing can be missing before its first entry: a sound snapshot stands there, or it is the
    /// first of all.
    fn reaches_back(&self) -> bool {
        let first_of_all =
            || self.records().next().is_some_and(|entry| entry.zxid() == Zxid::new(Epoch(1), 1));
        self.image.zxid != Zxid::ZERO || first_of_all()
    }

    /// The last zxid that it holds.
    pub(crate) fn last(&self) -> Zxid {
        self.records().map(Entry::zxid).max().unwrap_or_default().max(self.image.zxid)
    }

    fn records(&self) -> impl Iterator<Item = &Entry> {
        self.files.iter().flat_map(|file| &file.records).map(|record| &record.entry)
    }

    /// Takes it apart: the base, and the entries behind it.
    pub(crate) fn into_parts(self) -> (Image, Vec<Entry>) {
        let base = self.image.zxid;
        let entries = self
            .files
            .into_iter()
            .flat_map(|file| file.records)
            .map(|record| record.entry)
            .filter(|entry| entry.zxid() > base)
            .collect();
        (self.image, entries)
    }
}

/// Whether nothing can be missing between two zxids, as far as they themselves tell: a counter goes up by
/// one, a new epoch begins with 1.
pub(crate) fn follows(after: Zxid, zxid: Zxid) -> bool {
    if zxid.epoch() == after.epoch() {
        after.counter().checked_add(1) == Some(zxid.counter())
    } else {
        zxid.epoch() > after.epoch() && zxid.counter() == 1
    }
}

/// Only the last file may be torn, and only where no snapshot shows that more of it had been durable.
fn check_tails(files: &[LogFile], base: Zxid) -> Result<(), LogError> {
    for (index, file) in files.iter().enumerate() {
        let is_last = index + 1 == files.len();
        let reached = file.last().unwrap_or_default();
        let (reason, evidence) = match &file.tail {
            Tail::Clean => continue,
            Tail::Torn { reason } if !is_last => (reason, Evidence::FileBehind),
            Tail::Torn { reason } if file.first <= base && reached < base => {
                (reason, Evidence::SnapshotAhead)
            }
            Tail::Torn { .. } => continue,
            Tail::Damaged { reason, evidence } => (reason, evidence.clone()),
        };
        let (name, reason) = (file.name.clone(), reason.clone());
        return Err(LogError::Damaged { file: name, offset: file.end, reason, evidence });
    }
    Ok(())
}

/// Nothing may be missing where the base or a file ends and the next file begins.
fn check_seams(files: &[LogFile], base: Zxid) -> Result<(), LogError> {
    let mut after = base;
    for file in files {
        let (Some(record), Some(last)) = (file.records.first(), file.last()) else { continue };
        let found = record.entry.zxid();
        if found > base && !follows(after, found) {
            return Err(LogError::Hole { file: file.name.clone(), after, found });
        }
        after = after.max(last);
    }
    Ok(())
}
