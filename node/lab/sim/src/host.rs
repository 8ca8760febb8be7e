//! A machine: its disk and clocks, and the process that runs on it while it runs.
//!
//! The process is the real core behind a driver that does what the real one does: one queue for the store,
//! one writer, an fsync shared by consecutive appends, snapshots in the background. The disk outlives it.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use node_core::io::{Input, Now, StoreOp};
use node_core::tree::TreeSnapshot;
use node_core::{Machine, MemberView, Phase, Role};
use node_log::{Log, LogError, MemStorage};
use node_wire::election::Notification;
use node_wire::ids::ServerId;

use crate::network::{EndId, HostIndex};
use harness_world::clock::{Clock, Reading};
use harness_world::time::Time;

/// Appends that share one fsync at most.
const MAX_BATCH: usize = 1000;

/// Inputs that wait for a process that stands still.
pub(crate) const MAX_INBOX: usize = 200_000;

/// Where an input comes from: inputs of one source keep their order, those of different sources do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The timer.
    Timer,
    /// The store.
    Store,
    /// The election connection to a peer.
    Election(HostIndex),
    /// A dial that did not lead to a connection.
    Dial(HostIndex),
    /// A quorum connection.
    Conn(EndKey),
    /// A client's connection.
    Client(usize),
}

/// An end of a quorum connection, in an order.
pub(crate) type EndKey = (usize, usize);

impl From<EndId> for Source {
    fn from(end: EndId) -> Self {
        Self::Conn((end.conn, end.end))
    }
}

/// The store's queue: one writer, operations in order.
#[derive(Debug, Default)]
pub(crate) struct Store {
    queue: VecDeque<(u64, StoreOp)>,
    /// What the writer is doing: consecutive appends, or one other operation.
    running: Vec<(u64, StoreOp)>,
    /// When each of those that the writer has not finished was told.
    told: VecDeque<Time>,
}

impl Store {
    /// Puts an operation at the end.
    pub(crate) fn push(&mut self, ticket: u64, op: StoreOp, now: Time) {
        self.queue.push_back((ticket, op));
        self.told.push_back(now);
    }

    /// Since when the oldest operation that is not done waits.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        self.told.front().copied()
    }

    /// Starts the next batch if the writer is idle and there is something to do. While a snapshot is being
    /// written nothing is taken away from the log: what was thrown away must not come back as a snapshot.
    pub(crate) fn start(&mut self, snapshot_in_progress: bool) -> bool {
        if !self.running.is_empty() {
            return false;
        }
        let takes_away = |op: &StoreOp| matches!(op, StoreOp::Truncate(_) | StoreOp::Install(_));
        if snapshot_in_progress && self.queue.front().is_some_and(|(_, op)| takes_away(op)) {
            return false;
        }
        while let Some((_, op)) = self.queue.front() {
            let append = matches!(op, StoreOp::Append(_));
            if !self.running.is_empty() && !append || self.running.len() == MAX_BATCH {
                break;
            }
            self.running.extend(self.queue.pop_front());
            if !append {
                break;
            }
        }
        !self.running.is_empty()
    }

    /// What the writer is doing.
    pub(crate) fn running(&self) -> Option<&StoreOp> {
        self.running.first().map(|(_, op)| op)
    }

    /// True when the writer is at nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Lets the batch that the writer is at be so many operations, as far as they can share one.
    pub(crate) fn rebatch(&mut self, ops: usize) {
        while self.running.len() > ops.max(1) {
            self.queue.extend(self.running.pop());
            self.queue.rotate_right(1);
        }
        let append = |op: &(u64, StoreOp)| matches!(op.1, StoreOp::Append(_));
        while self.running.len() < ops
            && self.running.last().is_some_and(append)
            && self.queue.front().is_some_and(append)
        {
            self.running.extend(self.queue.pop_front());
        }
    }

    /// The batch that the writer finishes, or that a crash interrupts.
    pub(crate) fn take_running(&mut self) -> Vec<(u64, StoreOp)> {
        self.told.drain(..self.running.len());
        std::mem::take(&mut self.running)
    }
}

/// Carries out a batch: written, then made durable.
pub(crate) fn carry_out(log: &mut Log<MemStorage>, batch: &[(u64, StoreOp)]) -> Result<(), LogError> {
    for (_, op) in batch {
        match op {
            StoreOp::Append(entry) => log.append(entry)?,
            StoreOp::Truncate(zxid) => log.truncate(*zxid)?,
            StoreOp::Install(image) => log.install(image)?,
            StoreOp::AcceptedEpoch(epoch) => log.set_accepted_epoch(*epoch)?,
            StoreOp::CurrentEpoch(epoch) => log.set_current_epoch(*epoch)?,
            // Nothing keeps it: what is in the log must be enough for whoever starts again.
            StoreOp::Membership(_) => {}
        }
    }
    if batch.iter().any(|(_, op)| matches!(op, StoreOp::Append(_))) {
        log.flush_and_sync()?;
    }
    Ok(())
}

