//! Who takes part in an election, and what each candidate needs.
//!
//! Where the ensemble never changes that is one quorum. Where it may, a candidate needs a quorum of the
//! membership that rules, and one of the membership that its own log proposes, if it proposes one: no more
//! and no less than it will need to begin its epoch. Which that is, only its log says, so votes carry it. A
//! voter counts for each candidate what that one needs, and not what its own log would make it need.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use node_wire::ids::ServerId;
use node_wire::membership::Membership;

use crate::ensemble::Ensemble;
use crate::quorum::Quorum;
use crate::zab::Protocol;

/// What the log of another candidate proposes.
#[derive(Clone, Debug)]
struct Proposal {
    text: Bytes,
    needs: Quorum,
}

/// All that have a vote in any membership that is known, and how votes are counted.
#[derive(Clone, Debug)]
pub(super) struct Electorate {
    me: ServerId,
    /// What this member needs to lead.
    own: Quorum,
    /// What a candidate needs whose log proposes nothing.
    active: Quorum,
    /// The membership that rules, where it may change: votes carry it.
    membership: Option<Bytes>,
    /// What our log proposes: votes for us carry it.
    proposed: Option<Bytes>,
    /// What those of others propose, as their votes tell.
    proposals: BTreeMap<ServerId, Proposal>,
    voters: BTreeSet<ServerId>,
}

impl Electorate {
    /// Of an ensemble that does not change, or that nothing is known of yet but what the member was started
    /// with.
    pub(super) fn fixed(me: ServerId, quorum: Quorum) -> Self {
        let voters = quorum.voters().collect();
        let active = quorum.clone();
        Self { me, own: quorum, active, membership: None, proposed: None, proposals: BTreeMap::new(), voters }
    }

    /// Of an ensemble that may change. `own` is what this member needs.
    pub(super) fn of<P: Protocol>(me: ServerId, ensemble: &Ensemble, own: Quorum, zab: P) -> Self {
        let proposal = |(candidate, proposed): (ServerId, &Membership)| {
            let needs = ensemble.quorum_of(Some(proposed), zab);
            (candidate, Proposal { text: proposed.to_bytes(), needs })
        };
        let proposals: BTreeMap<ServerId, Proposal> = ensemble.heard().map(proposal).collect();
        let others = proposals.values().flat_map(|proposal| proposal.needs.voters());
        Self {
            me,
            active: ensemble.quorum_of(None, zab),
            membership: Some(ensemble.active().to_bytes()),
            proposed: ensemble.proposed(),
            voters: own.voters().chain(others).collect(),
            own,
            proposals,
        }
    }

    pub(super) fn membership(&self) -> Option<&Bytes> {
        self.membership.as_ref()
    }

    /// Everybody else who has a vote in a membership that is known.
    pub(super) fn peers(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.voters.iter().copied().filter(|voter| *voter != self.me)
    }

    /// True for whom we could follow: it has a vote in a membership that is known.
    pub(super) fn contains(&self, server: ServerId) -> bool {
        self.voters.contains(&server)
    }

    /// What this member needs to lead.
    pub(super) fn own(&self) -> &Quorum {
        &self.own
    }

    /// What a candidate needs. One that can't tell what its log proposes (a member of Apache ZooKeeper) is
    /// taken to have what ours has.
    pub(super) fn needs(&self, candidate: ServerId, tells: bool) -> &Quorum {
        match self.proposals.get(&candidate) {
            Some(proposal) => &proposal.needs,
            None if tells && candidate != self.me => &self.active,
            None => &self.own,
        }
    }

    /// What a vote for a candidate says of its log.
    pub(super) fn proposed_by(&self, candidate: ServerId, tells: bool) -> Option<Bytes> {
        match self.proposals.get(&candidate) {
            Some(proposal) => Some(proposal.text.clone()),
            None if tells && candidate != self.me => None,
            None => self.proposed.clone(),
        }
    }
}
