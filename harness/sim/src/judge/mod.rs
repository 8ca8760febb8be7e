//! The invariants inside: what must be true of the members whatever the clients saw.
//!
//! The judge follows every store operation, every applied entry and every event, and speaks up at the step
//! that breaks a promise, long before a client could notice. One file each: [`leaders`], [`integrity`],
//! [`prefix`], [`durability`], [`recovery`]. The names are those of ZooKeeper's own Zab.tla where it has one.
//!
//! It never looks at a member's own data structures except through `Status`, and knows nothing of time.

mod durability;
mod integrity;
mod leaders;
mod prefix;
mod recovery;
mod shadow;

use std::collections::BTreeMap;

use node_core::Status;
use node_core::io::{Event, StoreOp};
use node_wire::ids::{Epoch, ServerId, Zxid};

use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::trace::Mixer;
use prefix::Committed;
pub(crate) use recovery::Found;
pub(crate) use shadow::{Mark, Shadow};

/// A rule and the sentence that says how it was broken.
pub(crate) type Finding = Result<(), (Rule, String)>;

/// What the judge knows of one member.
#[derive(Clone, Debug, Default)]
struct View {
    /// What its process believes to have logged.
    logged: Shadow,
    /// What its disk is known to hold.
    durable: Shadow,
    /// What it applied in this life.
    applied: Zxid,
}

/// Everything known of an ensemble.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    views: Vec<View>,
    leaders: BTreeMap<Epoch, ServerId>,
    proposed: BTreeMap<Zxid, u64>,
    committed: Vec<Committed>,
    /// Acknowledged entries that no living member was yet seen to apply.
    unseen: Vec<Zxid>,
}

fn server(host: HostIndex) -> ServerId {
    ServerId(u64::try_from(host).expect("members are few") + 1)
}

impl Judge {
    /// Nothing known of this many members.
    pub(crate) fn new(members: usize) -> Self {
        Self {
            views: vec![View::default(); members],
            leaders: BTreeMap::new(),
            proposed: BTreeMap::new(),
            committed: Vec::new(),
            unseen: Vec::new(),
        }
    }

    /// A leader sent a proposal. It may die before it stores what it sent.
    pub(crate) fn proposes(&mut self, host: HostIndex, zxid: Zxid, bytes: &[u8], leads: bool) -> Finding {
        self.check_proposal(host, Mark { zxid, hash: Mixer::of(bytes) }, leads)
    }

    /// A member put an operation into its store's queue.
    pub(crate) fn stores(&mut self, host: HostIndex, op: &StoreOp, leads: bool) -> Finding {
        if let StoreOp::Append(entry) = op {
            self.check_integrity(host, Mark::of(entry), leads)?;
        }
        self.views[host].logged.follow(op);
        Ok(())
    }

    /// A member's store finished an operation.
    pub(crate) fn stored(&mut self, host: HostIndex, op: &StoreOp) {
        self.views[host].durable.follow(op);
    }

    /// A member told of a transition.
    pub(crate) fn told(&mut self, host: HostIndex, event: &Event) -> Finding {
        if let Event::Established { leader, epoch } = event {
            self.check_leader(*leader, *epoch)?;
            if server(host) == *leader {
                self.check_history_of_leader(host, *epoch)?;
            }
        }
        Ok(())
    }

    /// A member finished a step. Returns how many entries were committed by it.
    pub(crate) fn stepped(&mut self, host: HostIndex, status: &Status) -> Result<u64, (Rule, String)> {
        // What a member holds before its epoch stands is served to nobody.
        if !status.established || status.last_applied == self.views[host].applied {
            return Ok(0);
        }
        self.check_prefix(host, status.last_applied, status.digest)
    }

    /// The number of epochs that had an established leader.
    pub(crate) fn epochs(&self) -> u64 {
        u64::try_from(self.leaders.len()).expect("epochs are few")
    }

    /// The newest entry that a member's disk is known to hold.
    pub(crate) fn durable(&self, host: HostIndex) -> Zxid {
        self.views[host].durable.last()
    }

    /// The newest committed entry.
    pub(crate) fn last_committed(&self) -> Zxid {
        self.committed.last().map_or(Zxid::ZERO, |committed| committed.mark.zxid)
    }
}

#[cfg(test)]
mod tests;
