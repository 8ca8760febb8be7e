//! Snapshot files: writing them beside a running log, finding a sound one, and throwing old ones away.

use bytes::BytesMut;
use node_wire::digest::DIGEST_VERSION;
use node_wire::ids::Zxid;
use node_wire::logfile::Compression;
use node_wire::snapshot::file::{FileEncoder, decode_file};
use node_wire::snapshot::{Contents, Image, SnapshotFile, ZxidDigest};

use crate::compressed::{Compressor, decompress};
use crate::durable;
use crate::error::LogError;
use crate::names;
use crate::storage::Storage;

/// How much of a snapshot is encoded at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Writes a snapshot. May run on another thread than the log's writer; only one at a time for each zxid.
///
/// The file gets its name when all of it is durable. Two things are the caller's duty. Every entry up to the
/// image's zxid is durable in the log already, or a crash would leave a snapshot with a hole before it. And
/// the call is over before the log is truncated or a tree installed: a snapshot of what was then thrown away
/// must not appear afterwards.
///
/// A failure leaves the log unharmed, and old snapshots as they were.
pub fn write_snapshot<'a, S: Storage>(
    storage: &S,
    contents: impl Into<Contents<'a>>,
) -> Result<(), LogError> {
    let contents = contents.into();
    write_as(storage, &names::snapshot(contents.zxid), contents, None)
}

/// As [`write_snapshot`], with the digest of the tree behind it (whoever reads the file compares), and
/// compressed if so desired.
pub fn write_digested_snapshot<'a, S: Storage>(
    storage: &S,
    contents: impl Into<Contents<'a>>,
    digest: i64,
    method: Option<Compression>,
) -> Result<(), LogError> {
    let contents = contents.into();
    let digest = ZxidDigest { zxid: contents.zxid, version: DIGEST_VERSION, digest };
    let name = names::snapshot_by(contents.zxid, method);
    let Some(method) = method else { return write_as(storage, &name, contents, Some(digest)) };
    let mut encoder = FileEncoder::new(contents, Some(digest));
    let mut compressor = Compressor::new(method);
    let mut failure = None;
    let mut plain = BytesMut::new();
    durable::replace_by(storage, &name, |buffer| {
        plain.clear();
        let more = encoder.fill(&mut plain, PIECE_BYTES);
        match compressor.piece(&plain, !more) {
            Ok(piece) => buffer.extend_from_slice(&piece),
            Err(error) => failure = Some(error),
        }
        more && failure.is_none()
    })?;
    // Into memory nothing fails; a file that is not whole would be stepped over at the next start, and told.
    match failure {
        None => Ok(()),
        Some(reason) => Err(LogError::DamagedSnapshot { file: name, reason }),
    }
}

/// Writes a tree into a file of any name, durably and all at once.
pub(crate) fn write_as<'a, S: Storage>(
    storage: &S,
    name: &str,
    contents: impl Into<Contents<'a>>,
    digest: Option<ZxidDigest>,
) -> Result<(), LogError> {
    let mut encoder = FileEncoder::new(contents, digest);
    durable::replace_by(storage, name, |buffer| encoder.fill(buffer, PIECE_BYTES))
}

/// Deletes all but the newest `keep_snapshots` snapshots (at least one is kept), and the log files that lie
/// wholly before the oldest one kept. Answers with what went.
///
/// While there are fewer snapshots than that, nothing is deleted. The oldest one kept is read first: when it
/// is damaged, one more is kept, and so on. With no sound snapshot nothing is deleted.
///
/// Reading a large snapshot takes long. [`oldest_kept`] and [`Log::purge_before`](crate::Log::purge_before)
/// are the two halves of this, for whoever has better to do meanwhile.
pub fn purge<S: Storage>(storage: &S, keep_snapshots: usize) -> Result<Vec<String>, LogError> {
    match oldest_kept(storage, keep_snapshots)? {
        Some(base) => purge_before(storage, base),
        None => Ok(Vec::new()),
    }
}

