//! The two operations that throw history away: cutting its end off, and replacing all of it.
//!
//! Removals are not ordered by a file system until the directory is synchronized, so both are made of steps
//! with a synchronization between them, each of which leaves something that [`open`](crate::Log::open)
//! understands.

use node_wire::ids::Zxid;
use node_wire::snapshot::Image;

use crate::end::{End, end_of};
use crate::error::LogError;
use crate::records::Tail;
use crate::recovery::History;
use crate::snapshots;
use crate::storage::Storage;
use crate::{durable, names};

/// Replaces the whole history by a tree.
///
/// 1. The tree is written as `install.<zxid>`, complete or not at all: from here on the new history counts.
/// 2. The old log files and snapshots are removed, and that is made durable.
/// 3. `install.<zxid>` becomes `snapshot.<zxid>`. A crash before that is completed by [`complete_install`].
pub(crate) fn install<S: Storage>(storage: &S, image: &Image) -> Result<(), LogError> {
    snapshots::write_as(storage, &names::install(image.zxid), image, None)?;
    replace_history(storage, &durable::list(storage)?, image.zxid)
}

/// The tree of an interrupted [`install`], if there is one. Nothing is touched.
///
/// Nothing will be removed on the word of a file that does not hold what it should. Nor where there are
/// several: a member begins an installation only when none is open, so the directory is a mixture of two, and
/// nobody can say which tree is the later one (its zxid does not). To complete one would leave the other to
/// replace what is written from then on, at the next start.
pub(crate) fn interrupted_install<S: Storage>(
    storage: &S,
    listed: &[String],
) -> Result<Option<Zxid>, LogError> {
    let mut installs = names::installs(listed).into_iter();
    let Some((zxid, file)) = installs.next() else { return Ok(None) };
    if let Some((_, other)) = installs.next() {
        return Err(LogError::TwoInstallations { file, other });
    }
    match snapshots::read(storage, zxid, &file)? {
        Ok(_) => Ok(Some(zxid)),
        Err(reason) => Err(LogError::DamagedSnapshot { file, reason }),
    }
}

/// Completes the [`interrupted_install`].
pub(crate) fn complete_install<S: Storage>(
    storage: &S,
    listed: &[String],
    zxid: Zxid,
) -> Result<(), LogError> {
    // A process that was killed behind the renaming left it to the page cache.
    durable::sync_dir(storage)?;
    replace_history(storage, listed, zxid)
}

fn replace_history<S: Storage>(storage: &S, listed: &[String], zxid: Zxid) -> Result<(), LogError> {
    for old in listed.iter().filter(|name| names::is_history(name)) {
        durable::remove(storage, old)?;
    }
    durable::sync_dir(storage)?;
    durable::rename(storage, &names::install(zxid), &names::snapshot(zxid))
}

/// Drops every entry behind `to` from a log that is flushed, and moves its `end` there.
///
/// Nothing is touched before it is certain that `to` can be rebuilt. Then the snapshots behind `to` go first:
/// the log still holds what they held. The log files behind `to` go from the last to the first, each durably,
/// so that a crash never leaves a hole.
pub(crate) fn truncate<S: Storage>(storage: &S, end: &mut End<S::File>, to: Zxid) -> Result<(), LogError> {
    let listed = durable::list(storage)?;
    let mut history = match History::read(storage, &listed, to) {
        Err(LogError::Hole { .. }) => return Err(LogError::CannotTruncate { to }),
        other => other?,
    };
    if history.last() != end.last {
        return Err(LogError::CannotTruncate { to });
    }

    let snapshots = names::snapshots(&listed).into_iter().filter(|(zxid, _)| *zxid > to);
    let snapshots: Vec<String> = snapshots.map(|(_, name)| name).collect();
    for name in &snapshots {
        durable::remove(storage, name)?;
    }
    if !snapshots.is_empty() {
        durable::sync_dir(storage)?;
    }
    end.file = None;
    while let Some(file) = history.files.last_mut() {
        match file.end_at(to) {
            None => {
                durable::remove(storage, &file.name)?;
                durable::sync_dir(storage)?;
                history.files.pop();
            }
            Some(offset) => {
                durable::cut(storage, &file.name, offset)?;
                file.records.retain(|record| record.end <= offset);
                (file.end, file.len, file.tail) = (offset, offset, Tail::Clean);
                break;
            }
        }
    }
    *end = end_of(storage, &history)?;
    Ok(())
}
