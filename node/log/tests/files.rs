//! The same log on a real directory.

mod support;

use std::fs;
use std::io;
use std::path::Path;

use node_log::{FileStorage, Log, LogOptions, Storage, purge, write_digested_snapshot, write_snapshot};
use node_wire::ids::Epoch;
use node_wire::logfile::Compression;
use support::{OPTIONS, entries, fold, image, recovered_history, zxid};

#[test]
fn a_directory_keeps_a_history() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("deep").join("version-2");
    let options = LogOptions { note_synced: true, ..LogOptions::default() };

    let storage = FileStorage::open(&path).expect("made with its parents");
    let (mut log, _) = Log::open(storage, options).expect("a new directory");
    log.set_accepted_epoch(Epoch(1)).expect("a sound disk");
    for entry in entries(1, 100) {
        log.append(&entry).expect("an entry in order");
    }
    log.flush_and_sync().expect("a sound disk");
    log.set_current_epoch(Epoch(1)).expect("a sound disk");
    write_snapshot(log.storage(), &image(zxid(1, 100), fold(0, &entries(1, 100)))).expect("a sound disk");
    log.roll().expect("a sound disk");
    for entry in entries(101, 110) {
        log.append(&entry).expect("an entry in order");
    }
    log.flush_and_sync().expect("a sound disk");
    log.truncate(zxid(1, 105)).expect("the log reaches back");
    assert_eq!(purge(log.storage(), 1).expect("a sound disk"), ["log.100000001"]);
    let position = log.synced_position().expect("entries");
    drop(log);

    assert_eq!(fs::read(path.join("acceptedEpoch")).expect("a file"), b"1");
    assert_eq!(fs::read(path.join("currentEpoch")).expect("a file"), b"1");
    assert_eq!(fs::metadata(path.join(&position.file)).expect("a file").len(), position.offset);
    let storage = FileStorage::open(&path).expect("free again");
    let (_, recovered) = Log::open(storage, options).expect("a sound disk");
    assert_eq!(recovered.image.zxid, zxid(1, 100));
    assert_eq!(recovered_history(&recovered), fold(0, &entries(1, 105)));
    assert_eq!(recovered.repairs, node_log::Repairs::default());
}

#[test]
fn a_directory_has_one_owner() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = FileStorage::open(directory.path()).expect("free");
    let error = FileStorage::open(directory.path()).expect_err("in use");
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    drop(first);
    FileStorage::open(directory.path()).expect("free again");
}

#[test]
fn a_store_beneath_a_regular_file_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("file");
    fs::write(&file, b"").expect("a sound disk");
    assert!(FileStorage::open(file.join("data")).is_err());
    assert!(FileStorage::open(&file).is_err());
}

#[test]
fn a_torn_file_is_cut_on_disk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let storage = FileStorage::open(directory.path()).expect("free");
    let options = LogOptions { preallocate_bytes: 0, ..LogOptions::default() };
    let (mut log, _) = Log::open(storage.clone(), options).expect("a new directory");
    log.set_accepted_epoch(Epoch(1)).expect("a sound disk");
    for entry in entries(1, 2) {
        log.append(&entry).expect("an entry in order");
    }
    log.flush_and_sync().expect("a sound disk");
    let name = log.synced_position().expect("entries").file;
    let whole = storage.read(&name).expect("a log");
    fs::write(directory.path().join(&name), &whole[..whole.len() - 5]).expect("a sound disk");
    let (_, recovered) = Log::open(storage.clone(), options).expect("a torn tail");
    assert_eq!(recovered.entries, entries(1, 1));
    let torn = recovered.repairs.torn_tail.expect("told");
    assert_eq!(storage.read(&name).expect("a log").len(), usize::try_from(torn.offset).expect("small"));
}

