//! A member's disk: one queue, and what survives a crash.

use std::collections::VecDeque;

use node_core::io::{Recovered, StoreOp};
use node_wire::txn::Entry;

use crate::history::dotted;

/// The store of one member.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// Operations wait for the script instead of being done at once.
    pub(crate) manual: bool,
    queue: VecDeque<(u64, StoreOp)>,
    durable: Recovered,
}

impl Disk {
    pub(crate) fn new(durable: Recovered) -> Self {
        Self { manual: false, queue: VecDeque::new(), durable }
    }

    pub(crate) fn push(&mut self, ticket: u64, op: StoreOp) {
        self.queue.push_back((ticket, op));
    }

    /// The process is gone: what was only queued is lost.
    pub(crate) fn crash(&mut self) -> Recovered {
        self.queue.clear();
        self.durable.clone()
    }

    /// Does the next operation. Its ticket, and the line for it.
    pub(crate) fn complete_one(&mut self) -> Option<(u64, String)> {
        let (ticket, op) = self.queue.pop_front()?;
        let line = show(&op);
        match op {
            StoreOp::Append(entry) => self.durable.entries.push(entry),
            StoreOp::Truncate(zxid) => self.durable.entries.retain(|entry| entry.zxid() <= zxid),
            StoreOp::Install(image) => {
                self.durable.image = image.as_ref().clone();
                self.durable.entries.clear();
            }
            StoreOp::AcceptedEpoch(epoch) => self.durable.accepted_epoch = epoch,
            StoreOp::CurrentEpoch(epoch) => self.durable.current_epoch = epoch,
            // A restart finds the configuration that it began with: what is in the log must be enough.
            StoreOp::Membership(_) => {}
        }
        Some((ticket, line))
    }

    /// What a restart would find.
    pub(crate) fn show(&self) -> String {
        let Recovered { accepted_epoch, current_epoch, image, entries } = &self.durable;
        let log: Vec<String> = entries.iter().map(Entry::zxid).map(dotted).collect();
        format!(
            "accepted={accepted_epoch} current={current_epoch} snapshot={} log=[{}]",
            dotted(image.zxid),
            log.join(" ")
        )
    }
}

pub(crate) fn show(op: &StoreOp) -> String {
    match op {
        StoreOp::Append(entry) => format!("append {}", dotted(entry.zxid())),
        StoreOp::Truncate(zxid) => format!("truncate after {}", dotted(*zxid)),
        StoreOp::Install(image) => format!("install snapshot {}", dotted(image.zxid)),
        StoreOp::AcceptedEpoch(epoch) => format!("acceptedEpoch {epoch}"),
        StoreOp::CurrentEpoch(epoch) => format!("currentEpoch {epoch}"),
        StoreOp::Membership(membership) => format!("membership {}", dotted(membership.version)),
    }
}
