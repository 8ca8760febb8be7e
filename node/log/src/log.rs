//! The one writer of a member's data directory.

use bytes::BytesMut;
use node_wire::ids::{Epoch, Zxid};
use node_wire::logfile::{HEADER_LEN, RECORD_OVERHEAD};
use node_wire::snapshot::Image;
use node_wire::txn::Entry;

use crate::end::{End, MAX_BATCH_BYTES, OpenFile};
use crate::epochs::{self, Epochs};
use crate::error::LogError;
use crate::names::{ACCEPTED, CURRENT};
use crate::recovery::{self, Recovered};
use crate::storage::Storage;
use crate::synced::{Mark, Note};
use crate::{durable, names, opening, records, rewrite, snapshots};

/// How a log is kept.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A log file grows by this much at once; 0 lets it grow with each write. Only the length is set, so
    /// synchronizing need not record a new length each time: on ext4 that takes a third off the latency.
    /// Zeros behind the last record mean its end, as in ZooKeeper's files. Of them some 256 KiB are written,
    /// too.
    pub preallocate_bytes: u64,
    /// A log file that reached this size is followed by a new one.
    pub roll_bytes: u64,
    /// Note the synchronized position in a file, for [`cut_to_synced`](crate::cut_to_synced).
    pub note_synced: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { preallocate_bytes: 4 << 20, roll_bytes: 64 << 20, note_synced: false }
    }
}

/// A place in the log: everything before it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncedPosition {
    /// The name of the log file.
    pub file: String,
    /// The end of its last durable record.
    pub offset: u64,
}

/// The transaction log of one member, with its epoch files.
///
/// Operations happen in the order of the calls. [`append`](Self::append) only buffers; everything else is
/// durable when it returns, and so is all that was appended before it (but [`install`](Self::install) throws
/// that away). After a failed write the log is poisoned and answers every call with
/// [`LogError::Poisoned`]: what the disk holds is unknown, and only opening the log again can tell.
#[derive(Debug)]
pub struct Log<S: Storage> {
    storage: S,
    options: LogOptions,
    epochs: Epochs,
    /// Encoded records that are not written yet; with the file's header, where they begin a new file.
    batch: BytesMut,
    /// Where the log goes on. Its file and mark are of what is written; its last entry may be in the batch
    /// yet.
    end: End<S::File>,
    /// The entry that begins the next file, when the batch does.
    new_file: Option<Zxid>,
    /// Whether the next entry should begin a new file.
    roll: bool,
    last_durable: Zxid,
    note: Option<Note<S::File>>,
    /// The first failure.
    poisoned: Option<String>,
}

impl<S: Storage> Log<S> {
    /// Opens the log, puts right what a crash left behind, and reads what it holds. All of that is durable
    /// when this returns, even what a killed process had written but not synchronized.
    ///
    /// A new directory is a log without entries. What an interrupted write left at the end of the last file
    /// is cut off and told in [`Recovered::repairs`]; damage elsewhere, holes, and epoch files that are
    /// missing or can't belong to this history are refused. After a crash currentEpoch may be below
    /// acceptedEpoch, and below the epochs of entries that were synchronized from a leader; never the other
    /// way round. The epoch files have no checksum, being ZooKeeper's: a digit that the disk changed is
    /// believed.
    pub fn open(storage: S, options: LogOptions) -> Result<(Self, Recovered), LogError> {
        let (opened, recovered) = opening::open(&storage)?;
        let mut log = Self {
            storage,
            options,
            epochs: opened.epochs,
            batch: BytesMut::new(),
            last_durable: opened.end.last,
            end: opened.end,
            new_file: None,
            roll: false,
            note: None,
            poisoned: None,
        };
        if options.note_synced {
            log.note = Some(Note::open(&log.storage)?);
            log.write_note()?;
        }
        Ok((log, recovered))
    }

