//! What a member's log holds, followed from outside through its store operations.
//!
//! Following is cheap where asking would copy the log, and it is independent of the member's own idea of what
//! it stored.

use node_core::io::StoreOp;
use node_wire::ids::Zxid;
use node_wire::txn::Entry;

use harness_world::trace::Mixer;

/// An entry as the invariants know it: its place, and a hash of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) zxid: Zxid,
    pub(crate) hash: u64,
}

impl Mark {
    /// The mark of an entry.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self { zxid: entry.zxid(), hash: Mixer::of(&entry.bytes) }
    }
}

/// A log seen from outside: a snapshot's zxid and the entries behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    base: Zxid,
    marks: Vec<Mark>,
}

impl Shadow {
    /// A log that was found on disk.
    pub(crate) fn recovered(base: Zxid, entries: &[Entry]) -> Self {
        Self { base, marks: entries.iter().map(Mark::of).collect() }
    }

    /// Follows an operation.
    pub(crate) fn follow(&mut self, op: &StoreOp) {
        match op {
            StoreOp::Append(entry) => self.marks.push(Mark::of(entry)),
            StoreOp::Truncate(zxid) => self.marks.truncate(self.upper(*zxid)),
            StoreOp::Install(image) => *self = Self { base: image.zxid, marks: Vec::new() },
            StoreOp::AcceptedEpoch(_) | StoreOp::CurrentEpoch(_) | StoreOp::Membership(_) => {}
        }
    }

    /// The snapshot that everything before it is in.
    pub(crate) fn base(&self) -> Zxid {
        self.base
    }

    /// The newest zxid.
    pub(crate) fn last(&self) -> Zxid {
        self.marks.last().map_or(self.base, |mark| mark.zxid)
    }

    /// The number of entries that are not after this zxid.
    fn upper(&self, zxid: Zxid) -> usize {
        self.marks.partition_point(|mark| mark.zxid <= zxid)
    }

    /// The entries in `(after, up_to]`.
    pub(crate) fn range(&self, after: Zxid, up_to: Zxid) -> &[Mark] {
        let (from, to) = (self.upper(after), self.upper(up_to));
        &self.marks[from.min(to)..to]
    }

    /// True when the entry is in the log, or old enough to be in its snapshot.
    pub(crate) fn holds(&self, mark: Mark) -> bool {
        mark.zxid <= self.base || self.shows(mark)
    }

    /// True when the entry itself is in the log.
    pub(crate) fn shows(&self, mark: Mark) -> bool {
        let index = self.upper(mark.zxid);
        index > 0 && self.marks[index - 1] == mark
    }
}
