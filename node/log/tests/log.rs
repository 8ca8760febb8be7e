//! The rules of the log, one test each.

mod support;

use std::io;

use node_log::{Log, LogError, LogOptions, MemStorage, Storage, cut_to_synced, purge, write_snapshot};
use node_wire::ids::{Epoch, Zxid};
use support::{append, entries, entry, fold, image, log_with, open, recovered_history, zxid, zxids};

#[test]
fn a_new_directory_is_an_empty_log_in_epoch_zero() {
    let storage = MemStorage::new();
    let (log, recovered) = open(&storage).expect("a new disk");
    assert_eq!((recovered.accepted_epoch, recovered.current_epoch), (Epoch::ZERO, Epoch::ZERO));
    assert_eq!((recovered.image.zxid, recovered.entries.len()), (Zxid::ZERO, 0));
    assert_eq!(log.synced_position(), None);
    assert_eq!(storage.read("acceptedEpoch").expect("made at once")[..], *b"0");
}

#[test]
fn a_batch_costs_one_write_and_one_synchronization() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &[]));
    let options = LogOptions { preallocate_bytes: 4096, ..support::OPTIONS };
    let (mut log, _) = Log::open(storage.clone(), options).expect("a sound disk");
    append(&mut log, &entries(1, 1));
    for entry in entries(2, 5) {
        log.append(&entry).expect("an entry in order");
    }
    let before = storage.operations();
    log.flush_and_sync().expect("a sound disk");
    assert_eq!(storage.operations() - before, 2);
    log.flush_and_sync().expect("nothing to do");
    assert_eq!(storage.operations() - before, 2);
    assert_eq!((log.last_durable_zxid(), log.unsynced_bytes()), (zxid(1, 5), 0));
}

#[test]
fn what_was_only_appended_is_lost_with_the_process() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    log.append(&entries(3, 3)[0]).expect("an entry in order");
    assert_eq!((log.last_zxid(), log.last_durable_zxid()), (zxid(1, 3), zxid(1, 2)));
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered.entries, entries(1, 2));
}

#[test]
fn entries_out_of_order_are_refused_and_harm_nothing() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    let error = log.append(&entries(2, 2)[0]).expect_err("a past zxid");
    assert!(matches!(error, LogError::OutOfOrder { .. }));
    append(&mut log, &entries(3, 3));
}

#[test]
fn a_log_without_its_epoch_files_is_refused() {
    for missing in ["acceptedEpoch", "currentEpoch"] {
        let storage = MemStorage::new();
        drop(log_with(&storage, &entries(1, 1)));
        storage.remove(missing).expect("a file");
        let error = open(&storage).expect_err("a promise was forgotten");
        assert!(matches!(error, LogError::NoEpochFiles { missing: name } if name == missing));
        assert!(error.to_string().contains(missing), "{error}");
    }
}

#[test]
fn a_promise_alone_is_kept_and_a_current_epoch_alone_is_refused() {
    let storage = MemStorage::new();
    storage.place("acceptedEpoch", b"5");
    let (_, recovered) = open(&storage).expect("the history was moved away");
    assert_eq!((recovered.accepted_epoch, recovered.current_epoch), (Epoch(5), Epoch::ZERO));

    let storage = MemStorage::new();
    storage.place("currentEpoch", b"5");
    assert!(matches!(open(&storage), Err(LogError::NoEpochFiles { missing: "acceptedEpoch" })));
}

#[test]
fn epoch_files_that_can_not_be_are_refused() {
    for content in [&b""[..], b"x", b"-1", b"4294967296", b"1 2", b"+1", b"\xff"] {
        let storage = MemStorage::new();
        storage.place("acceptedEpoch", content);
        storage.place("currentEpoch", b"0");
        let error = open(&storage).expect_err("no number");
        assert!(matches!(error, LogError::BadEpochFile { file: "acceptedEpoch", .. }), "{error}");
    }
    let storage = MemStorage::new();
    storage.place("acceptedEpoch", b"1\n");
    storage.place("currentEpoch", b"2");
    assert!(matches!(open(&storage), Err(LogError::EpochsDisagree { .. })));
}

