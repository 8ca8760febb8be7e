//! A look at a member from outside: for `srvr` and `mntr`, and for invariants.

use node_wire::ids::{Epoch, ServerId, Zxid};
use node_wire::membership::Membership;
use node_wire::txn::Entry;

use super::{Member, RoleState};
use crate::leader::Leader;
use crate::phase::Phase;
use crate::tree::TreeSnapshot;
use crate::zab::Protocol;

/// What a member is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Looks for a leader.
    Looking,
    /// Follows this leader.
    Following(ServerId),
    /// Leads.
    Leading,
}

/// A look at a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its role.
    pub role: Role,
    /// It has no vote.
    pub observes: bool,
    /// How many have one, by the membership that rules.
    pub voters: usize,
    /// Its phase.
    pub phase: Phase,
    /// True from the establishing of an epoch to its end: the member serves.
    pub established: bool,
    /// The epoch whose history it holds.
    pub current_epoch: Epoch,
    /// The highest epoch it promised to follow.
    pub accepted_epoch: Epoch,
    /// The last logged zxid.
    pub last_logged: Zxid,
    /// The last applied, that is committed, zxid.
    pub last_applied: Zxid,
    /// Digest of the committed tree: equal trees at equal zxids have equal digests.
    pub digest: i64,
    /// Znodes, the root included.
    pub znodes: usize,
    /// Without a leader it serves reads.
    pub read_only: bool,
    /// Live sessions of the ensemble.
    pub sessions: usize,
    /// Sessions of this member alone.
    pub local_sessions: usize,
    /// Ephemeral znodes.
    pub ephemerals: usize,
    /// Clients connected to this member.
    pub clients: usize,
    /// Requests of these clients that are not answered yet.
    pub outstanding: usize,
    /// Followers that hold the epoch's history (of a leader; else 0).
    pub synced_followers: usize,
    /// Observers that hold the epoch's history (of a leader; else 0).
    pub synced_observers: usize,
    /// Learners that are connected (of a leader; else 0).
    pub learners: usize,
    /// Syncs that wait for a quorum (of a leader; else 0).
    pub pending_syncs: usize,
    /// Bytes of paths and data in the tree.
    pub data_size: u64,
    /// Watches of this member's clients.
    pub watches: usize,
}

impl<P: Protocol> Member<P> {
    /// The last applied, that is committed, zxid: what a driver asks at each turn.
    pub fn last_applied(&self) -> Zxid {
        self.base.journal.applied()
    }

    /// A summary for operators and for invariants.
    pub fn status(&self) -> Status {
        let (role, phase, synced_followers) = match &self.role {
            RoleState::Looking { .. } => (Role::Looking, Phase::Election, 0),
            RoleState::Following(learner) => (Role::Following(learner.leader()), learner.phase(), 0),
            RoleState::Leading(leader) => (Role::Leading, leader.phase(), leader.synced_followers()),
        };
        let leader = match &self.role {
            RoleState::Leading(leader) => Some(&**leader),
            RoleState::Looking { .. } | RoleState::Following(_) => None,
        };
        let counts = self.base.tree.counts();
        Status {
            role,
            observes: !self.base.quorum.contains(self.base.config.id),
            voters: self.base.quorum.active_voters(),
            phase,
            established: self.established_epoch().is_some(),
            current_epoch: self.base.current_epoch,
            accepted_epoch: self.base.accepted_epoch,
            last_logged: self.base.journal.last(),
            last_applied: self.base.journal.applied(),
            digest: self.base.tree.digest(),
            znodes: counts.znodes,
            read_only: self.base.clients.is_read_only(),
            sessions: counts.sessions,
            local_sessions: self.base.clients.local_sessions().len(),
            ephemerals: counts.ephemerals,
            clients: self.base.clients.connected(),
            outstanding: self.base.clients.outstanding(),
            synced_followers,
            synced_observers: leader.map_or(0, Leader::synced_observers),
            learners: leader.map_or(0, Leader::peers),
            pending_syncs: leader.map_or(0, Leader::pending_syncs),
            data_size: counts.data_size,
            watches: self.base.clients.watch_count(),
        }
    }

    /// Its number.
    pub fn id(&self) -> ServerId {
        self.base.config.id
    }

    /// The membership that rules. Without a server in it where the ensemble can't change.
    pub fn membership(&self) -> &Membership {
        self.base.ensemble.active()
    }

    /// The rules that it follows.
    pub fn rules(&self) -> P {
        self.base.zab
    }

    /// The committed tree.
    pub fn tree(&self) -> TreeSnapshot {
        self.base.tree.snapshot()
    }

    /// The entries that are kept in memory, ascending, and how many of them are applied.
    pub fn history(&self) -> (Vec<Entry>, usize) {
        self.base.journal.contents()
    }
}
