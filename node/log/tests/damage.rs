//! Damage to files: what a crash can have done is repaired and told, what only a broken disk does is refused.

mod support;

use bytes::Bytes;
use node_log::{Evidence, Log, LogError, LogOptions, MemStorage, Storage, write_snapshot};
use node_wire::ids::Zxid;
use support::{append, entries, fold, image, log_with, open, recovered_history, zxid, zxids};

/// The bytes of a log of entries 1 to 4, without padding, and where each record ends.
fn sample() -> (Bytes, Vec<usize>) {
    let storage = MemStorage::new();
    let options = LogOptions { preallocate_bytes: 0, ..support::OPTIONS };
    drop(log_with(&storage, &[]));
    let (mut log, _) = Log::open(storage.clone(), options).expect("a sound disk");
    let ends = entries(1, 4).into_iter().map(|entry| {
        append(&mut log, std::slice::from_ref(&entry));
        let offset = log.synced_position().expect("an entry").offset;
        usize::try_from(offset).expect("a small log")
    });
    let ends = ends.collect();
    (storage.read("log.100000001").expect("a log"), ends)
}

/// A disk with epoch files and this log.
fn disk_with(log: &[u8]) -> MemStorage {
    let storage = MemStorage::new();
    drop(log_with(&storage, &[]));
    storage.place("log.100000001", log);
    storage
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_off_and_told() {
    let (content, ends) = sample();
    for len in 0..content.len() {
        let storage = disk_with(&content[..len]);
        let (mut log, recovered) = open(&storage).expect("a torn tail");
        let whole = ends.iter().filter(|end| **end <= len).count();
        assert_eq!(recovered.entries, entries(1, 4)[..whole], "cut at {len}");
        // Of a record of which only leading zeros were stored there is nothing to tell.
        let rest = &content[ends[..whole].last().copied().unwrap_or(16).min(len)..len];
        let is_end = len >= 16 && rest.iter().all(|byte| *byte == 0);
        assert_eq!(recovered.repairs.torn_tail.is_none(), is_end, "cut at {len}");

        append(&mut log, &entries(1, 4)[whole..]);
        let (_, recovered) = open(&storage).expect("a sound disk");
        assert_eq!(recovered.entries, entries(1, 4), "went on at {len}");
    }
}

#[test]
fn a_tail_of_zeros_from_any_byte_is_cut_off() {
    let (content, ends) = sample();
    for len in 0..content.len() {
        let mut zeroed = content.to_vec();
        zeroed[len..].fill(0);
        let whole = ends.iter().filter(|end| zeroed[..**end] == content[..**end]).count();
        let (_, recovered) = open(&disk_with(&zeroed)).expect("a torn tail");
        assert_eq!(recovered.entries, entries(1, 4)[..whole], "zeros from {len}");
    }
}

#[test]
fn an_earlier_page_of_the_last_write_that_is_missing_is_not_taken_for_the_end() {
    let (content, ends) = sample();
    let mut holed = content.to_vec();
    holed[ends[0]..ends[1]].fill(0);
    let error = open(&disk_with(&holed)).expect_err("a record follows the zeros");
    let expected = Evidence::RecordBehind(u64::try_from(ends[1]).expect("small"));
    assert!(matches!(&error, LogError::Damaged { evidence, .. } if *evidence == expected), "{error}");
}

#[test]
fn garbage_behind_the_end_can_not_come_back() {
    let (content, ends) = sample();
    // A record that was half-stored before, behind zeros where a new one is going to be written.
    let mut holed = content.to_vec();
    holed[ends[1]..ends[2]].fill(0);
    holed.truncate(ends[3] - 1);
    let storage = disk_with(&holed);
    let (_, recovered) = open(&storage).expect("nothing sound behind the zeros");
    assert_eq!(recovered.entries, entries(1, 2));
    assert_eq!(storage.read("log.100000001").expect("a log").len(), ends[1]);
}

#[test]
fn a_flipped_bit_anywhere_in_the_history_is_told_or_harmless() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    write_snapshot(&storage, &image(zxid(1, 2), fold(0, &entries(1, 2)))).expect("a sound disk");
    log.roll().expect("a sound disk");
    append(&mut log, &entries(3, 4));
    log.roll().expect("a sound disk");
    append(&mut log, &entries(5, 6));
    drop(log);
    let (all, all_but_last) = (fold(0, &entries(1, 6)), fold(0, &entries(1, 5)));
    for name in ["log.100000001", "log.100000003", "log.100000005", "snapshot.100000002"] {
        let bits = storage.read(name).expect("a file").len() * 8;
        for bit in 0..bits {
            let damaged = storage.fork();
            assert!(damaged.flip_bit(name, bit));
            let Ok((_, recovered)) = open(&damaged) else { continue };
            let told = recovered.repairs.torn_tail.is_some();
            match recovered_history(&recovered) {
                history if history == all => {}
                // The last record can't be told from an interrupted write.
                history if history == all_but_last && told => {}
                _ => panic!("bit {bit} of {name}: {:?}", zxids(&recovered)),
            }
        }
    }
}