#[test]
fn entries_above_the_current_epoch_are_legal_and_above_the_accepted_one_are_not() {
    let storage = MemStorage::new();
    let (mut log, _) = open(&storage).expect("a new disk");
    log.set_accepted_epoch(Epoch(3)).expect("a sound disk");
    append(&mut log, &[entry(zxid(2, 1), b"synchronized")]);
    let (_, recovered) = open(&storage).expect("a crash while synchronizing");
    assert_eq!((recovered.current_epoch, recovered.entries.len()), (Epoch::ZERO, 1));

    storage.place("acceptedEpoch", b"1");
    assert!(matches!(open(&storage), Err(LogError::EpochBehindLog { .. })));
}

#[test]
fn epochs_only_go_forward() {
    let storage = MemStorage::new();
    let (mut log, _) = open(&storage).expect("a new disk");
    log.set_accepted_epoch(Epoch(3)).expect("a sound disk");
    assert!(matches!(log.set_accepted_epoch(Epoch(2)), Err(LogError::EpochOrder { .. })));
    assert!(matches!(log.set_current_epoch(Epoch(4)), Err(LogError::EpochOrder { .. })));
    log.set_current_epoch(Epoch(3)).expect("the accepted one");
    assert!(matches!(log.set_current_epoch(Epoch(2)), Err(LogError::EpochOrder { .. })));
    log.set_accepted_epoch(Epoch(3)).expect("nothing to do");
}

#[test]
fn a_full_disk_ends_the_log_with_a_clear_error_and_loses_nothing_durable() {
    let space = io::ErrorKind::StorageFull;
    for nth in 1..20 {
        let storage = MemStorage::new();
        let mut log = log_with(&storage, &entries(1, 3));
        storage.fail_nth(nth, space);
        let all = |log: &mut Log<MemStorage>| {
            log.append(&entries(4, 4)[0])?;
            log.roll()?;
            log.append(&entries(5, 5)[0])?;
            log.flush_and_sync()?;
            log.set_accepted_epoch(Epoch(2))
        };
        let Err(error) = all(&mut log) else {
            assert!(nth > 10, "every step before is one that fails");
            return;
        };
        assert!(error.is_storage_full(), "{error}");
        assert!(error.to_string().contains("make space"), "{error}");
        // The disk is well again, but nobody knows what it holds.
        assert!(matches!(log.append(&entries(6, 6)[0]), Err(LogError::Poisoned { .. })));
        assert!(matches!(log.flush_and_sync(), Err(LogError::Poisoned { .. })));
        assert!(matches!(log.set_accepted_epoch(Epoch(9)), Err(LogError::Poisoned { .. })));
        assert!(matches!(log.install(&image(zxid(1, 9), 9)), Err(LogError::Poisoned { .. })));
        assert!(matches!(log.purge(1), Err(LogError::Poisoned { .. })));
        storage.crash(|_| 0);
        let (_, recovered) = open(&storage).expect("a sound disk");
        assert_eq!(recovered.entries[..3], entries(1, 3));
    }
    panic!("it never came through");
}

#[test]
fn a_snapshot_that_does_not_fit_harms_nothing() {
    for nth in 1..6 {
        let storage = MemStorage::new();
        let mut log = log_with(&storage, &entries(1, 3));
        storage.fail_nth(nth, io::ErrorKind::StorageFull);
        let written = write_snapshot(&storage, &image(zxid(1, 3), fold(0, &entries(1, 3))));
        assert_eq!(written.is_err(), nth < 6, "creating, writing, synchronizing, renaming, synchronizing");
        append(&mut log, &entries(4, 4));
        let (_, recovered) = open(&storage).expect("a sound disk");
        assert_eq!(recovered_history(&recovered), fold(0, &entries(1, 4)));
    }
}

