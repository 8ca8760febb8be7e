//! Histories that members begin with: each could have come about by the protocol, with these epochs.
//!
//! In some a change of the ensemble was left unfinished by a leader that is gone for good, and not all
//! members have it in their logs. Those are for elections alone.

use std::sync::Arc;

use node_core::tree::Tree;
use node_wire::client::OpCode;
use node_wire::ids::{Epoch, SessionId, Zxid};
use node_wire::membership::{Membership, ServerRole};
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::Model;
use super::disk::{Durable, Mark, mark};
use crate::watcher::server_line;

/// What every member begins with, and what is known to be committed of it.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) disks: Vec<Durable>,
    pub(super) committed: Vec<Mark>,
    /// Who votes, where that may change.
    pub(super) voters: Option<&'static [u64]>,
}

/// A change of the ensemble: the place of its entry, and who votes from there on.
type Change = ((u32, u32), &'static [u64]);

/// Every change that a log of a start proposes. Servers beyond the members of an exploration never run.
const CHANGES: [Change; 4] =
    [((1, 2), &[1, 2, 3, 9]), ((1, 3), &[1, 3, 8, 9]), ((1, 4), &[1, 2]), ((2, 1), &[1, 2, 3])];

/// Those who vote, as members read it.
pub(super) fn membership(voters: &[u64], version: Zxid) -> Membership {
    let lines = voters.iter().map(|voter| server_line(*voter, ServerRole::Participant) + "\n");
    let text = format!("{}version={:x}", lines.collect::<String>(), version.0);
    text.parse().expect("lines of servers are a membership")
}

/// What a change makes, by its version.
pub(super) fn changed(version: Zxid) -> Option<Membership> {
    let change = CHANGES.iter().find(|((epoch, counter), _)| Zxid::new(Epoch(*epoch), *counter) == version);
    change.map(|(_, voters)| membership(voters, version))
}

/// The entry that makes a change.
fn change(epoch: u32, counter: u32) -> Entry {
    let zxid = Zxid::new(Epoch(epoch), counter);
    let data = changed(zxid).map(|membership| membership.to_bytes());
    let txn = Txn::SetData { path: "/zookeeper/config".into(), data, version: -1 };
    let kind = OpCode::Reconfig.code();
    Entry::new(TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind }, txn, None)
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
        voters: None,
    }
}

/// A disk whose last entry makes a change.
fn proposing(mut disk: Durable, epoch: u32, counter: u32) -> Durable {
    disk.entries.push(change(epoch, counter));
    disk
}

fn changing(disks: [Durable; 3], voters: &'static [u64]) -> Start {
    Start { voters: Some(voters), ..start(disks, &[(1, 1)]) }
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

/// Two leaders each left a proposal that nobody else has: the older one has the smaller id and the longer
/// log.
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

/// Of 1, 2 and 9, which is gone, 1 has in its log that 3 joins, and 3 has it; 2 has not. All three are
/// needed.
fn joining() -> Start {
    let old = || disk(1, 1, &[(1, 1)]);
    changing([proposing(old(), 1, 2), old(), proposing(old(), 1, 2)], &[1, 2, 9])
}

/// The same, and 3, which is to join, has not heard of it.
fn joining_unawares() -> Start {
    let old = || disk(1, 1, &[(1, 1)]);
    changing([proposing(old(), 1, 2), old(), old()], &[1, 2, 9])
}

/// 3 alone has in its log that it is to leave, and it has the best vote.
fn leaving() -> Start {
    let log = &[(1, 1), (1, 2), (1, 3)];
    changing([disk(1, 1, log), disk(1, 1, log), proposing(disk(1, 1, log), 1, 4)], &[1, 2, 3])
}

/// 1 alone has a change in its log that can't be finished: 8 and 9 are gone. 2 began an epoch without it.
fn lost() -> Start {
    let log = &[(1, 1), (1, 2)];
    changing([proposing(disk(1, 1, log), 1, 3), disk(2, 2, log), disk(1, 1, log)], &[1, 2, 3])
}

/// Two leaders each left a change that nobody else has: 1 that 8 and 9 join, which are gone, 3 later that it
/// stays.
fn divided() -> Start {
    let log = &[(1, 1), (1, 2)];
    changing(
        [proposing(disk(1, 1, log), 1, 3), disk(2, 1, log), proposing(disk(2, 2, log), 2, 1)],
        &[1, 2, 9],
    )
}

impl Start {
    /// As an ensemble of another size begins: the fourth member is as the second, which holds all that is
    /// committed.
    pub(super) fn for_members(mut self, members: usize) -> Self {
        let second = self.disks[1].clone();
        self.disks.resize(members, second);
        self
    }
}

/// A start by its name.
pub(super) type Named = (&'static str, fn() -> Start);

/// Every start.
const STARTS: [Named; 6] = [
    ("empty", empty),
    ("behind", behind),
    ("proposed", proposed),
    ("diverged", diverged),
    ("deposed", deposed),
    ("snapshots", snapshots),
];

/// Those in which the ensemble changes.
const CHANGING: [Named; 5] = [
    ("joining", joining),
    ("unawares", joining_unawares),
    ("leaving", leaving),
    ("lost", lost),
    ("divided", divided),
];

/// The starts of a model.
pub(super) fn of(model: Model) -> impl Iterator<Item = Named> {
    let changing = CHANGING.into_iter().filter(move |_| model == Model::Election);
    STARTS.into_iter().chain(changing)
}
