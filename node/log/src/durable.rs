//! The few steps on a directory from which everything crash-safe here is made.

use bytes::BytesMut;

use crate::error::LogError;
use crate::names;
use crate::storage::Storage;

/// All names in the directory.
pub(crate) fn list<S: Storage>(storage: &S) -> Result<Vec<String>, LogError> {
    storage.list().map_err(LogError::io("list", "the data directory"))
}

/// Makes creations, renames and removals durable.
pub(crate) fn sync_dir<S: Storage>(storage: &S) -> Result<(), LogError> {
    storage.sync_dir().map_err(LogError::io("synchronize", "the data directory"))
}

/// Removes a file; durable only after [`sync_dir`].
pub(crate) fn remove<S: Storage>(storage: &S, name: &str) -> Result<(), LogError> {
    storage.remove(name).map_err(LogError::io("remove", name))
}

/// Renames a file, durably.
pub(crate) fn rename<S: Storage>(storage: &S, from: &str, to: &str) -> Result<(), LogError> {
    storage.rename(from, to).map_err(LogError::io("rename", from))?;
    sync_dir(storage)
}

/// Gives a file its whole content, durably: a crash leaves what was there before or all of this.
///
/// The content is synchronized under a temporary name, so the real name never stands for half a file.
pub(crate) fn replace<S: Storage>(storage: &S, name: &str, content: &[u8]) -> Result<(), LogError> {
    replace_by(storage, name, |buffer| {
        buffer.extend_from_slice(content);
        false
    })
}

/// Like [`replace`], with content that comes piece by piece: `next` puts one into the empty buffer and
/// answers whether more will come.
pub(crate) fn replace_by<S: Storage>(
    storage: &S,
    name: &str,
    next: impl FnMut(&mut BytesMut) -> bool,
) -> Result<(), LogError> {
    let temporary = names::temporary(name);
    let written = write_whole(storage, &temporary, next);
    if written.is_err() {
        // A full disk needs the space back. The first error is the one to tell; what stays is removed when
        // the log is next opened.
        let _ = storage.remove(&temporary);
    }
    written?;
    rename(storage, &temporary, name)
}

/// A long file is synchronized as often as this many bytes are written: all at once would keep the disk from
/// whoever else waits for it, above all the log.
const PACE: u64 = 4 << 20;

fn write_whole<S: Storage>(
    storage: &S,
    name: &str,
    mut next: impl FnMut(&mut BytesMut) -> bool,
) -> Result<(), LogError> {
    let mut file = storage.create(name).map_err(LogError::io("create", name))?;
    let mut buffer = BytesMut::new();
    let mut offset = 0u64;
    let mut synced = 0u64;
    loop {
        buffer.clear();
        let more = next(&mut buffer);
        storage.write_at(&mut file, offset, &buffer).map_err(LogError::io("write", name))?;
        offset = offset.saturating_add(u64::try_from(buffer.len()).unwrap_or(u64::MAX));
        if !more {
            return storage.sync_all(&mut file).map_err(LogError::io("synchronize", name));
        }
        if offset - synced >= PACE {
            storage.sync_data(&mut file).map_err(LogError::io("synchronize", name))?;
            synced = offset;
        }
    }
}

/// Cuts a file, durably.
pub(crate) fn cut<S: Storage>(storage: &S, name: &str, len: u64) -> Result<(), LogError> {
    let mut file = storage.open(name).map_err(LogError::io("open", name))?;
    storage.set_len(&mut file, len).map_err(LogError::io("cut", name))?;
    storage.sync_all(&mut file).map_err(LogError::io("synchronize", name))
}

/// Makes a file durable as it stands.
pub(crate) fn sync_file<S: Storage>(storage: &S, name: &str) -> Result<(), LogError> {
    let mut file = storage.open(name).map_err(LogError::io("open", name))?;
    storage.sync_all(&mut file).map_err(LogError::io("synchronize", name))
}
