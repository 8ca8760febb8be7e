//! The files of a member's disk: which are logs and epochs, and what of them is old.

use std::collections::BTreeMap;

use node_log::{MemStorage, Storage};
use node_wire::logfile::{HEADER_LEN, RECORD_OVERHEAD, Record, RecordReader};

/// The files of the epochs.
pub(in crate::world) const EPOCHS: [&str; 2] = ["acceptedEpoch", "currentEpoch"];

/// The files that may rot, and how many bytes of each, from its beginning.
pub(in crate::world) fn old_bytes(disk: &MemStorage) -> Vec<(String, usize)> {
    let names = disk.list().unwrap_or_default();
    let last_log = names.iter().filter_map(|name| zxid_of_log(name)).max();
    let mut old = Vec::new();
    for name in names {
        let Ok(content) = disk.read(&name) else { continue };
        let bytes = if name.starts_with("snapshot.") {
            content.len()
        } else if let Some(zxid) = zxid_of_log(&name) {
            let spared = usize::from(Some(zxid) == last_log);
            let ends = ends_of_records(content);
            ends.len().checked_sub(1 + spared).map_or(0, |index| ends[index])
        } else {
            0
        };
        if bytes > 0 {
            old.push((name, bytes));
        }
    }
    old
}

/// The files with this prefix, by the zxid behind it.
pub(in crate::world) fn by_zxid(names: &[String], prefix: &str) -> BTreeMap<u64, String> {
    let zxid = |name: &String| u64::from_str_radix(name.strip_prefix(prefix)?, 16).ok();
    names.iter().filter_map(|name| Some((zxid(name)?, name.clone()))).collect()
}

/// Whether this is the file of an epoch.
pub(in crate::world) fn is_epoch(name: &str) -> bool {
    EPOCHS.contains(&name)
}

/// The zxid in the name of a log file: names do not sort as numbers do.
fn zxid_of_log(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("log.")?, 16).ok()
}

/// Where each sound record of a log ends.
pub(in crate::world) fn ends_of_records(content: bytes::Bytes) -> Vec<usize> {
    let Ok(mut reader) = RecordReader::new(content) else { return Vec::new() };
    let mut end = HEADER_LEN;
    let mut ends = Vec::new();
    while let Record::Entry(entry) = reader.read_record() {
        end += entry.bytes.len() + RECORD_OVERHEAD;
        ends.push(end);
    }
    ends
}