    /// Takes an entry into the batch. It is durable after the next [`flush_and_sync`](Self::flush_and_sync).
    pub fn append(&mut self, entry: &Entry) -> Result<(), LogError> {
        self.guarded(|log| log.append_now(entry))
    }

    /// Writes the batch with one write and makes it durable with one synchronization. Does nothing when the
    /// batch is empty.
    pub fn flush_and_sync(&mut self) -> Result<(), LogError> {
        self.guarded(Self::flush_now)
    }

    /// Begins a new log file with the next entry. Called with each snapshot, so that old files can be purged.
    pub fn roll(&mut self) -> Result<(), LogError> {
        self.guarded(|log| {
            log.flush_now()?;
            log.roll = true;
            Ok(())
        })
    }

    /// Drops every entry behind `to`. Snapshots that are newer are removed first. A crash on the way leaves
    /// the history as it was, or cut somewhere behind `to`, or cut at `to`.
    ///
    /// Fails with [`LogError::CannotTruncate`], and changes nothing, when no snapshot at or before `to` with
    /// all entries behind it is left to rebuild that state from.
    pub fn truncate(&mut self, to: Zxid) -> Result<(), LogError> {
        self.guarded(|log| {
            log.flush_now()?;
            if to >= log.end.last {
                return Ok(());
            }
            rewrite::truncate(&log.storage, &mut log.end, to)?;
            log.last_durable = log.end.last;
            log.write_note()
        })
    }

    /// Replaces the whole history, log and snapshots, by this tree. A crash on the way leaves the old history
    /// or the new one, never a mix: [`open`](Self::open) completes what had become durable. Entries that were
    /// appended but not synchronized are dropped with the rest.
    pub fn install(&mut self, image: &Image) -> Result<(), LogError> {
        self.guarded(|log| {
            log.batch.clear();
            log.new_file = None;
            log.end.file = None;
            log.roll = false;
            rewrite::install(&log.storage, image)?;
            log.end.mark = None;
            log.end.last = image.zxid;
            log.last_durable = image.zxid;
            log.write_note()
        })
    }

