//! The invariants inside: what must be true of the members whatever the clients saw.
//!
//! They follow every store operation, every proposal, every applied entry and every event, and speak up at
//! the step that breaks a promise, long before a client could notice. One file each, named as in ZooKeeper's
//! own specification (`zookeeper-specifications/protocol-spec/Zab.tla`) where it has the property:
//! [`leadership1`], [`leadership2`], [`prefix_consistency`], [`integrity`], [`agreement`], [`total_order`],
//! [`local_primary_order`], [`global_primary_order`], [`primary_integrity`]. Zab.tla has no disks,
//! trees and clients; beside it stand [`durability`], [`recovery`], [`same_tree`], [`epochs`], [`vouching`],
//! [`serving`], [`sessions`], [`requests`], [`reference`], [`memberships`], [`quotas`] and [`specification`].
//! And [`cross_check`] asks whether inside and outside tell the same.
//!
//! They never look at a member's own data structures except through `Status`, and know nothing of time.

mod agreement;
mod cross_check;
mod durability;
mod epochs;
mod global_primary_order;
mod integrity;
mod leadership1;
mod leadership2;
mod local_primary_order;
mod memberships;
mod prefix_consistency;
mod primary_integrity;
mod quotas;
mod recovery;
mod reference;
mod requests;
mod same_tree;
mod serving;
mod sessions;
mod shadow;
mod specification;
mod total_order;
mod vouching;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use node_core::Status;
use node_core::io::{Event, StoreOp};
use node_wire::ids::{Epoch, ServerId, Zxid};
use node_wire::jute::Reader;
use node_wire::txn::{Entry, Txn};

use crate::network::HostIndex;
use crate::outcome::Rule;
use harness_world::trace::Mixer;
use memberships::Memberships;
use prefix_consistency::Committed;
use quotas::Quotas;
pub(crate) use quotas::amounts;
pub(crate) use recovery::Found;
use reference::Reference;
use requests::Requests;
use sessions::Sessions;
pub(crate) use shadow::{Mark, Shadow};
use specification::Specification;
pub(crate) use specification::{Look, PROBED, Told, Update, is_probed};

/// A transaction within a multi.
fn decoded((kind, body): &(i32, Bytes)) -> Option<Txn> {
    Txn::decode(*kind, &mut Reader::new(body.clone())).ok()
}

/// What a multi did: its transactions, or nothing where one of them is an error.
fn parts_of(txns: &[(i32, Bytes)]) -> Vec<Txn> {
    let parts: Option<Vec<Txn>> = txns.iter().map(decoded).collect();
    let whole = parts.filter(|parts| !parts.iter().any(|part| matches!(part, Txn::Error { .. })));
    whole.unwrap_or_default()
}

/// A rule and the sentence that says how it was broken.
pub(crate) type Finding = Result<(), (Rule, String)>;

/// What is known of one member.
#[derive(Clone, Debug, Default)]
struct View {
    /// What its process believes to have logged.
    logged: Shadow,
    /// What its disk is known to hold.
    durable: Shadow,
    /// What it applied in this life.
    applied: Zxid,
    /// What its present leader told it to be committed.
    told: Zxid,
    /// The epoch whose history it took over last in this life.
    epoch: Epoch,
    /// The epoch that it leads.
    leads: Option<Epoch>,
    /// The newest epoch in which it broadcast in this life.
    broadcasts: Option<Epoch>,
    /// The epochs that its disk is known to hold.
    accepted: Epoch,
    current: Epoch,
}

/// An entry as its primary first sent or logged it.
#[derive(Clone, Debug)]
struct Proposed {
    hash: u64,
    bytes: Bytes,
    /// What its primary had applied then.
    seen: Zxid,
}

/// Everything known of an ensemble.
#[derive(Clone, Debug)]
pub(crate) struct Invariants {
    views: Vec<View>,
    leaders: BTreeMap<Epoch, ServerId>,
    /// The log that each epoch began with.
    histories: BTreeMap<Epoch, Shadow>,
    established: BTreeSet<Epoch>,
    proposed: BTreeMap<Zxid, Proposed>,
    /// The newest epoch in which anybody broadcast.
    broadcasts: Option<Epoch>,
    committed: Vec<Committed>,
    /// Acknowledged entries that no living member was yet seen to apply.
    unseen: Vec<Zxid>,
    /// What members had applied that left their role in the same step.
    parting: BTreeSet<Zxid>,
    /// What stands in each entry that was ever logged.
    entries: BTreeMap<Zxid, Entry>,
    sessions: Sessions,
    requests: Requests,
    reference: Reference,
    memberships: Memberships,
    quotas: Quotas,
    spec: Specification,
}

fn server(host: HostIndex) -> ServerId {
    ServerId(u64::try_from(host).expect("members are few") + 1)
}

impl Invariants {
    /// Nothing known of this many members that vote.
    #[cfg(test)]
    pub(crate) fn new(voters: usize) -> Self {
        Self::of(voters, 0)
    }