#[test]
fn damage_in_a_file_that_is_not_the_last_is_refused() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    log.roll().expect("a sound disk");
    append(&mut log, &entries(3, 4));
    let content = storage.read("log.100000001").expect("a log");
    let end = content.iter().rposition(|byte| *byte == b'B').expect("a record") + 1;
    storage.place("log.100000001", &content[..end - 1]);
    let error = open(&storage).expect_err("damage");
    assert!(matches!(error, LogError::Damaged { evidence: Evidence::FileBehind, .. }), "{error}");
}

#[test]
fn a_missing_file_in_the_middle_is_a_hole() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    for from in [3, 5] {
        log.roll().expect("a sound disk");
        append(&mut log, &entries(from, from + 1));
    }
    storage.remove("log.100000003").expect("a file");
    let error = open(&storage).expect_err("a hole");
    assert!(
        matches!(error, LogError::Hole { after, found, .. } if (after, found) == (zxid(1, 2), zxid(1, 5)))
    );
    storage.remove("log.100000001").expect("a file");
    assert!(matches!(open(&storage), Err(LogError::Hole { .. })), "nothing leads to the first entry");
}

#[test]
fn a_file_under_another_name_is_refused() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &entries(1, 2)));
    storage.rename("log.100000001", "log.100000002").expect("a file");
    assert!(matches!(open(&storage), Err(LogError::Damaged { evidence: Evidence::AsWritten, .. })));
}

#[test]
fn a_damaged_snapshot_is_stepped_over_when_the_log_holds_what_it_held() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    write_snapshot(&storage, &image(zxid(1, 1), fold(0, &entries(1, 1)))).expect("a sound disk");
    write_snapshot(&storage, &image(zxid(1, 2), fold(0, &entries(1, 2)))).expect("a sound disk");
    append(&mut log, &entries(3, 3));
    assert!(storage.flip_bit("snapshot.100000002", 300));
    let (_, recovered) = open(&storage).expect("an older snapshot and the log");
    assert_eq!(recovered.image.zxid, zxid(1, 1));
    assert_eq!(recovered_history(&recovered), fold(0, &entries(1, 3)));
    assert_eq!(recovered.repairs.damaged_snapshots[0].0, "snapshot.100000002");
}

#[test]
fn a_damaged_snapshot_of_before_the_first_entry_counts_no_worse_than_none() {
    for content in [&b""[..], b"ZKSN", &[0; 300]] {
        let storage = MemStorage::new();
        drop(log_with(&storage, &entries(1, 3)));
        storage.place("snapshot.0", content);
        let (_, recovered) = open(&storage).expect("the log from the first entry on");
        assert_eq!(recovered_history(&recovered), fold(0, &entries(1, 3)));
        assert_eq!(recovered.repairs.damaged_snapshots[0].0, "snapshot.0");
        // What is behind it may have been purged where the log does not begin with the first entry.
        let later = MemStorage::new();
        let mut log = log_with(&later, &entries(1, 2));
        log.roll().expect("a sound disk");
        append(&mut log, &entries(3, 4));
        later.remove("log.100000001").expect("a file");
        later.place("snapshot.0", content);
        assert!(open(&later).is_err());
    }
}

#[test]
fn a_damaged_snapshot_that_the_log_can_not_replace_is_refused() {
    let storage = MemStorage::new();
    let mut log = log_with(&storage, &entries(1, 2));
    log.install(&image(zxid(1, 9), 9)).expect("a sound disk");
    assert!(storage.flip_bit("snapshot.100000009", 300));
    assert!(matches!(open(&storage), Err(LogError::DamagedSnapshot { .. })));
}

