//! The end of a log: where it goes on, and the file that takes what comes next.
//!
//! The writer ([`Log`](crate::Log)) writes there. Opening a log finds its end behind what was read.
//! Truncating it finds the end behind what is left.

use bytes::BytesMut;
use node_wire::ids::Zxid;

use crate::error::LogError;
use crate::names;
use crate::records::LogFile;
use crate::recovery::History;
use crate::storage::Storage;
use crate::synced::Mark;

/// One write to a log file never exceeds this many bytes: [`Log::append`](crate::Log::append) flushes first.
/// Only a record that is longer by itself does, and is written alone.
pub(crate) const MAX_BATCH_BYTES: usize = 4 << 20;

/// Zeros are written up to a multiple of this, together with the records before them: what comes next
/// overwrites them, and synchronizing that need not record new blocks. With three members on one ext4 that
/// halves the latency of records of 16 KiB; much more of it would be felt by those who wait for the zeros.
const FILLED_BYTES: u64 = 256 << 10;

/// Where a log goes on.
#[derive(Debug)]
pub(crate) struct End<F> {
    /// The last entry, durable or not; the snapshot's zxid when none is behind it.
    pub(crate) last: Zxid,
    /// The file that takes the next entry; none when that begins a new one.
    pub(crate) file: Option<OpenFile<F>>,
    /// Up to where the log is durable.
    pub(crate) mark: Option<Mark>,
}

/// A log file that is being written.
#[derive(Debug)]
pub(crate) struct OpenFile<F> {
    pub(crate) first: Zxid,
    pub(crate) handle: F,
    /// The end of the last record.
    pub(crate) end: u64,
    /// The length of the file, padding included.
    pub(crate) allocated: u64,
    /// Up to here zeros were written.
    pub(crate) filled: u64,
}

impl<F> OpenFile<F> {
    /// Writes at the end and makes it durable. Leaves zeros behind the batch.
    pub(crate) fn write<S: Storage<File = F>>(
        &mut self,
        storage: &S,
        batch: &mut BytesMut,
        preallocate: u64,
    ) -> Result<(), LogError> {
        let name = names::log(self.first);
        let records = batch.len();
        let end = self.end.saturating_add(u64::try_from(records).unwrap_or(u64::MAX));
        if preallocate > 0 && end > self.allocated {
            let allocated = end.next_multiple_of(preallocate);
            storage.set_len(&mut self.handle, allocated).map_err(LogError::io("extend", &name))?;
            self.allocated = allocated;
        }
        if preallocate > 0 && end > self.filled {
            self.filled = end.next_multiple_of(FILLED_BYTES).min(self.allocated);
            let zeros = usize::try_from(self.filled.saturating_sub(end)).unwrap_or(0);
            batch.resize(records + zeros, 0);
        }
        let written =
            storage.write_at(&mut self.handle, self.end, batch).map_err(LogError::io("write", &name));
        batch.truncate(records);
        written?;
        storage.sync_data(&mut self.handle).map_err(LogError::io("synchronize", &name))?;
        self.end = end;
        self.allocated = self.allocated.max(end);
        Ok(())
    }
}

/// Finds the end of a history whose files are durable and clean.
pub(crate) fn end_of<S: Storage>(storage: &S, history: &History) -> Result<End<S::File>, LogError> {
    let last = history.last();
    let Some(file) = history.files.last() else {
        // What lies before the base was not looked at, and nothing of it is ever cut.
        let mark = history.earlier.map(|file| Mark { file, offset: u64::MAX });
        return Ok(End { last, file: None, mark });
    };
    let LogFile { first, name, end, len, .. } = file;
    let mark = Some(Mark { file: *first, offset: *end });
    // Where the log ends before the snapshot, the next entry would leave a gap inside the file.
    if file.last() != Some(last) {
        return Ok(End { last, file: None, mark });
    }
    let handle = storage.open(name).map_err(LogError::io("open", name))?;
    let file = OpenFile { first: *first, handle, end: *end, allocated: *len, filled: *end };
    Ok(End { last, file: Some(file), mark })
}
