//! What can be asked of a member: by drivers, operators and those who judge it.
//!
//! Nothing here changes anything, and nothing here is asked by the protocol. [`MemberView`] does not name the
//! member's rules, so whoever drives members of several kinds is written, and compiled, once.

use std::time::Duration;

use bytestring::ByteString;
use node_wire::ids::{ServerId, SessionId, Zxid};
use node_wire::membership::Membership;
use node_wire::txn::Entry;

use super::{Member, RoleState, Status};
use crate::leader::LearnerView;
use crate::tree::TreeSnapshot;
use crate::zab::Protocol;

/// A member, to look at.
pub trait MemberView {
    /// Its number.
    fn id(&self) -> ServerId;

    /// A summary for operators and for invariants.
    fn status(&self) -> Status;

    /// The last applied, that is committed, zxid: what a driver asks at each turn.
    fn last_applied(&self) -> Zxid;

    /// How far the tree is.
    fn applied(&self) -> Zxid;

    /// The membership that rules. Without a server in it where the ensemble can't change.
    fn membership(&self) -> &Membership;

    /// The committed tree.
    fn tree(&self) -> TreeSnapshot;

    /// The entries that are kept in memory, ascending, and how many of them are applied.
    fn history(&self) -> (Vec<Entry>, usize);

    /// The sessions and how long each has left to live. Only a leader counts that; from others it is empty.
    fn session_deadlines(&self) -> Vec<(SessionId, Duration)>;

    /// The sessions of this member alone and how long each has left to live.
    fn local_session_deadlines(&self) -> Vec<(SessionId, Duration)>;

    /// True when some paths have limits.
    fn has_quotas(&self) -> bool;

    /// The learners of a leader; others have none.
    fn learners(&self) -> Vec<LearnerView>;

    /// Digests of the tree at some zxids of the past, oldest first.
    fn digests(&self) -> Vec<(Zxid, i64)>;

    /// Every watch of a client of this member: whose it is, and on which path.
    fn watches(&self) -> Vec<(SessionId, ByteString)>;
}

impl<P: Protocol> Member<P> {
    /// The rules that it follows.
    pub fn rules(&self) -> P {
        self.base.zab
    }
}

impl<P: Protocol> MemberView for Member<P> {
    fn id(&self) -> ServerId {
        self.base.config.id
    }

    fn status(&self) -> Status {
        Status::of(self)
    }

    fn last_applied(&self) -> Zxid {
        self.base.journal.applied()
    }

    fn applied(&self) -> Zxid {
        self.base.tree.zxid()
    }

    fn membership(&self) -> &Membership {
        self.base.ensemble.active()
    }

    fn tree(&self) -> TreeSnapshot {
        self.base.tree.snapshot()
    }

    fn history(&self) -> (Vec<Entry>, usize) {
        self.base.journal.contents()
    }

    fn session_deadlines(&self) -> Vec<(SessionId, Duration)> {
        match &self.role {
            RoleState::Leading(leader) => leader.session_deadlines(self.base.awake),
            RoleState::Looking { .. } | RoleState::Following(_) => Vec::new(),
        }
    }

    fn local_session_deadlines(&self) -> Vec<(SessionId, Duration)> {
        self.base.clients.local_sessions().deadlines()
    }

    fn has_quotas(&self) -> bool {
        self.base.tree.quotas().next().is_some()
    }

    fn learners(&self) -> Vec<LearnerView> {
        match &self.role {
            RoleState::Leading(leader) => leader.learners(),
            RoleState::Looking { .. } | RoleState::Following(_) => Vec::new(),
        }
    }

    fn digests(&self) -> Vec<(Zxid, i64)> {
        self.base.digests.kept()
    }

    fn watches(&self) -> Vec<(SessionId, ByteString)> {
        self.base.clients.watches()
    }
}
