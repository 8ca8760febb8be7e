//! A look at a member from outside: for `srvr` and `mntr`, and for invariants.

use node_wire::ids::{Epoch, ServerId, Zxid};

use super::{Member, RoleState};
use crate::leader::Leader;
use crate::phase::Phase;
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

impl Status {
    /// A look at this member.
    pub(super) fn of<P: Protocol>(member: &Member<P>) -> Self {
        let (role, phase, synced_followers) = match &member.role {
            RoleState::Looking { .. } => (Role::Looking, Phase::Election, 0),
            RoleState::Following(learner) => (Role::Following(learner.leader()), learner.phase(), 0),
            RoleState::Leading(leader) => (Role::Leading, leader.phase(), leader.synced_followers()),
        };
        let leader = match &member.role {
            RoleState::Leading(leader) => Some(&**leader),
            RoleState::Looking { .. } | RoleState::Following(_) => None,
        };
        let counts = member.base.tree.counts();
        Self {
            role,
            observes: !member.base.quorum.contains(member.base.config.id),
            voters: member.base.quorum.active_voters(),
            phase,
            established: member.established_epoch().is_some(),
            current_epoch: member.base.current_epoch,
            accepted_epoch: member.base.accepted_epoch,
            last_logged: member.base.journal.last(),
            last_applied: member.base.journal.applied(),
            digest: member.base.tree.digest(),
            znodes: counts.znodes,
            read_only: member.base.clients.is_read_only(),
            sessions: counts.sessions,
            local_sessions: member.base.clients.local_sessions().len(),
            ephemerals: counts.ephemerals,
            clients: member.base.clients.connected(),
            outstanding: member.base.clients.outstanding(),
            synced_followers,
            synced_observers: leader.map_or(0, Leader::synced_observers),
            learners: leader.map_or(0, Leader::peers),
            pending_syncs: leader.map_or(0, Leader::pending_syncs),
            data_size: counts.data_size,
            watches: member.base.clients.watch_count(),
        }
    }
}
