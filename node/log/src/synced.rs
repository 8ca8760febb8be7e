//! A note of how far the log is synchronized, for the test bench.
//!
//! SIGKILL does not lose what was written but not synchronized: the page cache keeps it. To show what a power
//! failure of all members would lose, the bench kills them and cuts each log back to this note before it
//! starts again. The note is a plain `write` without synchronization, made after each synchronization of the
//! log and before that is reported, so it never lags behind anything that was acknowledged. It says nothing
//! after a real power failure and recovery never reads it.

use node_wire::ids::Zxid;

use crate::durable;
use crate::epochs::shown;
use crate::error::LogError;
use crate::names;
use crate::storage::Storage;

/// The note's file.
pub(crate) const SYNCED: &str = "synced";

/// Hexadecimal digits of the log file's zxid in the note.
const ZXID_DIGITS: usize = 16;
/// Decimal digits of the offset. Fixed, so that one small write replaces the whole note.
const OFFSET_DIGITS: usize = 20;

/// Up to where the log is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The log file, by the zxid of its first entry.
    pub(crate) file: Zxid,
    /// The end of its last durable record.
    pub(crate) offset: u64,
}

/// Keeps the note of an open log.
#[derive(Debug)]
pub(crate) struct Note<F> {
    file: F,
}

impl<F: Send> Note<F> {
    /// Opens the note, and makes it where it is missing.
    pub(crate) fn open<S: Storage<File = F>>(storage: &S) -> Result<Self, LogError> {
        let file = storage.create(SYNCED).map_err(LogError::io("create", SYNCED))?;
        Ok(Self { file })
    }

    /// Notes that the log is durable up to a mark; without one, that there is no log.
    pub(crate) fn write<S: Storage<File = F>>(
        &mut self,
        storage: &S,
        mark: Option<Mark>,
    ) -> Result<(), LogError> {
        let (zxid, offset) = mark.map_or((0, 0), |mark| (mark.file.0, mark.offset));
        let line = format!("{zxid:0ZXID_DIGITS$x} {offset:0OFFSET_DIGITS$}\n");
        storage.write_at(&mut self.file, 0, line.as_bytes()).map_err(LogError::io("write", SYNCED))
    }
}

/// What [`cut_to_synced`] took away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutToSynced {
    /// Bytes cut from the end of the file that the note names, padding included.
    pub cut_bytes: u64,
    /// Log files behind it, which were removed whole.
    pub removed: Vec<String>,
}

/// Cuts a closed log back to what its writer had synchronized, as noted under
/// [`LogOptions::note_synced`](crate::LogOptions::note_synced). Call it before
/// [`Log::open`](crate::Log::open). Without a note nothing is cut.
pub fn cut_to_synced<S: Storage>(storage: &S) -> Result<CutToSynced, LogError> {
    let files = durable::list(storage)?;
    let mut cut = CutToSynced::default();
    if !files.iter().any(|name| name == SYNCED) {
        return Ok(cut);
    }
    let content = storage.read(SYNCED).map_err(LogError::io("read", SYNCED))?;
    if content.is_empty() {
        // Killed between the note's creation and its first write: the log was only just being opened.
        return Ok(cut);
    }
    let mark =
        parse(&content).ok_or_else(|| LogError::BadSyncedNote { file: SYNCED, content: shown(&content) })?;
    for (zxid, name) in names::logs(&files) {
        if zxid > mark.file {
            durable::remove(storage, &name)?;
            cut.removed.push(name);
        } else if zxid == mark.file {
            let len = storage.read(&name).map_err(LogError::io("read", &name))?.len();
            let len = u64::try_from(len).unwrap_or(u64::MAX);
            if len > mark.offset {
                durable::cut(storage, &name, mark.offset)?;
                cut.cut_bytes = len - mark.offset;
            }
        }
    }
    durable::sync_dir(storage)?;
    Ok(cut)
}

fn parse(content: &[u8]) -> Option<Mark> {
    let line = std::str::from_utf8(content).ok()?.strip_suffix('\n')?;
    let (zxid, offset) = line.split_once(' ')?;
    if zxid.len() != ZXID_DIGITS || offset.len() != OFFSET_DIGITS {
        return None;
    }
    Some(Mark { file: Zxid(u64::from_str_radix(zxid, 16).ok()?), offset: offset.parse().ok()? })
}