#[test]
fn truncation_removes_later_files_and_snapshots_and_the_log_goes_on() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 3));
    write_snapshot(&storage, &image(zxid(1, 3), fold(0, &entries(1, 3)))).expect("a sound disk");
    log.roll().expect("a sound disk");
    append(&mut log, &entries(4, 6));
    log.truncate(zxid(1, 2)).expect("the log reaches back");
    let names = storage.list().expect("a disk");
    assert_eq!(names, ["acceptedEpoch", "currentEpoch", "log.100000001"]);

    log.set_accepted_epoch(Epoch(2)).expect("a sound disk");
    let other = entry(zxid(2, 1), b"another leader's");
    append(&mut log, std::slice::from_ref(&other));
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(zxids(&recovered), [zxid(1, 1), zxid(1, 2), zxid(2, 1)]);
}

#[test]
fn truncation_to_a_zxid_that_is_not_there_cuts_behind_the_one_before_it() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 3));
    log.set_accepted_epoch(Epoch(3)).expect("a sound disk");
    append(&mut log, &[entry(zxid(3, 1), b"late")]);
    log.truncate(zxid(2, 7)).expect("the log reaches back");
    assert_eq!(log.last_zxid(), zxid(1, 3));
    log.truncate(zxid(1, 3)).expect("nothing to do");
    log.truncate(Zxid::ZERO).expect("the log reaches back");
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(zxids(&recovered), []);
}

#[test]
fn truncation_below_what_can_be_rebuilt_changes_nothing() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 3));
    log.install(&image(zxid(1, 9), 9)).expect("a sound disk");
    append(&mut log, &entries(10, 11));
    let names = storage.list().expect("a disk");
    assert!(matches!(log.truncate(zxid(1, 8)), Err(LogError::CannotTruncate { .. })));
    assert_eq!(storage.list().expect("a disk"), names);
    log.truncate(zxid(1, 9)).expect("the snapshot itself");
    append(&mut log, &entries(10, 10));
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!((recovered.image.zxid, zxids(&recovered)), (zxid(1, 9), vec![zxid(1, 10)]));
}

#[test]
fn an_installed_tree_replaces_everything() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 5));
    write_snapshot(&storage, &image(zxid(1, 4), 4)).expect("a sound disk");
    log.install(&image(zxid(1, 3), 33)).expect("a sound disk");
    assert_eq!(log.last_zxid(), zxid(1, 3));
    let names = storage.list().expect("a disk");
    assert_eq!(names, ["acceptedEpoch", "currentEpoch", "snapshot.100000003"]);
    append(&mut log, &entries(4, 4));
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered.image, image(zxid(1, 3), 33));
    assert_eq!(recovered.entries, entries(4, 4));
}

#[test]
fn a_gap_behind_the_base_is_refused_before_it_is_written() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &[]);
    log.install(&image(zxid(1, 3), 3)).expect("a sound disk");
    assert!(matches!(log.append(&entries(5, 5)[0]), Err(LogError::Hole { .. })));
    append(&mut log, &entries(4, 4));
}

#[test]
fn files_roll_by_size_and_a_purge_keeps_what_recovery_needs() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &[]));
    let options = LogOptions { roll_bytes: 200, ..support::OPTIONS };
    let (mut log, _) = Log::open(storage.clone(), options).expect("a sound disk");
    for (index, entry) in entries(1, 20).iter().enumerate() {
        append(&mut log, std::slice::from_ref(entry));
        if [5, 10, 15].contains(&(index + 1)) {
            let history = fold(0, &entries(1, entry.zxid().counter()));
            write_snapshot(&storage, &image(entry.zxid(), history)).expect("a sound disk");
        }
    }
    assert!(purge(&storage, 4).expect("a sound disk").is_empty(), "there are only three");
    let removed = log.purge(2).expect("a sound disk");
    assert!(removed.contains(&"snapshot.100000005".to_owned()), "{removed:?}");
    assert!(removed.iter().any(|name| name.starts_with("log.")), "{removed:?}");
    // Even the older of the two is a base.
    assert!(storage.flip_bit("snapshot.10000000f", 300));
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered_history(&recovered), fold(0, &entries(1, 20)));
}

