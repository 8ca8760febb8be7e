//! A disk without bytes: what is durable, and what waits in the store's one queue.
//!
//! A crash keeps some prefix of the queue: each prefix is a successor of its own. A torn write needs none,
//! because recovery cuts it. A truncation under way may have cut a part of what it was to cut.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use node_core::io::{Recovered, StoreOp};
use node_wire::ids::{Epoch, Zxid};
use node_wire::snapshot::Image;
use node_wire::txn::Entry;

use super::digest;

/// An entry by its place and its content.
pub(super) type Mark = (Zxid, u64);

/// The mark of an entry.
pub(super) fn mark(entry: &Entry) -> Mark {
    (entry.zxid(), digest::of(&entry.bytes))
}

/// What is durable.
#[derive(Clone, Debug, Default)]
pub(super) struct Durable {
    pub(super) accepted: Epoch,
    pub(super) current: Epoch,
    pub(super) image: Arc<Image>,
    pub(super) entries: Vec<Entry>,
}

impl Durable {
    pub(super) fn last(&self) -> Zxid {
        self.entries.last().map_or(self.image.zxid, Entry::zxid)
    }

    /// Carries out an operation. An error is what the real log refuses, and what stops a member.
    pub(super) fn carry_out(&mut self, op: &StoreOp) -> Result<(), String> {
        match op {
            StoreOp::Append(entry) => {
                if entry.zxid() <= self.last() {
                    return Err(format!("log {} behind {}", entry.zxid(), self.last()));
                }
                self.entries.push(entry.clone());
            }
            StoreOp::Truncate(zxid) => {
                if *zxid < self.image.zxid {
                    return Err(format!("cut to {zxid} a log that begins with {}", self.image.zxid));
                }
                self.entries.retain(|entry| entry.zxid() <= *zxid);
            }
            StoreOp::Install(image) => {
                self.image = Arc::clone(image);
                self.entries.clear();
            }
            StoreOp::AcceptedEpoch(epoch) => {
                if *epoch < self.accepted {
                    return Err(format!("write acceptedEpoch {epoch} over {}", self.accepted));
                }
                self.accepted = *epoch;
            }
            StoreOp::CurrentEpoch(epoch) => {
                if *epoch < self.current || *epoch > self.accepted {
                    return Err(format!(
                        "write currentEpoch {epoch} over {}, with acceptedEpoch {}",
                        self.current, self.accepted
                    ));
                }
                self.current = *epoch;
            }
            StoreOp::Membership(_) => {}
        }
        Ok(())
    }

    /// True when the entry is there, or old enough to be in the snapshot.
    pub(super) fn holds(&self, mark: Mark) -> bool {
        mark.0 <= self.image.zxid || self.entries.iter().any(|entry| self::mark(entry) == mark)
    }

    /// What a process finds.
    pub(super) fn recover(&self) -> Recovered {
        Recovered {
            accepted_epoch: self.accepted,
            current_epoch: self.current,
            image: Image::clone(&self.image),
            entries: self.entries.clone(),
        }
    }
}

impl Hash for Durable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { accepted, current, image, entries } = self;
        (accepted, current, image.zxid, entries.len()).hash(state);
        for entry in entries {
            entry.bytes.hash(state);
        }
    }
}

/// How much of the queue a crash leaves: so many operations, and so many entries of what the next one, a
/// truncation, was to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) operations: usize,
    pub(super) cut: usize,
}

/// A disk and its queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) durable: Durable,
    pub(super) queue: VecDeque<(u64, StoreOp)>,
}

impl Disk {
    /// Everything up to a ticket becomes durable.
    pub(super) fn store_up_to(&mut self, ticket: u64) -> Result<(), String> {
        while self.queue.front().is_some_and(|(queued, _)| *queued <= ticket) {
            let Some((_, op)) = self.queue.pop_front() else { break };
            self.durable.carry_out(&op)?;
        }
        Ok(())
    }

    /// What a crash may leave. The whole queue first: the least surprising one.
    pub(super) fn after_a_crash(&self) -> Vec<Kept> {
        let mut outcomes: Vec<Kept> = Vec::new();
        let mut durable = self.durable.clone();
        for operations in 0..=self.queue.len() {
            outcomes.push(Kept { operations, cut: 0 });
            let Some((_, op)) = self.queue.get(operations) else { break };
            if let StoreOp::Truncate(zxid) = op {
                let doomed = durable.entries.iter().filter(|entry| entry.zxid() > *zxid).count();
                outcomes.extend((1..doomed).map(|cut| Kept { operations, cut }));
            }
            if durable.carry_out(op).is_err() {
                break;
            }
        }
        outcomes.reverse();
        outcomes
    }

    /// What waits in the queue is lost, but for what is `kept` of it.
    pub(super) fn crash(&mut self, kept: Kept) -> Result<(), String> {
        for (_, op) in std::mem::take(&mut self.queue).into_iter().take(kept.operations) {
            self.durable.carry_out(&op)?;
        }
        let left = self.durable.entries.len().saturating_sub(kept.cut);
        self.durable.entries.truncate(left);
        Ok(())
    }
}

impl Hash for Disk {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.durable.hash(state);
        state.write_usize(self.queue.len());
        for (_, op) in &self.queue {
            match op {
                StoreOp::Append(entry) => (0_u8, &entry.bytes).hash(state),
                StoreOp::Truncate(zxid) => (1_u8, zxid).hash(state),
                StoreOp::Install(image) => (2_u8, image.zxid).hash(state),
                StoreOp::AcceptedEpoch(epoch) => (3_u8, epoch).hash(state),
                StoreOp::CurrentEpoch(epoch) => (4_u8, epoch).hash(state),
                StoreOp::Membership(membership) => (5_u8, membership).hash(state),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_any_prefix_of_the_queue() {
        let mut disk = Disk::default();
        disk.queue.push_back((1, StoreOp::AcceptedEpoch(Epoch(1))));
        disk.queue.push_back((2, StoreOp::CurrentEpoch(Epoch(1))));
        let found: Vec<_> = disk
            .after_a_crash()
            .into_iter()
            .map(|kept| {
                let mut disk = disk.clone();
                disk.crash(kept).expect("nothing is refused");
                (disk.durable.accepted.0, disk.durable.current.0)
            })
            .collect();
        assert_eq!(found, [(1, 1), (1, 0), (0, 0)]);
    }

    #[test]
    fn a_current_epoch_beyond_the_accepted_one_is_refused() {
        assert!(Durable::default().carry_out(&StoreOp::CurrentEpoch(Epoch(1))).is_err());
    }
}
