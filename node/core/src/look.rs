//! What an operator may ask of a member beyond its [`Status`](crate::Status): lists, made when they are asked for.
//!
//! Nothing here changes anything, and nothing here is asked by the protocol.

use std::collections::VecDeque;
use std::time::Duration;

use bytestring::ByteString;
use node_wire::ids::{ServerId, SessionId, Zxid};

use crate::zab::Protocol;
use crate::{Member, RoleState};

/// The tree's digest is remembered for one transaction in so many, as in ZooKeeper (`hash` tells them).
const DIGEST_EVERY: u32 = 128;

/// How many digests are remembered.
const MAX_DIGESTS: usize = 1024;

/// Digests of the committed tree at zxids that every member remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct DigestLog(VecDeque<(Zxid, i64)>);

impl DigestLog {
    /// The tree after a transaction.
    pub(crate) fn note(&mut self, zxid: Zxid, digest: i64) {
        if !zxid.counter().is_multiple_of(DIGEST_EVERY) {
            return;
        }
        if self.0.len() == MAX_DIGESTS {
            self.0.pop_front();
        }
        self.0.push_back((zxid, digest));
    }
}

/// A learner as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnerView {
    /// Who it is, once it said so.
    pub server: Option<ServerId>,
    /// It has no vote.
    pub observes: bool,
    /// It holds the epoch's history.
    pub synchronized: bool,
    /// What it has on disk.
    pub acked: Zxid,
}

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
        self.base.digests.0.iter().copied().collect()
    }

    /// Every watch of a client of this member: whose it is, and on which path.
    pub fn watches(&self) -> Vec<(SessionId, ByteString)> {
        self.base.clients.watches()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_wire::ids::Epoch;

    #[test]
    fn digests_are_remembered_at_the_same_zxids_everywhere_and_not_for_ever() {
        let mut log = DigestLog::default();
        for counter in 0..=300 {
            log.note(Zxid::new(Epoch(1), counter), i64::from(counter));
        }
        let kept: Vec<i64> = log.0.iter().map(|(_, digest)| *digest).collect();
        assert_eq!(kept, [0, 128, 256]);
        for epoch in 0..2000 {
            log.note(Zxid::new(Epoch(epoch), 128), 0);
        }
        assert_eq!(log.0.len(), MAX_DIGESTS);
    }
}
