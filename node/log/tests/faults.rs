//! Disks that refuse: a full one, and one whose synchronization fails and lies about it afterwards.

mod support;

use node_log::{LogError, MemStorage};
use support::{append, entries, log_with, open, zxids};

#[test]
fn a_full_disk_poisons_the_log_and_opens_with_all_that_was_durable() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 3));
    storage.set_full(true);
    let failed = storage.failed();
    for entry in entries(4, 40) {
        log.append(&entry).expect("only buffered");
    }
    let error = log.flush_and_sync().expect_err("no space");
    assert!(error.is_storage_full(), "{error}");
    assert!(storage.failed() > failed);
    assert!(matches!(log.flush_and_sync(), Err(LogError::Poisoned { .. })));

    storage.kill();
    let (_, recovered) = open(&storage).expect("to open needs no space");
    assert_eq!(recovered.entries[..3], entries(1, 3));
    storage.set_full(false);
    let (mut log, recovered) = open(&storage).expect("a sound disk");
    let next = u32::try_from(recovered.entries.len()).expect("few") + 1;
    append(&mut log, &entries(next, next));
}

/// Two entries that are durable, and two whose synchronization failed when it had kept so many bytes.
fn after_a_failed_sync(keep: usize) -> MemStorage {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    for entry in entries(3, 4) {
        log.append(&entry).expect("only buffered");
    }
    storage.fail_sync(keep);
    log.flush_and_sync().expect_err("the synchronization failed");
    storage
}

#[test]
fn a_failed_synchronization_keeps_a_prefix_and_the_rest_is_believed_only_until_a_crash() {
    for keep in 0..200 {
        let storage = after_a_failed_sync(keep);
        storage.kill();
        // The page cache shows all of it, and recovery makes durable what it reads.
        let (_, recovered) = open(&storage).expect("a torn tail at most");
        let found = zxids(&recovered);
        assert_eq!(found.len(), 4, "kept {keep}");
        storage.crash(|_| 0);
        let (_, recovered) = open(&storage).expect("a sound disk");
        assert_eq!(zxids(&recovered), found, "kept {keep}");
    }
}

#[test]
fn a_crash_behind_a_failed_synchronization_leaves_what_was_kept() {
    for keep in 0..200 {
        let storage = after_a_failed_sync(keep);
        storage.crash(|_| 0);
        let (_, recovered) = open(&storage).expect("a torn tail at most");
        assert!((2..=4).contains(&recovered.entries.len()), "kept {keep}");
    }
}