/// Two directories, and a log in them with a snapshot.
fn apart(data: &Path, logs: &Path) -> FileStorage {
    let storage = FileStorage::open_apart(data, logs).expect("free");
    let (mut log, _) = Log::open(storage.clone(), OPTIONS).expect("new");
    log.set_accepted_epoch(Epoch(1)).expect("a sound disk");
    log.set_current_epoch(Epoch(1)).expect("a sound disk");
    for entry in entries(1, 10) {
        log.append(&entry).expect("a sound disk");
    }
    log.flush_and_sync().expect("a sound disk");
    let image = image(zxid(1, 4), fold(0, &entries(1, 4)));
    write_digested_snapshot(&storage, &image, 77, Some(Compression::Gz)).expect("a sound disk");
    storage
}

fn names_in(path: &Path) -> Vec<String> {
    let listed = fs::read_dir(path).expect("a directory");
    let mut names: Vec<_> =
        listed.map(|item| item.expect("an item").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
fn logs_may_lie_apart_from_snapshots() {
    let directory = tempfile::tempdir().expect("a directory");
    let (data, logs) = (directory.path().join("data"), directory.path().join("logs"));
    drop(apart(&data, &logs));
    assert_eq!(names_in(&data), ["acceptedEpoch", "currentEpoch", "lock", "snapshot.100000004.gz"]);
    assert_eq!(names_in(&logs), ["lock", "log.100000001"]);
    let storage = FileStorage::open_apart(&data, &logs).expect("free again");
    let (log, recovered) = Log::open(storage, OPTIONS).expect("sound");
    assert_eq!((recovered.image.zxid, recovered.entries.len()), (zxid(1, 4), 6));
    assert_eq!(recovered.digest.map(|digest| (digest.zxid, digest.digest)), Some((zxid(1, 4), 77)));
    let error = FileStorage::open_apart(directory.path().join("other"), &logs).expect_err("in use");
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
    drop(log);
}

#[test]
fn files_in_the_wrong_directory_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (data, logs) = (directory.path().join("data"), directory.path().join("logs"));
    drop(apart(&data, &logs));
    let error = FileStorage::open_apart(&data, directory.path().join("new")).map(drop);
    assert!(error.is_ok(), "a log that lies elsewhere can't be known of");
    let error = FileStorage::open_apart(&logs, directory.path().join("new")).expect_err("a log in the way");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("has the log log.100000001: move it"), "{error}");
    let error =
        FileStorage::open_apart(directory.path().join("new"), &data).expect_err("a snapshot in the way");
    assert!(error.to_string().contains("has the snapshot snapshot.100000004.gz: move it"), "{error}");
}

#[test]
fn snapshots_of_every_method_are_read_and_a_damaged_one_is_stepped_over() {
    for method in [None, Some(Compression::Gz), Some(Compression::Snappy)] {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = FileStorage::open(directory.path()).expect("free");
        let (mut log, _) = Log::open(storage.clone(), OPTIONS).expect("new");
        log.set_accepted_epoch(Epoch(1)).expect("a sound disk");
        for entry in entries(1, 5) {
            log.append(&entry).expect("a sound disk");
        }
        log.flush_and_sync().expect("a sound disk");
        drop(log);
        for counter in [3, 5] {
            let image = image(zxid(1, counter), fold(0, &entries(1, counter)));
            write_digested_snapshot(&storage, &image, 1, method).expect("a sound disk");
        }
        let (log, recovered) = Log::open(storage.clone(), OPTIONS).expect("sound");
        assert_eq!(recovered.image, image(zxid(1, 5), fold(0, &entries(1, 5))), "{method:?}");
        drop(log);
        let last = names_in(directory.path()).into_iter().find(|name| name.contains("100000005"));
        let last = directory.path().join(last.expect("a snapshot"));
        let mut bytes = fs::read(&last).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(&last, bytes).expect("written");
        let (_, recovered) = Log::open(storage, OPTIONS).expect("the log holds what it held");
        assert_eq!(recovered.image.zxid, zxid(1, 3), "{method:?}");
        assert_eq!(recovered.repairs.damaged_snapshots.len(), 1, "{method:?}");
    }
}