/// The oldest snapshot that [`purge`] would keep; `None` when nothing is to be deleted. Changes nothing, so
/// it may run beside the log's writer.
pub fn oldest_kept<S: Storage>(storage: &S, keep_snapshots: usize) -> Result<Option<Zxid>, LogError> {
    let listed = durable::list(storage)?;
    let snapshots = names::snapshots(&listed);
    let Some(oldest) = snapshots.len().checked_sub(keep_snapshots.max(1)) else { return Ok(None) };
    for (zxid, name) in snapshots.iter().take(oldest + 1).rev() {
        if read(storage, *zxid, name)?.is_ok() {
            return Ok(Some(*zxid));
        }
    }
    Ok(None)
}

/// Deletes the snapshots before `base`, and the log files that lie wholly before it, if there is a snapshot
/// at `base`. Answers with what went.
///
/// Belongs to the log's writer, unless neither a truncation nor an installation can come between.
pub(crate) fn purge_before<S: Storage>(storage: &S, base: Zxid) -> Result<Vec<String>, LogError> {
    let listed = durable::list(storage)?;
    let snapshots = names::snapshots(&listed);
    if !snapshots.iter().any(|(zxid, _)| *zxid == base) {
        return Ok(Vec::new());
    }
    let older = snapshots.iter().filter(|(zxid, _)| *zxid < base);
    let mut removed: Vec<String> = older.map(|(_, name)| name.clone()).collect();
    remove_all(storage, &removed)?;
    // Logs go after the older snapshots have gone for good: one of those without its log would be a base
    // with a hole behind it.
    let logs = obsolete_logs(&names::logs(&listed), base);
    remove_all(storage, &logs)?;
    removed.extend(logs);
    Ok(removed)
}

/// Log files without an entry behind `base`. The last one is never among them: it is being written.
fn obsolete_logs(logs: &[(Zxid, String)], base: Zxid) -> Vec<String> {
    let obsolete = logs.windows(2).take_while(|pair| pair[1].0 <= base || base.next() == Some(pair[1].0));
    obsolete.map(|pair| pair[0].1.clone()).collect()
}

fn remove_all<S: Storage>(storage: &S, names: &[String]) -> Result<(), LogError> {
    for name in names {
        durable::remove(storage, name)?;
    }
    if names.is_empty() { Ok(()) } else { durable::sync_dir(storage) }
}

/// A damaged snapshot: its zxid, its name, what is wrong with it.
pub(crate) type DamagedFile = (Zxid, String, String);

/// The newest sound snapshot at or before `limit` (an empty tree when there is none), and the damaged ones
/// that are newer.
pub(crate) fn newest_sound<S: Storage>(
    storage: &S,
    listed: &[String],
    limit: Zxid,
) -> Result<(SnapshotFile, Vec<DamagedFile>), LogError> {
    let mut damaged = Vec::new();
    for (zxid, name) in names::snapshots(listed).into_iter().rev().filter(|(zxid, _)| *zxid <= limit) {
        match read(storage, zxid, &name)? {
            Ok(file) => return Ok((file, damaged)),
            Err(reason) => damaged.push((zxid, name, reason)),
        }
    }
    Ok((SnapshotFile { image: Image::default(), digest: None }, damaged))
}

/// Reads a snapshot; the inner error says what is wrong with it.
pub(crate) fn read<S: Storage>(
    storage: &S,
    zxid: Zxid,
    name: &str,
) -> Result<Result<SnapshotFile, String>, LogError> {
    let content = storage.read(name).map_err(LogError::io("read", name))?;
    let content = match names::compression(name) {
        None => Ok(content),
        Some(method) => decompress(&content, method),
    };
    Ok(content
        .and_then(|content| decode_file(content, zxid).map_err(|error| error.to_string()))
        .map_err(|error| format!("failed to {error}")))
}
