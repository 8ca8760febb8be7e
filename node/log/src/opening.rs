//! Opening a directory: finish what was begun, read, and make durable what was read.

use node_wire::ids::Zxid;

use crate::end::{End, MAX_BATCH_BYTES, end_of};
use crate::epochs::Epochs;
use crate::error::LogError;
use crate::records::{LogFile, Tail};
use crate::recovery::{History, Recovered, Repairs, TornTail};
use crate::storage::Storage;
use crate::{durable, names, rewrite};

/// What the writer needs to go on.
#[derive(Debug)]
pub(crate) struct Opened<F> {
    pub(crate) epochs: Epochs,
    pub(crate) end: End<F>,
}

pub(crate) fn open<S: Storage>(storage: &S) -> Result<(Opened<S::File>, Recovered), LogError> {
    let mut repairs = Repairs::default();
    let listed = durable::list(storage)?;
    repairs.removed_temporary = remove_temporary(storage, &listed)?;
    if let Some(zxid) = rewrite::interrupted_install(storage, &listed)? {
        // Before the old history goes it is certain that the new one can stand in its place.
        Epochs::open(storage, &listed, zxid)?.check_history(zxid)?;
        rewrite::complete_install(storage, &listed, zxid)?;
        repairs.completed_install = true;
    }
    let listed = durable::list(storage)?;
    let mut history = History::read(storage, &listed, Zxid(u64::MAX))?;
    let epochs = Epochs::open(storage, &listed, history.last())?;
    epochs.check_history(history.last())?;
    repairs.torn_tail = cut_torn_tail(storage, &mut history)?;
    repairs.damaged_snapshots.clone_from(&history.damaged_snapshots);
    if let Some((file, earlier)) = history.files.split_last() {
        for file in earlier {
            durable::sync_file(storage, &file.name)?;
        }
        make_durable(storage, file)?;
    }
    // Renames and removals of a killed process may not be durable either.
    durable::sync_dir(storage)?;

    let opened = Opened { epochs, end: end_of(storage, &history)? };
    let digest = history.digest;
    let (image, entries) = history.into_parts();
    let (accepted_epoch, current_epoch) = (epochs.accepted, epochs.current);
    Ok((opened, Recovered { accepted_epoch, current_epoch, image, digest, entries, repairs }))
}

fn remove_temporary<S: Storage>(storage: &S, listed: &[String]) -> Result<Vec<String>, LogError> {
    let temporary: Vec<String> = listed.iter().filter(|name| names::is_temporary(name)).cloned().collect();
    for name in &temporary {
        durable::remove(storage, name)?;
    }
    Ok(temporary)
}

/// Cuts an interrupted write off the last file; removes the file when nothing is left in it.
fn cut_torn_tail<S: Storage>(storage: &S, history: &mut History) -> Result<Option<TornTail>, LogError> {
    let Some(file) = history.files.last_mut() else { return Ok(None) };
    let reason = match std::mem::replace(&mut file.tail, Tail::Clean) {
        Tail::Torn { reason } => Some(reason),
        Tail::Clean | Tail::Damaged { .. } => None,
    };
    let offset = if file.records.is_empty() { 0 } else { file.end };
    let cut_bytes = file.len.saturating_sub(offset);
    let name = file.name.clone();
    if file.records.is_empty() {
        durable::remove(storage, &name)?;
        history.files.pop();
    } else if reason.is_some() {
        durable::cut(storage, &name, offset)?;
        file.len = offset;
    }
    Ok(reason.map(|reason| TornTail { file: name, offset, cut_bytes, reason }))
}

/// Makes a file durable as it was read: what a killed process wrote may be in the page cache only.
///
/// To synchronize it is not enough. When the last synchronization of that process failed, the kernel shows
/// the bytes, takes them for stored, and will not store them. So everything that was in the last write is
/// written again; earlier files are safe, because the writer stops at its first failure. A record that is
/// longer than the usual write was written alone.
fn make_durable<S: Storage>(storage: &S, file: &LogFile) -> Result<(), LogError> {
    let name = &file.name;
    let end = usize::try_from(file.end).unwrap_or(usize::MAX).min(file.content.len());
    let before_last = file.records.iter().rev().nth(1).map_or(0, |record| record.end);
    let before_last = usize::try_from(before_last).unwrap_or(0);
    let start = end.saturating_sub(MAX_BATCH_BYTES).min(before_last);
    let offset = u64::try_from(start).unwrap_or(u64::MAX);
    let mut handle = storage.open(name).map_err(LogError::io("open", name))?;
    let again = &file.content[start..end];
    storage.write_at(&mut handle, offset, again).map_err(LogError::io("write", name))?;
    storage.sync_all(&mut handle).map_err(LogError::io("synchronize", name))
}