/// A step that is not over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) since: Time,
    pub(crate) until: Time,
    /// Its process stood still meanwhile, so that nobody could speak for it.
    pub(crate) paused: bool,
}

/// A running process.
pub(crate) struct Process {
    pub(crate) machine: Box<dyn Machine>,
    pub(crate) log: Log<MemStorage>,
    pub(crate) store: Store,
    /// The last vote for each peer, sent again when a connection comes back.
    pub(crate) votes: BTreeMap<ServerId, Notification>,
    /// The snapshot that is being written.
    pub(crate) snapshot: Option<TreeSnapshot>,
    pub(crate) role: Role,
    pub(crate) phase: Phase,
    pub(crate) established: bool,
    /// It serves reads without a leader.
    pub(crate) alone: bool,
    /// The last operation that it gave its store was a truncation.
    pub(crate) truncated: bool,
    /// Pauses that are not over.
    pub(crate) pauses: u32,
    /// The step that it is at, where that takes time.
    pub(crate) work: Option<Work>,
    /// What came while it stood still, or worked.
    pub(crate) inbox: Vec<(Source, Input)>,
    /// Ends the process when so many more effects were carried out.
    pub(crate) dies_after: Option<u64>,
    /// Ends the process in the middle of its next store operation.
    pub(crate) dies_storing: bool,
}

impl Process {
    /// Whether it takes something in at once.
    pub(crate) fn hears(&self) -> bool {
        self.pauses == 0 && self.work.is_none()
    }

    /// The member, to look at.
    pub(crate) fn member(&self) -> &dyn MemberView {
        self.machine.member()
    }
}

/// A machine.
pub(crate) struct Host {
    pub(crate) id: ServerId,
    pub(crate) disk: MemStorage,
    pub(crate) clock: Clock,
    /// Counts starts and ends of processes: what was planned for an earlier one is void.
    pub(crate) life: u64,
    pub(crate) process: Option<Process>,
    /// What an fsync usually takes.
    pub(crate) fsync_us: u64,
    /// Every fsync that starts before this moment is slow.
    pub(crate) slow_until: Time,
    /// The operation that the last crash interrupted.
    pub(crate) interrupted: Option<StoreOp>,
    /// Failures of its disk that have had their consequences.
    pub(crate) failures_seen: u64,
    /// Which bit of its disk is wrong.
    pub(crate) rot: Option<Rot>,
}

impl Host {
    /// What its clocks show, as a member is told.
    pub(crate) fn now(&self, at: Time) -> Now {
        let Reading { mono, wall_ms } = self.clock.read(at);
        Now { mono, wall_ms }
    }
}

/// A bit of a file that turned over.
#[derive(Clone, Debug)]
pub(crate) struct Rot {
    pub(crate) file: String,
    /// The number of the file: one that takes its name later is sound.
    pub(crate) identity: Option<u64>,
    pub(crate) bit: usize,
    /// True once recovery refused the disk for it.
    pub(crate) refused: bool,
    /// The whole file is gone, and this was in it.
    pub(crate) lost: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use node_wire::ids::{Epoch, SessionId, Zxid};
    use node_wire::txn::{Entry, Txn, TxnHeader};

    use super::*;

    fn append(counter: u32) -> StoreOp {
        let txn = Txn::Error { code: -101 };
        let zxid = Zxid::new(Epoch(1), counter);
        let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
        StoreOp::Append(Entry::new(header, txn, None))
    }

    #[test]
    fn consecutive_appends_share_a_batch_and_nothing_else_does() {
        let mut store = Store::default();
        let ops =
            [append(1), append(2), StoreOp::Truncate(Zxid::ZERO), StoreOp::CurrentEpoch(Epoch(2)), append(3)];
        for (ticket, op) in (1..).zip(ops) {
            store.push(ticket, op, Time::default());
        }
        let mut batches = Vec::new();
        while store.start(false) {
            assert!(!store.start(false), "one writer");
            batches.push(store.take_running().iter().map(|(ticket, _)| *ticket).collect::<Vec<_>>());
        }
        assert_eq!(batches, [vec![1, 2], vec![3], vec![4], vec![5]]);
    }

    #[test]
    fn nothing_is_truncated_under_a_snapshot_that_is_being_written() {
        let mut store = Store::default();
        store.push(1, StoreOp::Truncate(Zxid::ZERO), Time::default());
        assert!(!store.start(true));
        assert!(store.start(false));
    }
}
