//! The names of the files in a member's data directory, and which of them are whose.
//!
//! `log.<zxid of its first entry>` and `snapshot.<zxid>` are ZooKeeper's, in hexadecimal without padding, so
//! sorting the names does not sort the zxids. Whatever else lies in the directory is left alone.

use node_wire::ids::Zxid;
use node_wire::logfile::Compression;
pub(crate) use node_wire::logfile::{FileName, log_name as log, snapshot_name as snapshot};

/// The file with the epoch that this member promised.
pub(crate) const ACCEPTED: &str = "acceptedEpoch";
/// The file with the epoch whose history it holds.
pub(crate) const CURRENT: &str = "currentEpoch";
/// Begins the name of a whole tree that is about to replace the history.
const INSTALL: &str = "install.";
/// Ends the name of a file that is not complete yet.
const TEMPORARY: &str = ".tmp";

/// The tree after this zxid, about to replace the history: see [`Log::install`](crate::Log::install).
pub(crate) fn install(zxid: Zxid) -> String {
    format!("{INSTALL}{:x}", zxid.0)
}

fn installed(name: &str) -> Option<Zxid> {
    let zxid = Zxid(u64::from_str_radix(name.strip_prefix(INSTALL)?, 16).ok()?);
    (install(zxid) == name).then_some(zxid)
}

/// The trees that are about to replace the history. No member leaves more than one.
pub(crate) fn installs(names: &[String]) -> Vec<(Zxid, String)> {
    names.iter().filter_map(|name| Some((installed(name)?, name.clone()))).collect()
}

/// Where a file is written before it gets its name.
pub(crate) fn temporary(name: &str) -> String {
    format!("{name}{TEMPORARY}")
}

/// Whether a crash left this file half-written. Only temporary names of our own are meant.
pub(crate) fn is_temporary(name: &str) -> bool {
    let Some(name) = name.strip_suffix(TEMPORARY) else { return false };
    is_history(name) || installed(name).is_some() || [ACCEPTED, CURRENT].contains(&name)
}

/// Whether this is a log file or a snapshot.
pub(crate) fn is_history(name: &str) -> bool {
    FileName::parse(name).is_some()
}

/// Whether this is a log file, or one on its way to be: what lies in the directory for logs, where there is
/// one.
pub(crate) fn is_log(name: &str) -> bool {
    matches!(FileName::parse(name.strip_suffix(TEMPORARY).unwrap_or(name)), Some(FileName::Log(_)))
}

/// How a snapshot is compressed, by its name.
pub(crate) fn compression(name: &str) -> Option<Compression> {
    match FileName::parse(name) {
        Some(FileName::Compressed(_, method)) => Some(method),
        Some(FileName::Log(_) | FileName::Snapshot(_)) | None => None,
    }
}

/// The name of a snapshot that is compressed by this method, if any.
pub(crate) fn snapshot_by(zxid: Zxid, method: Option<Compression>) -> String {
    method.map_or_else(|| snapshot(zxid), |method| FileName::Compressed(zxid, method).to_string())
}

/// The log files, oldest first.
pub(crate) fn logs(names: &[String]) -> Vec<(Zxid, String)> {
    of_kind(names, |name| match name {
        FileName::Log(first) => Some(first),
        FileName::Snapshot(_) | FileName::Compressed(..) => None,
    })
}

/// The snapshots, oldest first.
pub(crate) fn snapshots(names: &[String]) -> Vec<(Zxid, String)> {
    of_kind(names, |name| match name {
        FileName::Snapshot(zxid) | FileName::Compressed(zxid, _) => Some(zxid),
        FileName::Log(_) => None,
    })
}

fn of_kind(names: &[String], kind: impl Fn(FileName) -> Option<Zxid>) -> Vec<(Zxid, String)> {
    let zxid = |name: &String| FileName::parse(name).and_then(&kind);
    let mut found: Vec<_> = names.iter().filter_map(|name| Some((zxid(name)?, name.clone()))).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_sorted_by_zxid_not_by_name() {
        let names: Vec<String> = ["log.10", "log.9", "log.1", "snapshot.0", "snapshot.200000001", "log.bak"]
            .map(String::from)
            .into();
        let logs: Vec<u64> = logs(&names).into_iter().map(|(zxid, _)| zxid.0).collect();
        assert_eq!(logs, [0x1, 0x9, 0x10]);
        assert_eq!(snapshots(&names).len(), 2);
    }

    #[test]
    fn only_names_that_zookeeper_would_write_are_history() {
        assert!(is_history("log.100000001") && is_history("snapshot.0"));
        for name in ["log.", "log.0A", "log.01", "log.+1", "log.1.tmp", "logs.1", "snapshot.x", "install.5"] {
            assert!(!is_history(name), "{name}");
        }
    }

    #[test]
    fn foreign_temporary_files_are_left_alone() {
        for name in ["snapshot.5.tmp", "install.5.tmp", "currentEpoch.tmp", "acceptedEpoch.tmp"] {
            assert!(is_temporary(name), "{name}");
        }
        for name in ["notes.tmp", "snapshot.5", ".tmp", "install.5"] {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
