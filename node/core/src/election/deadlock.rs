//! Votes that lead to nothing: who stands back, who gives way, and who gives in.
//!
//! The introduction of [`super`] says why each of these is needed.

use std::collections::BTreeSet;
use std::time::Duration;

use node_wire::ids::{Epoch, Round, Zxid};

use super::lookup::Vote;
use super::{Election, Outbox};
use crate::zab::Protocol;

/// How long a candidate waits to be in touch with a quorum before it stands back.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// For how long nothing has moved when a vote that leads to nothing goes to a worse candidate.
pub(super) const STALEMATE: Duration = Duration::from_secs(1);

/// [`STALEMATE`] for a better candidate, and how long a candidate is passed over for whom one decided in
/// vain, where there is no other. Shorter than that: else that candidate would vote for us in the moment in
/// which we vote for it.
pub(super) const FORGIVENESS: Duration = Duration::from_millis(500);

/// For how long a member votes for itself without a quorum, and without a better vote in sight, before it
/// gives way to each of the others for as long. Longer than [`STALEMATE`]: else it would be gone when the
/// vote that it lacks comes.
pub(super) const PERSISTENCE: Duration = Duration::from_secs(2);

impl<P: Protocol> Election<P> {
    /// Who is in touch with no quorum can't win, and its candidacy keeps others from agreeing: it steps
    /// aside, and comes back when it is in touch with one. Who is, with one that does not vote for it, steps
    /// aside later, and comes back when each of the others had as much time. And who is no longer in touch
    /// with the candidate that it votes for takes its vote back.
    pub(super) fn stand_back_or_forth(&mut self, at: Duration, out: &mut Outbox) {
        if self.observes {
            return;
        }
        let reaches_quorum = {
            let own = self.electorate.own();
            own.reached(own.voters().filter(|voter| self.in_touch(*voter, at)))
        };
        let choice = self.lookup.as_ref().map(|lookup| lookup.proposal);
        let reaches_choice = choice.is_none_or(|choice| self.in_touch(choice.leader, at));
        let Some(nobody) = self.peers.keys().next().copied() else { return };
        let gives_way = self.has_stood_in_vain(at);
        let others = u32::try_from(self.peers.len()).unwrap_or(u32::MAX);
        let Some(lookup) = &mut self.lookup else { return };
        let stands_back = lookup.own != lookup.candidacy;
        let must_stand_back = !stands_back && (gives_way || !reaches_quorum && at >= lookup.began + PATIENCE);
        if reaches_quorum && stands_back && lookup.gives_way_until.is_none_or(|until| at >= until) {
            lookup.gives_way_until = None;
            lookup.own = lookup.candidacy;
            if lookup.own.rank(self.zab) <= lookup.proposal.rank(self.zab) {
                return;
            }
            lookup.proposal = lookup.own;
        } else if must_stand_back || !reaches_choice && lookup.proposal != lookup.own {
            // Within a round votes only become better: to take one back is to begin another.
            self.round = Round(self.round.0 + 1);
            lookup.candidacy.round = self.round;
            lookup.own = if must_stand_back || stands_back {
                Vote { leader: nobody, zxid: Zxid::ZERO, peer_epoch: Epoch::ZERO, round: self.round }
            } else {
                lookup.candidacy
            };
            lookup.proposal = lookup.own;
            lookup.ballots.clear();
            if gives_way {
                lookup.gives_way_until = Some(at + PERSISTENCE.saturating_mul(others));
            }
        } else {
            return;
        }
        lookup.cast(self.me, lookup.proposal, at);
        lookup.changed(at);
        self.tell_all(at, out);
    }

    /// It votes for itself, and has for a while in which nobody told of a better vote, and no quorum does. Of
    /// several that are in this place the best thus moves first, and each of the others has its time from
    /// there.
    fn has_stood_in_vain(&self, at: Duration) -> bool {
        let Some(lookup) = self.lookup.as_ref().filter(|lookup| lookup.proposal == lookup.candidacy) else {
            return false;
        };
        if lookup.uncontested_since(self.me).is_none_or(|since| at < since + PERSISTENCE) {
            return false;
        }
        !self.is_agreed(lookup, &lookup.candidacy)
    }

    /// Our candidate has no quorum, and somebody else lacks nothing but our vote. It gets it when all the
    /// votes that would make that quorum have stood for a while, and ours as well: a vote that came a moment
    /// ago may be gone the next.
    pub(super) fn end_stalemate(&mut self, at: Duration, out: &mut Outbox) {
        let Some(lookup) = self.lookup.as_ref().filter(|lookup| at >= lookup.began + FORGIVENESS) else {
            return;
        };
        let voters_of = |vote: &Vote| {
            let agrees = |ballot: &Vote| ballot == vote;
            let voters = lookup.ballots.iter().filter(|(_, ballot)| agrees(ballot)).map(|(voter, _)| *voter);
            voters.collect::<BTreeSet<_>>()
        };
        if self.observes || self.is_agreed(lookup, &lookup.proposal) {
            return;
        }
        // Who stands back names a candidate as well, with a vote that is not that one's own: it would never
        // lead by it.
        let is_its_own = |vote: &Vote| match vote.leader == self.me {
            true => *vote == lookup.candidacy,
            false => lookup.ballots.get(&vote.leader) == Some(vote),
        };
        let completed = |vote: &&Vote| {
            let voters = voters_of(vote).into_iter().chain([self.me]);
            self.in_touch(vote.leader, at) && is_its_own(vote) && self.needs(vote.leader).reached(voters)
        };
        let of_promise = lookup.ballots.values().filter(|vote| !self.in_vain.contains(&vote.leader));
        let mut choices = of_promise.filter(completed).peekable();
        if choices.peek().is_none() {
            return self.forgive(at, out);
        }
        let stands = |vote: &&Vote| {
            let better = vote.rank(self.zab) > lookup.proposal.rank(self.zab);
            let wait = if better { FORGIVENESS } else { STALEMATE };
            let since = lookup.stand_since(voters_of(vote).into_iter().chain([self.me]));
            since.is_some_and(|since| at >= since + wait)
        };
        let choice = choices.filter(stands).max_by_key(|vote| vote.rank(self.zab)).copied();
        let Some(choice) = choice else { return };
        let Some(lookup) = &mut self.lookup else { return };
        lookup.avoided = Some(lookup.proposal.leader);
        lookup.proposal = choice;
        lookup.cast(self.me, choice, at);
        lookup.changed(at);
        self.tell_all(at, out);
    }

    /// There is nobody but those for whom we decided in vain: they are candidates like others again.
    fn forgive(&mut self, at: Duration, out: &mut Outbox) {
        if self.in_vain.is_empty() {
            return;
        }
        self.in_vain.clear();
        let Some(lookup) = self.lookup.as_ref() else { return };
        let heard = lookup.ballots.values().filter(|vote| self.in_touch(vote.leader, at));
        let Some(best) = heard.max_by_key(|vote| vote.rank(self.zab)).copied() else { return };
        let Some(lookup) = &mut self.lookup else { return };
        if best.rank(self.zab) > lookup.proposal.rank(self.zab) && lookup.avoided != Some(best.leader) {
            lookup.proposal = best;
            lookup.cast(self.me, best, at);
            lookup.changed(at);
            self.tell_all(at, out);
        }
    }
}