#[test]
fn a_purge_does_not_lean_on_a_damaged_snapshot() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &[]);
    for counter in 1..=3 {
        append(&mut log, &entries(counter, counter));
        let history = fold(0, &entries(1, counter));
        write_snapshot(&storage, &image(zxid(1, counter), history)).expect("a sound disk");
        log.roll().expect("a sound disk");
    }
    assert!(storage.flip_bit("snapshot.100000003", 300));
    assert_eq!(log.purge(1).expect("a sound disk"), ["snapshot.100000001", "log.100000001", "log.100000002"]);
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered_history(&recovered), fold(0, &entries(1, 3)));
}

const NOTING: LogOptions = LogOptions { note_synced: true, ..support::OPTIONS };

#[test]
fn cutting_to_the_note_keeps_what_was_synchronized_and_nothing_else() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &[]));
    let (mut log, _) = Log::open(storage.clone(), NOTING).expect("a sound disk");
    append(&mut log, &entries(1, 3));
    let position = log.synced_position().expect("entries");
    // The process is killed behind its write: 1 extends the file, 2 writes, 3 would synchronize.
    for entry in entries(4, 12) {
        log.append(&entry).expect("an entry in order");
    }
    storage.fail_nth(3, support::FAILURE);
    log.flush_and_sync().expect_err("killed");
    drop(log);
    let written = storage.fork();
    let (_, recovered) = open(&written).expect("a sound disk");
    assert_eq!(recovered.entries, entries(1, 12), "the page cache keeps what was written");

    let cut = cut_to_synced(&storage).expect("a note");
    assert!(cut.cut_bytes > 0 && cut.removed.is_empty());
    let len = storage.read(&position.file).expect("a log").len();
    assert_eq!(u64::try_from(len).expect("small"), position.offset);
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered.entries, entries(1, 3));
}

#[test]
fn cutting_to_the_note_removes_a_file_that_was_never_synchronized() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &[]));
    let (mut log, _) = Log::open(storage.clone(), NOTING).expect("a sound disk");
    append(&mut log, &entries(1, 3));
    log.roll().expect("a sound disk");
    log.append(&entries(4, 4)[0]).expect("an entry in order");
    storage.fail_nth(4, support::FAILURE);
    log.flush_and_sync().expect_err("killed");
    assert_eq!(cut_to_synced(&storage).expect("a note").removed, ["log.100000004"]);
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered.entries, entries(1, 3));
}

#[test]
fn the_note_follows_truncation_and_installation() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &[]));
    let (mut log, _) = Log::open(storage.clone(), NOTING).expect("a sound disk");
    append(&mut log, &entries(1, 3));
    log.truncate(zxid(1, 1)).expect("the log reaches back");
    cut_to_synced(&storage).expect("a note");
    let (mut log, recovered) = Log::open(storage.clone(), NOTING).expect("a sound disk");
    assert_eq!(recovered.entries, entries(1, 1));
    log.install(&image(zxid(1, 5), 5)).expect("a sound disk");
    cut_to_synced(&storage).expect("a note");
    append(&mut log, &entries(6, 6));
    cut_to_synced(&storage).expect("a note");
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!((recovered.image.zxid, recovered.entries), (zxid(1, 5), entries(6, 6)));
}

#[test]
fn without_a_note_nothing_is_cut_and_a_garbled_one_is_refused() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &entries(1, 3)));
    assert_eq!(cut_to_synced(&storage).expect("no note"), node_log::CutToSynced::default());
    storage.place("synced", b"what\n");
    assert!(matches!(cut_to_synced(&storage), Err(LogError::BadSyncedNote { .. })));
    let (_, recovered) = open(&storage).expect("recovery does not read it");
    assert_eq!(recovered.entries, entries(1, 3));
}
