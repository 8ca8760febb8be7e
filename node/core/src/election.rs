//! Fast leader election: who shall lead, decided by votes that improve until a quorum agrees.
//!
//! A member that looks for a leader proposes itself and tells everybody. A vote names a leader with its zxid and
//! its peerEpoch; the better of two votes is the one with the larger (peerEpoch, zxid, server id), and a member
//! that hears of a better vote takes it over and tells everybody again. What each member last voted lies in the
//! ballot box. Lookups are numbered in rounds (the logical clock): a vote of a later round empties the box and
//! is joined, one of an earlier round is not counted and its sender is told of ours.
//!
//! A quorum of equal votes could decide, but a better vote may be on its way. Apache ZooKeeper waits 200 ms for
//! it, always. Here the wait ends at once when every voter that could still speak has voted the same: one that
//! has no connection, or that just fell silent as a leader, is not waited for. Else the wait is [`SETTLE`].
//!
//! A member that starts late finds others that follow and lead. It joins when a quorum says that it follows and
//! the leader itself says that it leads: followers alone may be the last to know that their leader is dead. In
//! its own round it joins a leader already when its own vote completes the quorum: otherwise a vote that comes
//! late makes a member defect from a leader that counted on it, and the leader waits for it in vain.
//!
//! An election is a matter of liveness only. Two members may both think they won; discovery lets at most one of
//! them establish an epoch.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use node_wire::election::{Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, Zxid};

use crate::fingerprint::until;
use crate::quorum::Quorum;

/// How long a decided quorum waits for voters that are connected and have not voted the same.
const SETTLE: Duration = Duration::from_millis(40);

/// The first pause before a vote is told again to those that did not answer; it doubles up to [`RESEND_MAX`].
const RESEND_MIN: Duration = Duration::from_millis(60);

/// The longest pause before a vote is told again.
const RESEND_MAX: Duration = Duration::from_secs(1);

/// A vote: for whom, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Vote {
    pub(crate) leader: ServerId,
    pub(crate) zxid: Zxid,
    pub(crate) peer_epoch: Epoch,
    pub(crate) round: Round,
}

impl Vote {
    fn of(notification: &Notification) -> Self {
        Self {
            leader: notification.leader,
            zxid: notification.zxid,
            peer_epoch: notification.peer_epoch,
            round: notification.round,
        }
    }

    /// The order of votes within a round.
    fn rank(&self) -> (Epoch, Zxid, ServerId) {
        (self.peer_epoch, self.zxid, self.leader)
    }
}

/// What is known of a peer's connection.
#[derive(Clone, Copy, Debug, Default, Hash)]
struct Peer {
    connected: bool,
    /// It was our leader and fell silent: its open socket proves nothing until it speaks again.
    suspect: bool,
}

/// The vote of a member that is not looking, and whether it claims to lead.
#[derive(Clone, Copy, Debug, Hash)]
struct Settled {
    vote: Vote,
    leading: bool,
}

/// One search for a leader.
#[derive(Clone, Debug)]
struct Lookup {
    own: Vote,
    proposal: Vote,
    ballots: BTreeMap<ServerId, Vote>,
    settled: BTreeMap<ServerId, Settled>,
    /// When the wait for better votes ends; runs while a quorum agrees.
    settle_at: Option<Duration>,
    resend_at: Duration,
    resend_after: Duration,
}

/// Votes to send, in order.
pub(crate) type Outbox = Vec<(ServerId, Notification)>;

/// One member's part in elections.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    me: ServerId,
    quorum: Quorum,
    round: Round,
    peers: BTreeMap<ServerId, Peer>,
    lookup: Option<Lookup>,
    /// The decided vote and our state, told to whoever looks.
    decided: Option<Vote>,
}

impl Election {
    pub(crate) fn new(me: ServerId, quorum: Quorum) -> Self {
        let peers =
            quorum.voters().filter(|voter| *voter != me).map(|voter| (voter, Peer::default())).collect();
        Self { me, quorum, round: Round(0), peers, lookup: None, decided: None }
    }

    pub(crate) fn round(&self) -> Round {
        self.round
    }