#[test]
fn a_damaged_snapshot_is_refused_where_the_log_may_have_been_purged_before_its_first_entry() {
    // The whole log holds what the snapshots held; without its first file nothing says so, because a later
    // epoch may be the first one as well.
    for (purged, refused) in [(false, false), (true, true)] {
        let storage = MemStorage::new();
        let mut log = log_with(&storage, &entries(1, 2));
        log.set_accepted_epoch(zxid(5, 0).epoch()).expect("a sound disk");
        log.set_current_epoch(zxid(5, 0).epoch()).expect("a sound disk");
        log.roll().expect("a sound disk");
        let later = support::entry(zxid(5, 1), b"later");
        append(&mut log, std::slice::from_ref(&later));
        write_snapshot(&storage, &image(zxid(5, 1), fold(fold(0, &entries(1, 2)), &[later])))
            .expect("a sound disk");
        if purged {
            storage.remove("log.100000001").expect("a file");
        }
        assert!(storage.flip_bit("snapshot.500000001", 300));
        let opened = open(&storage);
        assert_eq!(matches!(opened, Err(LogError::DamagedSnapshot { .. })), refused, "purged: {purged}");
        assert_eq!(opened.is_ok(), !refused);
        // Who takes the snapshot away says that nothing was purged.
        storage.remove("snapshot.500000001").expect("a file");
        assert_eq!(open(&storage).expect("a log alone").1.entries.len(), if purged { 1 } else { 3 });
    }
}

/// The tree of an installation that was interrupted as soon as it was written, as another member of this
/// epoch left it.
fn interrupted(zxid: Zxid) -> (String, Bytes) {
    let storage = MemStorage::new();
    write_snapshot(&storage, &image(zxid, 9)).expect("a sound disk");
    (format!("install.{:x}", zxid.0), storage.read(&format!("snapshot.{:x}", zxid.0)).expect("a snapshot"))
}

/// The names and contents of all files.
fn files(storage: &MemStorage) -> Vec<(String, Bytes)> {
    let names = storage.list().expect("a sound disk").into_iter();
    names.map(|name| (name.clone(), storage.read(&name).expect("a file"))).collect()
}

#[test]
fn of_two_interrupted_installations_neither_is_completed_sound_or_not() {
    for damaged in [None, Some("install.100000005"), Some("install.100000009")] {
        let storage = MemStorage::new();
        drop(log_with(&storage, &entries(1, 2)));
        for counter in [5, 9] {
            let (name, tree) = interrupted(zxid(1, counter));
            storage.place(&name, &tree);
        }
        if let Some(name) = damaged {
            assert!(storage.flip_bit(name, 300));
        }
        let before = files(&storage);
        for _ in 0..2 {
            let error = open(&storage).expect_err("two trees");
            assert!(matches!(error, LogError::TwoInstallations { .. }), "{error}");
            assert_eq!(files(&storage), before, "nothing was touched");
        }
    }
}

#[test]
fn an_interrupted_installation_that_the_epochs_forbid_leaves_the_old_history() {
    let storage = MemStorage::new();
    drop(log_with(&storage, &entries(1, 2)));
    let (name, tree) = interrupted(zxid(2, 1));
    storage.place(&name, &tree);
    let before = files(&storage);
    for _ in 0..2 {
        assert!(matches!(open(&storage), Err(LogError::EpochBehindLog { .. })));
        assert_eq!(files(&storage), before, "nothing was touched");
    }
}

#[test]
fn a_log_that_ends_torn_before_its_snapshot_is_refused() {
    let (content, ends) = sample();
    let storage = disk_with(&content[..ends[1] + 20]);
    write_snapshot(&storage, &image(zxid(1, 4), fold(0, &entries(1, 4)))).expect("a sound disk");
    let error = open(&storage).expect_err("damage");
    assert!(matches!(error, LogError::Damaged { evidence: Evidence::SnapshotAhead, .. }), "{error}");
}

#[test]
fn padding_as_zookeeper_leaves_it_is_the_end() {
    let (content, _) = sample();
    let mut padded = content.to_vec();
    padded.resize(content.len() + 70_000, 0);
    let storage = disk_with(&padded);
    let (mut log, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered.repairs, node_log::Repairs::default());
    append(&mut log, &entries(5, 5));
    let (_, recovered) = open(&storage).expect("a sound disk");
    assert_eq!(recovered.entries, entries(1, 5));
}
