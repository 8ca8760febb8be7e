//! What an operator may ask of a member beyond its [`Status`](super::Status): lists, made when they are asked
//! for.
//!
//! Nothing here changes anything, and nothing here is asked by the protocol.

use std::time::Duration;

use bytestring::ByteString;
use node_wire::ids::{SessionId, Zxid};

use super::{Member, RoleState};
use crate::leader::LearnerView;
use crate::zab::Protocol;

impl<P: Protocol> Member<P> {
    /// The sessions and how long each has left to live. Only a leader counts that; from others it is empty.
    pub fn session_deadlines(&self) -> Vec<(SessionId, Duration)> {
        match &self.role {
            RoleState::Leading(leader) => leader.session_deadlines(self.base.awake),
            RoleState::Looking { .. } | RoleState::Following(_) => Vec::new(),
        }
    }

    /// The sessions of this member alone and how long each has left to live.
    pub fn local_session_deadlines(&self) -> Vec<(SessionId, Duration)> {
        self.base.clients.local_sessions().deadlines()
    }

    /// How far the tree is.
    pub fn applied(&self) -> Zxid {
        self.base.tree.zxid()
    }

    /// True when some paths have limits.
    pub fn has_quotas(&self) -> bool {
        self.base.tree.quotas().next().is_some()
    }

    /// The learners of a leader; others have none.
    pub fn learners(&self) -> Vec<LearnerView> {
        match &self.role {
            RoleState::Leading(leader) => leader.learners(),
            RoleState::Looking { .. } | RoleState::Following(_) => Vec::new(),
        }
    }

    /// Digests of the tree at some zxids of the past, oldest first.
    pub fn digests(&self) -> Vec<(Zxid, i64)> {
        self.base.digests.kept()
    }

    /// Every watch of a client of this member: whose it is, and on which path.
    pub fn watches(&self) -> Vec<(SessionId, ByteString)> {
        self.base.clients.watches()
    }
}