    /// Writes the acceptedEpoch file. It never goes back.
    pub fn set_accepted_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        self.guarded(|log| {
            let limit = log.epochs.accepted;
            if epoch < limit {
                let (file, limit_file) = (ACCEPTED, ACCEPTED);
                return Err(LogError::EpochOrder { file, asked: epoch, limit_file, limit });
            }
            log.flush_now()?;
            if epoch != limit {
                epochs::write(&log.storage, ACCEPTED, epoch)?;
                log.epochs.accepted = epoch;
            }
            Ok(())
        })
    }

    /// Writes the currentEpoch file, behind everything that was appended. It never goes back, nor past the
    /// accepted epoch.
    pub fn set_current_epoch(&mut self, epoch: Epoch) -> Result<(), LogError> {
        self.guarded(|log| {
            let Epochs { accepted, current } = log.epochs;
            let file = CURRENT;
            if epoch < current {
                return Err(LogError::EpochOrder { file, asked: epoch, limit_file: CURRENT, limit: current });
            }
            if epoch > accepted {
                return Err(LogError::EpochOrder {
                    file,
                    asked: epoch,
                    limit_file: ACCEPTED,
                    limit: accepted,
                });
            }
            log.flush_now()?;
            if epoch != current {
                epochs::write(&log.storage, CURRENT, epoch)?;
                log.epochs.current = epoch;
            }
            Ok(())
        })
    }

    /// Deletes what the newest `keep_snapshots` snapshots make superfluous: see [`purge`](crate::purge).
    pub fn purge(&self, keep_snapshots: usize) -> Result<Vec<String>, LogError> {
        match &self.poisoned {
            Some(cause) => Err(LogError::Poisoned { cause: cause.clone() }),
            None => snapshots::purge(&self.storage, keep_snapshots),
        }
    }

    /// Deletes what the snapshot at `base` makes superfluous, if it is still there: the second half of
    /// [`purge`](crate::purge), behind [`oldest_kept`](crate::oldest_kept).
    pub fn purge_before(&self, base: Zxid) -> Result<Vec<String>, LogError> {
        match &self.poisoned {
            Some(cause) => Err(LogError::Poisoned { cause: cause.clone() }),
            None => snapshots::purge_before(&self.storage, base),
        }
    }

    /// Up to where the log is durable; none when it has no entries.
    pub fn synced_position(&self) -> Option<SyncedPosition> {
        self.end.mark.map(|mark| SyncedPosition { file: names::log(mark.file), offset: mark.offset })
    }

    /// The zxid of the last entry, durable or not.
    pub fn last_zxid(&self) -> Zxid {
        self.end.last
    }

    /// The zxid of the last durable entry.
    pub fn last_durable_zxid(&self) -> Zxid {
        self.last_durable
    }

    /// How many bytes wait for [`flush_and_sync`](Self::flush_and_sync).
    pub fn unsynced_bytes(&self) -> usize {
        self.batch.len()
    }

    /// The directory, for [`write_snapshot`](crate::write_snapshot) on another thread.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Runs an operation unless one has failed before, and lets none run after this one if the disk fails it.
    fn guarded(&mut self, operation: impl FnOnce(&mut Self) -> Result<(), LogError>) -> Result<(), LogError> {
        if let Some(cause) = &self.poisoned {
            return Err(LogError::Poisoned { cause: cause.clone() });
        }
        let outcome = operation(self);
        if let Err(error @ LogError::Io { .. }) = &outcome {
            self.poisoned = Some(error.to_string());
        }
        outcome
    }

    fn append_now(&mut self, entry: &Entry) -> Result<(), LogError> {
        let (zxid, size) = (entry.zxid(), entry.bytes.len());
        let last = self.end.last;
        if zxid <= last {
            return Err(LogError::OutOfOrder { zxid, last });
        }
        if size > records::MAX_RECORD_BYTES {
            return Err(LogError::TooLarge { zxid, size });
        }
        if self.batch.len() + size + RECORD_OVERHEAD + HEADER_LEN > MAX_BATCH_BYTES {
            self.flush_now()?;
        }
        let follows = recovery::follows(last, zxid);
        // An entry behind a gap stays in the file of the one before it: at the beginning of a file it could
        // not be told from one whose predecessors are lost.
        if self.roll && follows && self.batch.is_empty() {
            self.end.file = None;
            self.roll = false;
        }
        if self.end.file.is_none() && self.new_file.is_none() {
            if !follows {
                return Err(LogError::Hole { file: names::log(zxid), after: last, found: zxid });
            }
            records::encode_header(&mut self.batch);
            self.new_file = Some(zxid);
        }
        records::encode_record(entry, &mut self.batch);
        self.end.last = zxid;
        Ok(())
    }

    fn flush_now(&mut self) -> Result<(), LogError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let created = self.new_file.take();
        if let Some(first) = created {
            let name = names::log(first);
            let handle = self.storage.create(&name).map_err(LogError::io("create", name))?;
            self.end.file = Some(OpenFile { first, handle, end: 0, allocated: 0, filled: 0 });
        }
        let Some(file) = &mut self.end.file else { unreachable!("a batch has a file to go to") };
        file.write(&self.storage, &mut self.batch, self.options.preallocate_bytes)?;
        if created.is_some() {
            durable::sync_dir(&self.storage)?;
        }
        self.roll |= file.end >= self.options.roll_bytes;
        self.end.mark = Some(Mark { file: file.first, offset: file.end });
        self.batch.clear();
        self.last_durable = self.end.last;
        self.write_note()
    }

    fn write_note(&mut self) -> Result<(), LogError> {
        match &mut self.note {
            Some(note) => note.write(&self.storage, self.end.mark),
            None => Ok(()),
        }
    }
}