    /// Nothing known of so many members that vote, and behind them so many that do not.
    pub(crate) fn of(voters: usize, observers: usize) -> Self {
        Self {
            views: vec![View::default(); voters + observers],
            leaders: BTreeMap::new(),
            histories: BTreeMap::new(),
            established: BTreeSet::new(),
            proposed: BTreeMap::new(),
            broadcasts: None,
            committed: Vec::new(),
            unseen: Vec::new(),
            parting: BTreeSet::new(),
            entries: BTreeMap::new(),
            sessions: Sessions::default(),
            requests: Requests::default(),
            reference: Reference::default(),
            memberships: Memberships::new(voters, voters + observers),
            quotas: Quotas::default(),
            spec: Specification::default(),
        }
    }

    /// A leader sent a proposal. It may die before it stores what it sent.
    pub(crate) fn proposes(&mut self, host: HostIndex, zxid: Zxid, bytes: &Bytes, leads: bool) -> Finding {
        let mark = Mark { zxid, hash: Mixer::of(bytes) };
        self.note_broadcast(host, mark, bytes, leads);
        self.check_broadcast(host, mark)
    }

    /// The first one to send or log an entry is its primary, if it leads.
    fn note_broadcast(&mut self, host: HostIndex, mark: Mark, bytes: &Bytes, leads: bool) {
        if leads && !self.proposed.contains_key(&mark.zxid) {
            let seen = self.views[host].applied;
            self.proposed.insert(mark.zxid, Proposed { hash: mark.hash, bytes: bytes.clone(), seen });
            let epoch = Some(mark.zxid.epoch());
            self.broadcasts = self.broadcasts.max(epoch);
            self.views[host].broadcasts = self.views[host].broadcasts.max(epoch);
        }
    }

    /// A member put an operation into its store's queue.
    pub(crate) fn stores(&mut self, host: HostIndex, op: &StoreOp, leads: bool) -> Finding {
        match op {
            StoreOp::Append(entry) => {
                let mark = Mark::of(entry);
                self.note_broadcast(host, mark, &entry.bytes, leads);
                self.check_integrity(host, mark)?;
                if !self.entries.contains_key(&entry.zxid()) {
                    self.memberships.logged(entry);
                    self.entries.insert(entry.zxid(), entry.clone());
                }
                if leads {
                    self.check_numbering(host, entry.zxid())?;
                }
            }
            StoreOp::CurrentEpoch(epoch) => self.views[host].epoch = *epoch,
            StoreOp::Truncate(_)
            | StoreOp::Install(_)
            | StoreOp::AcceptedEpoch(_)
            | StoreOp::Membership(_) => {}
        }
        if let StoreOp::CurrentEpoch(epoch) = op
            && leads
        {
            self.begins(host, *epoch);
        }
        self.views[host].logged.follow(op);
        Ok(())
    }

    /// A member's store finished an operation.
    pub(crate) fn stored(&mut self, host: HostIndex, op: &StoreOp) -> Finding {
        let view = &mut self.views[host];
        view.durable.follow(op);
        match op {
            StoreOp::AcceptedEpoch(epoch) => view.accepted = *epoch,
            StoreOp::CurrentEpoch(epoch) => {
                view.current = *epoch;
                self.memberships.vouches(host, *epoch);
                return self.check_vouching(host, *epoch);
            }
            StoreOp::Append(_) | StoreOp::Truncate(_) | StoreOp::Install(_) | StoreOp::Membership(_) => {}
        }
        Ok(())
    }

    /// A member told of a transition.
    pub(crate) fn told(&mut self, host: HostIndex, event: &Event) -> Finding {
        if let Event::Looking { .. } = event {
            self.views[host].told = Zxid::ZERO;
        }
        if let Event::Established { leader, epoch } = event {
            self.check_leadership2(*leader, *epoch)?;
            self.check_epoch_quorum(host, event)?;
            self.established.insert(*epoch);
            if server(host) == *leader {
                self.check_history_of_leader(host, *epoch)?;
            }
        }
        Ok(())
    }

    /// A member's process ended.
    pub(crate) fn ended(&mut self, host: HostIndex) {
        self.views[host].leads = None;
        self.memberships.ended(host);
    }

    /// A member finished a step. Returns how many entries were committed by it.
    pub(crate) fn stepped(&mut self, host: HostIndex, status: &Status) -> Result<u64, (Rule, String)> {
        self.check_told(host, status.established, status.last_applied)?;
        self.check_leadership1(host, status)?;
        // What a member holds before its epoch stands is served to nobody.
        if !status.established {
            return Ok(0);
        }
        let new = if status.last_applied == self.views[host].applied {
            0
        } else {
            let new = self.check_deliveries(host, status.last_applied, status.digest)?;
            self.check_counts(host, status)?;
            new
        };
        if let Some(epoch) = self.views[host].broadcasts.take() {
            self.check_primary_integrity(host, epoch, status.last_applied)?;
        }
        Ok(new)
    }

    /// The number of epochs that had an established leader.
    pub(crate) fn epochs(&self) -> u64 {
        u64::try_from(self.established.len()).expect("epochs are few")
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
