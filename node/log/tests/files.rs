//! The same log on a real directory.

mod support;

use std::fs;
use std::io;

use node_log::{FileStorage, Log, LogOptions, Storage, purge, write_snapshot};
use node_wire::ids::Epoch;
use support::{entries, fold, image, recovered_history, zxid};

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
