//! Histories that members begin with: each could have come about by the protocol, with these epochs.

use std::sync::Arc;

use node_core::tree::Tree;
use node_wire::ids::{Epoch, SessionId, Zxid};
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::disk::{Durable, Mark, mark};

/// What every member begins with, and what is known to be committed of it.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) disks: Vec<Durable>,
    pub(super) committed: Vec<Mark>,
}

/// The entry of a place in an epoch. It changes nothing in the tree but its zxid.
fn entry(epoch: u32, counter: u32) -> Entry {
    let txn = Txn::Error { code: -101 };
    let zxid = Zxid::new(Epoch(epoch), counter);
    let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
    Entry::new(header, txn, None)
}

fn disk(accepted: u32, current: u32, entries: &[(u32, u32)]) -> Durable {
    Durable {
        accepted: Epoch(accepted),
        current: Epoch(current),
        entries: entries.iter().map(|(epoch, counter)| entry(*epoch, *counter)).collect(),
        ..Durable::default()
    }
}

fn start(disks: [Durable; 3], committed: &[(u32, u32)]) -> Start {
    Start {
        disks: disks.to_vec(),
        committed: committed.iter().map(|(epoch, counter)| mark(&entry(*epoch, *counter))).collect(),
    }
}

/// A disk whose first entries are in a snapshot: who lacks them is sent the tree.
fn with_snapshot(mut disk: Durable, entries: usize) -> Durable {
    let mut tree = Tree::default();
    for entry in disk.entries.drain(..entries) {
        tree.apply(&entry);
    }
    disk.image = Arc::new(tree.snapshot().to_image());
    disk
}

/// A new ensemble.
fn empty() -> Start {
    start([disk(0, 0, &[]), disk(0, 0, &[]), disk(0, 0, &[])], &[])
}

/// One entry, which a quorum holds and the third member does not.
fn behind() -> Start {
    start([disk(1, 1, &[(1, 1)]), disk(1, 1, &[(1, 1)]), disk(1, 1, &[])], &[(1, 1)])
}

/// The leader of epoch 1 alone holds what it proposed last.
fn proposed() -> Start {
    start([disk(1, 1, &[(1, 1), (1, 2)]), disk(1, 1, &[(1, 1)]), disk(0, 0, &[])], &[(1, 1)])
}

/// Two leaders each left a proposal that nobody else has: the older one has the smaller id and the longer log.
fn diverged() -> Start {
    let second = disk(2, 2, &[(1, 1), (2, 1)]);
    start([disk(1, 1, &[(1, 1), (1, 2), (1, 3)]), second, disk(2, 2, &[(1, 1)])], &[(1, 1)])
}

/// Epoch 2 began with less than the deposed leader of epoch 1, which is the largest id, has in its log.
fn deposed() -> Start {
    start([disk(2, 2, &[(1, 1)]), disk(2, 2, &[(1, 1)]), disk(1, 1, &[(1, 1), (1, 2)])], &[(1, 1)])
}

/// The first entry is in a snapshot at two members, and the third has nothing.
fn snapshots() -> Start {
    let longer = with_snapshot(disk(1, 1, &[(1, 1), (1, 2)]), 1);
    start([longer, with_snapshot(disk(1, 1, &[(1, 1)]), 1), disk(0, 0, &[])], &[(1, 1)])
}

impl Start {
    /// As an ensemble of another size begins: the fourth member is as the second, which holds all that is committed.
    pub(super) fn for_members(mut self, members: usize) -> Self {
        let second = self.disks[1].clone();
        self.disks.resize(members, second);
        self
    }
}

/// A start by its name.
pub(super) type Named = (&'static str, fn() -> Start);

/// Every start.
pub(super) const STARTS: [Named; 6] = [
    ("empty", empty),
    ("behind", behind),
    ("proposed", proposed),
    ("diverged", diverged),
    ("deposed", deposed),
    ("snapshots", snapshots),
];
