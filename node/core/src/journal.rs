//! The part of the log that is kept in memory: what is logged and not yet known to be committed, and behind
//! it as many committed entries as a learner may need to catch up by DIFF.
//!
//! `last` is what a member votes with. `applied` divides the entries: those before it are in the tree, those
//! behind it are only logged, and nobody sees them until a leader says that they are committed.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use node_wire::ids::Zxid;
use node_wire::txn::Entry;

/// Committed entries that a member usually keeps for learners that are behind.
pub const JOURNAL_ENTRIES: usize = 4096;

/// Bytes of committed entries kept for learners that are behind.
const KEEP_BYTES: usize = 32 << 20;

/// The log's recent end.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// Applied entries that are kept at most.
    keep: usize,
    /// The zxid right before the first entry: the snapshot's, or that of the last entry dropped.
    base: Zxid,
    entries: VecDeque<Entry>,
    applied: usize,
    applied_bytes: usize,
}

impl Journal {
    pub(crate) fn new(base: Zxid, entries: Vec<Entry>, keep: usize) -> Self {
        let mut last = base;
        for entry in &entries {
            assert!(entry.zxid() > last, "the log is recovered in ascending order");
            last = entry.zxid();
        }
        Self { keep, base, entries: entries.into(), applied: 0, applied_bytes: 0 }
    }

    #[cfg(test)]
    pub(crate) fn base(&self) -> Zxid {
        self.base
    }

    pub(crate) fn last(&self) -> Zxid {
        self.entries.back().map_or(self.base, Entry::zxid)
    }

    pub(crate) fn applied(&self) -> Zxid {
        match self.applied.checked_sub(1) {
            Some(index) => self.entries[index].zxid(),
            None => self.base,
        }
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        assert!(entry.zxid() > self.last(), "entries are logged in ascending order");
        self.entries.push_back(entry);
    }

    /// The next entry that is logged and not applied, if it is not after `up_to`.
    pub(crate) fn next_to_apply(&self, up_to: Zxid) -> Option<&Entry> {
        self.entries.get(self.applied).filter(|entry| entry.zxid() <= up_to)
    }

    /// The same, marked as applied.
    pub(crate) fn apply_next(&mut self, up_to: Zxid) -> Option<Entry> {
        let entry = self.next_to_apply(up_to)?.clone();
        self.applied += 1;
        self.applied_bytes += entry.bytes.len();
        self.trim();
        Some(entry)
    }

    fn trim(&mut self) {
        while self.applied > self.keep || (self.applied_bytes > KEEP_BYTES && self.applied > 1) {
            let Some(entry) = self.entries.pop_front() else { return };
            self.base = entry.zxid();
            self.applied -= 1;
            self.applied_bytes -= entry.bytes.len();
        }
    }

    /// The newest zxid in the journal that is not after `zxid`; `None` when that lies before the base.
    pub(crate) fn floor(&self, zxid: Zxid) -> Option<Zxid> {
        if zxid < self.base {
            return None;
        }
        match self.entries.partition_point(|entry| entry.zxid() <= zxid).checked_sub(1) {
            Some(index) => Some(self.entries[index].zxid()),
            None => Some(self.base),
        }
    }

    /// All entries after `zxid`.
    pub(crate) fn after(&self, zxid: Zxid) -> impl Iterator<Item = &Entry> + '_ {
        let start = self.entries.partition_point(|entry| entry.zxid() <= zxid);
        self.entries.range(start..)
    }

    /// Drops every entry after `zxid`. False, and nothing dropped, when an applied one is among them.
    pub(crate) fn truncate(&mut self, zxid: Zxid) -> bool {
        if zxid < self.applied() {
            return false;
        }
        self.entries.truncate(self.entries.partition_point(|entry| entry.zxid() <= zxid));
        true
    }

    /// Everything is replaced by a snapshot at `zxid`.
    pub(crate) fn reset(&mut self, zxid: Zxid) {
        *self = Self::new(zxid, Vec::new(), self.keep);
    }

    /// Mixes in what it holds.
    pub(crate) fn fingerprint(&self, state: &mut impl Hasher) {
        let Self { keep: _, base, entries, applied, applied_bytes: _ } = self;
        (base, applied, entries.len()).hash(state);
        for entry in entries {
            entry.bytes.hash(state);
        }
    }

    /// All entries, and how many of them are applied.
    pub(crate) fn contents(&self) -> (Vec<Entry>, usize) {
        (self.entries.iter().cloned().collect(), self.applied)
    }
}

#[cfg(test)]
mod tests {
    use node_wire::ids::{Epoch, SessionId};
    use node_wire::txn::{Txn, TxnHeader};

    use super::*;

    fn entry(epoch: u32, counter: u32) -> Entry {
        let txn = Txn::Error { code: -101 };
        let zxid = Zxid::new(Epoch(epoch), counter);
        let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
        Entry::new(header, txn, None)
    }

    fn zxid(epoch: u32, counter: u32) -> Zxid {
        Zxid::new(Epoch(epoch), counter)
    }

    #[test]
    fn the_floor_of_a_zxid_is_the_entry_at_or_before_it() {
        let journal = Journal::new(zxid(1, 1), vec![entry(1, 2), entry(2, 1)], JOURNAL_ENTRIES);
        assert_eq!(journal.floor(zxid(1, 0)), None);
        assert_eq!(journal.floor(zxid(1, 1)), Some(zxid(1, 1)));
        assert_eq!(journal.floor(zxid(1, 7)), Some(zxid(1, 2)));
        assert_eq!(journal.floor(zxid(9, 0)), Some(zxid(2, 1)));
    }

    #[test]
    fn applied_entries_are_never_truncated() {
        let mut journal =
            Journal::new(Zxid::ZERO, vec![entry(1, 1), entry(1, 2), entry(1, 3)], JOURNAL_ENTRIES);
        assert_eq!(journal.apply_next(zxid(1, 2)).map(|e| e.zxid()), Some(zxid(1, 1)));
        assert_eq!(journal.apply_next(zxid(1, 2)).map(|e| e.zxid()), Some(zxid(1, 2)));
        assert!(journal.apply_next(zxid(1, 2)).is_none());
        assert!(!journal.truncate(zxid(1, 1)));
        assert!(journal.truncate(zxid(1, 2)));
        assert_eq!(journal.last(), zxid(1, 2));
    }

    #[test]
    fn the_journal_keeps_a_bounded_number_of_applied_entries() {
        let mut journal = Journal::new(Zxid::ZERO, Vec::new(), 7);
        for counter in 1..=17 {
            journal.push(entry(1, counter));
            assert!(journal.apply_next(zxid(1, counter)).is_some());
        }
        assert_eq!(journal.base(), zxid(1, 10));
        assert_eq!(journal.after(Zxid::ZERO).count(), 7);
    }
}