    /// Mixes in what it holds, times as seen from `at`.
    pub(crate) fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self { me: _, quorum: _, round, peers, lookup, decided } = self;
        (round, peers, decided).hash(state);
        if let Some(lookup) = lookup {
            let Lookup { own, proposal, ballots, settled, settle_at, resend_at, resend_after } = lookup;
            (own, proposal, ballots, settled).hash(state);
            settle_at.map(|settle_at| until(settle_at, at)).hash(state);
            (until(*resend_at, at), resend_after).hash(state);
        }
    }

    /// Begins a new round. Returns the leader if the member alone is a quorum.
    pub(crate) fn start(
        &mut self,
        peer_epoch: Epoch,
        zxid: Zxid,
        left: Option<ServerId>,
        at: Duration,
        out: &mut Outbox,
    ) -> Option<ServerId> {
        self.round = Round(self.round.0 + 1);
        if let Some(peer) = left.and_then(|left| self.peers.get_mut(&left)) {
            peer.suspect = true;
        }
        let own = Vote { leader: self.me, zxid, peer_epoch, round: self.round };
        self.decided = None;
        self.lookup = Some(Lookup {
            own,
            proposal: own,
            ballots: BTreeMap::from([(self.me, own)]),
            settled: BTreeMap::new(),
            settle_at: None,
            resend_at: at + RESEND_MIN,
            resend_after: RESEND_MIN,
        });
        self.tell_all(out);
        self.tally(at, out)
    }

    /// The epoch of the decided vote is known now: late starters compare it among the members. The leader tells
    /// everybody, because one may have elected itself in the same round and wait for followers that never come.
    pub(crate) fn epoch_established(&mut self, epoch: Epoch, out: &mut Outbox) {
        let Some(vote) = &mut self.decided else { return };
        vote.peer_epoch = epoch;
        if vote.leader == self.me {
            self.tell_all(out);
        }
    }

    /// True when the connection to a peer is known to be gone.
    pub(crate) fn is_gone(&self, peer: ServerId) -> bool {
        self.peers.get(&peer).is_some_and(|peer| !peer.connected)
    }

    /// True when a member leads a newer epoch than the one we voted with.
    pub(crate) fn is_newer_leader(&self, from: ServerId, notification: &Notification) -> bool {
        notification.state == PeerState::Leading
            && notification.leader == from
            && self.quorum.contains(from)
            && self.decided.is_some_and(|vote| notification.peer_epoch > vote.peer_epoch)
    }

    pub(crate) fn connected(&mut self, peer: ServerId) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.connected = true;
        }
    }

    pub(crate) fn lost(&mut self, peer: ServerId, at: Duration, out: &mut Outbox) -> Option<ServerId> {
        self.peers.get_mut(&peer)?.connected = false;
        // It may be dead, and a dead leader's word must not make anybody join it. If it lives it is asked again.
        if let Some(lookup) = &mut self.lookup {
            lookup.settled.remove(&peer);
        }
        // One voter less to wait for.
        self.tally(at, out)
    }

    pub(crate) fn tick(&mut self, at: Duration, out: &mut Outbox) -> Option<ServerId> {
        let lookup = self.lookup.as_mut()?;
        if at >= lookup.resend_at {
            lookup.resend_after = (lookup.resend_after * 2).min(RESEND_MAX);
            lookup.resend_at = at + lookup.resend_after;
            self.tell_all(out);
        }
        self.tally(at, out)
    }

    /// A vote arrived. Returns the leader when it decides the election.
    pub(crate) fn heard(
        &mut self,
        from: ServerId,
        notification: &Notification,
        at: Duration,
        out: &mut Outbox,
    ) -> Option<ServerId> {
        let peer = self.peers.get_mut(&from)?;
        peer.suspect = false;
        peer.connected = true;
        // A vote for a stranger would never be led: not counted, as if it had not come.
        if !self.quorum.contains(notification.leader) {
            return None;
        }
        if self.lookup.is_none() {
            // One that thinks it leads an older epoch is told too: nobody follows it, and it would wait in vain.
            let strays = notification.state == PeerState::Leading
                && self
                    .decided
                    .is_some_and(|vote| vote.leader != from && vote.peer_epoch > notification.peer_epoch);
            if notification.state == PeerState::Looking || strays {
                self.tell(from, out);
            }
            return None;
        }
        match notification.state {
            PeerState::Looking => self.heard_looking(from, Vote::of(notification), at, out),
            PeerState::Following => self.heard_settled(from, Vote::of(notification), false, at, out),
            PeerState::Leading => self.heard_settled(from, Vote::of(notification), true, at, out),
            PeerState::Observing => None,
        }
    }

    fn heard_looking(
        &mut self,
        from: ServerId,
        vote: Vote,
        at: Duration,
        out: &mut Outbox,
    ) -> Option<ServerId> {
        let lookup = self.lookup.as_mut()?;
        // Who looks neither leads nor follows, whatever its round: one that was restarted begins with the first.
        lookup.settled.remove(&from);
        if vote.round < self.round {
            self.tell(from, out);
            return None;
        }
        let mut changed = false;
        if vote.round > self.round {
            self.round = vote.round;
            lookup.own.round = vote.round;
            lookup.proposal = lookup.own;
            lookup.ballots.clear();
            changed = true;
        }
        if vote.rank() > lookup.proposal.rank() {
            lookup.proposal = vote;
            changed = true;
        }
        let worse = vote.rank() < lookup.proposal.rank();
        lookup.ballots.insert(from, vote);
        lookup.ballots.insert(self.me, lookup.proposal);
        if changed {
            lookup.settle_at = None;
            lookup.resend_after = RESEND_MIN;
            lookup.resend_at = at + RESEND_MIN;
            self.tell_all(out);
        } else if worse {
            // It may have missed our vote: connections come and go.
            self.tell(from, out);
        }
        self.tally(at, out)
    }

    fn heard_settled(
        &mut self,
        from: ServerId,
        vote: Vote,
        leading: bool,
        at: Duration,
        out: &mut Outbox,
    ) -> Option<ServerId> {
        let lookup = self.lookup.as_mut()?;
        lookup.settled.insert(from, Settled { vote, leading: leading && vote.leader == from });
        let leader = vote.leader;
        if vote.round == self.round {
            lookup.ballots.insert(from, vote);
        }
        if leader != self.me && lookup.settled.get(&leader).is_some_and(|claim| claim.leading) {
            let claim = lookup.settled[&leader].vote;
            let same_round = claim.round == self.round;
            // Who decided in an earlier round, before the leader did, follows it in its epoch all the same.
            let mut supporters: Vec<ServerId> = lookup
                .settled
                .iter()
                .filter(|(_, Settled { vote, .. })| {
                    vote.leader == leader
                        && (vote.peer_epoch == claim.peer_epoch || vote.round == claim.round)
                })
                .map(|(voter, _)| *voter)
                .collect();
            if same_round {
                supporters.push(self.me);
            }
            if self.quorum.reached(supporters.iter().copied()) {
                return Some(self.decide(claim, out));
            }
        }
        self.tally(at, out)
    }

    /// Decides if a quorum agrees with our proposal and nobody is left to wait for.
    fn tally(&mut self, at: Duration, out: &mut Outbox) -> Option<ServerId> {
        let lookup = self.lookup.as_mut()?;
        let proposal = lookup.proposal;
        let agrees = |voter: &ServerId| lookup.ballots.get(voter) == Some(&proposal);
        if !self.quorum.reached(self.quorum.voters().filter(agrees)) {
            lookup.settle_at = None;
            return None;
        }
        let complete =
            self.peers.iter().all(|(voter, peer)| agrees(voter) || !peer.connected || peer.suspect);
        let settle_at = *lookup.settle_at.get_or_insert(at + SETTLE);
        if complete || at >= settle_at {
            return Some(self.decide(proposal, out));
        }
        None
    }

    fn decide(&mut self, vote: Vote, out: &mut Outbox) -> ServerId {
        let lookup = self.lookup.take();
        self.round = vote.round;
        self.decided = Some(vote);
        // Whoever has not voted the same learns at once where the ensemble went.
        let astray: Vec<ServerId> = self
            .peers
            .keys()
            .copied()
            .filter(|peer| lookup.as_ref().and_then(|lookup| lookup.ballots.get(peer)) != Some(&vote))
            .collect();
        for peer in astray {
            self.tell(peer, out);
        }
        vote.leader
    }

    fn tell_all(&self, out: &mut Outbox) {
        for peer in self.peers.keys() {
            self.tell(*peer, out);
        }
    }

    fn tell(&self, to: ServerId, out: &mut Outbox) {
        let (vote, state) = match (&self.lookup, self.decided) {
            (Some(lookup), _) => (lookup.proposal, PeerState::Looking),
            (None, Some(vote)) if vote.leader == self.me => (vote, PeerState::Leading),
            (None, Some(vote)) => (vote, PeerState::Following),
            (None, None) => return,
        };
        let notification = Notification {
            state,
            leader: vote.leader,
            zxid: vote.zxid,
            round: if state == PeerState::Looking { self.round } else { vote.round },
            peer_epoch: vote.peer_epoch,
            config: None,
        };
        out.push((to, notification));
    }
}
