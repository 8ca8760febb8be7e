//! Entries, trees and disks for the tests of this crate.
//!
//! A history is folded into one number: each entry and each tree adds to it. A tree carries the number of the
//! history that it stands for, so whatever mixture of snapshot and log is recovered, one comparison tells
//! whether it is a history that the member had.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io;

use bytes::Bytes;
use node_log::{Log, LogError, LogOptions, MemStorage, Recovered};
use node_wire::ids::{Epoch, SessionId, Zxid};
use node_wire::snapshot::{Image, NodeRecord, StatPersisted};
use node_wire::txn::{Entry, Txn, TxnHeader};

/// The history before the first entry.
pub(crate) const EMPTY: u64 = 0;

/// Small padding, so that it is met often.
pub(crate) const OPTIONS: LogOptions =
    LogOptions { preallocate_bytes: 256, roll_bytes: 1 << 20, note_synced: false };

pub(crate) fn zxid(epoch: u32, counter: u32) -> Zxid {
    Zxid::new(Epoch(epoch), counter)
}

pub(crate) fn entry(zxid: Zxid, data: &[u8]) -> Entry {
    let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 1, kind: 5 };
    let data = Some(Bytes::copy_from_slice(data));
    Entry::new(header, Txn::SetData { path: "/a".into(), data, version: 1 }, None)
}

/// Entries of epoch 1, counted from `from` to `to`.
pub(crate) fn entries(from: u32, to: u32) -> Vec<Entry> {
    (from..=to).map(|counter| entry(zxid(1, counter), &counter.to_be_bytes())).collect()
}

/// A tree that stands for a history.
pub(crate) fn image(zxid: Zxid, history: u64) -> Image {
    let data = Some(Bytes::copy_from_slice(&history.to_be_bytes()));
    let root = NodeRecord { path: "/".into(), data, acl: -1, stat: StatPersisted::default() };
    Image { zxid, sessions: vec![(SessionId(7), 4000)], acls: Vec::new(), nodes: vec![root] }
}

pub(crate) fn history_of(image: &Image) -> u64 {
    let data = image.nodes.first().and_then(|root| root.data.as_ref());
    data.map_or(EMPTY, |data| u64::from_be_bytes(data[..].try_into().expect("a tree of ours")))
}

/// The history with one more entry (FNV-1a).
pub(crate) fn extend(history: u64, entry: &Entry) -> u64 {
    let bytes = history.to_be_bytes().into_iter().chain(entry.bytes.iter().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

pub(crate) fn fold<'a>(history: u64, entries: impl IntoIterator<Item = &'a Entry>) -> u64 {
    entries.into_iter().fold(history, extend)
}

/// The history that was recovered.
pub(crate) fn recovered_history(recovered: &Recovered) -> u64 {
    let ascending = recovered.entries.windows(2).all(|pair| pair[0].zxid() < pair[1].zxid());
    assert!(ascending, "entries ascend");
    assert!(recovered.entries.iter().all(|entry| entry.zxid() > recovered.image.zxid));
    fold(history_of(&recovered.image), &recovered.entries)
}

pub(crate) fn open(storage: &MemStorage) -> Result<(Log<MemStorage>, Recovered), LogError> {
    Log::open(storage.clone(), OPTIONS)
}

/// A log in epoch 1 with these entries, durable.
pub(crate) fn log_with(storage: &MemStorage, entries: &[Entry]) -> Log<MemStorage> {
    let (mut log, _) = open(storage).expect("a new disk");
    log.set_accepted_epoch(Epoch(1)).expect("a sound disk");
    log.set_current_epoch(Epoch(1)).expect("a sound disk");
    append(&mut log, entries);
    log
}

pub(crate) fn append(log: &mut Log<MemStorage>, entries: &[Entry]) {
    for entry in entries {
        log.append(entry).expect("an entry in order");
    }
    log.flush_and_sync().expect("a sound disk");
}

/// The zxids of what was recovered behind the snapshot.
pub(crate) fn zxids(recovered: &Recovered) -> Vec<Zxid> {
    recovered.entries.iter().map(Entry::zxid).collect()
}

/// What a failing disk says when nothing else is meant.
pub(crate) const FAILURE: io::ErrorKind = io::ErrorKind::Other;
