//! Fast leader election: who shall lead, decided by votes that improve until a quorum agrees.
//!
//! A member that looks for a leader proposes itself and tells everybody. A vote names a leader with its zxid
//! and its peerEpoch; the better of two votes is the one with the larger (peerEpoch, zxid, server id), and a
//! member that hears of a better vote takes it over and tells everybody again. What each member last voted
//! lies in the ballot box. Lookups are numbered in rounds (the logical clock): a vote of a later round
//! empties the box and is joined, one of an earlier round is not counted and its sender is told of ours.
//!
//! A quorum of equal votes could decide, but a better vote may be on its way. Apache ZooKeeper waits 200 ms
//! for it, always. Here the wait ends at once when every voter that could still speak has voted the same: one
//! that has no connection, or that just fell silent as a leader, is not waited for. Else the wait is
//! [`SETTLE`].
//!
//! A member that starts late finds others that follow and lead. It joins when a quorum says that it follows
//! and the leader itself says that it leads: followers alone may be the last to know that their leader is
//! dead. In its own round it joins a leader already when its own vote completes the quorum: otherwise a vote
//! that comes late makes a member defect from a leader that counted on it, and the leader waits for it in
//! vain. And where it votes for that leader in this round it joins at once: that leader counted its vote, and
//! the others who gave theirs may be out of its sight.
//!
//! A partition may leave every member in touch with some of the others and yet no two with the same ones.
//! Then the popular algorithm elects for ever: the best candidate reaches hardly anybody, and its vote is
//! passed on by those whom it does reach. Two rules end that. A member takes over a vote only for a candidate
//! that it is *in touch* with: each hears the other. And a candidate that is in touch with no quorum *stands
//! back*: after [`PATIENCE`] it begins a round in which it votes for nobody that anybody would want, until it
//! is in touch with a quorum again. So of those that stand forward the best gets the votes of all whom it is
//! in touch with: they know of no better one. (The ballot leader election of Omni-Paxos, Ng, Haridi and
//! Carbone, EuroSys 2023, rests on that: a leader has to be *quorum-connected*.) Where the others do not join
//! it any more, a member that waits for a candidate which died meanwhile would wait alone: it too begins a
//! round.
//!
//! Who hears a peer is told by it whether it hears us: every vote to a voter says whom its sender hears. What
//! it says first was said before it could have heard, so it is soon told our vote. A peer that was told for
//! [`DEAF`] and says that it does not hear us is not in touch with us, until it says otherwise.
//!
//! A member of Apache ZooKeeper tells nothing of that, and to hear a candidate is not to be heard by it.
//! There only time tells: a vote that led to nothing goes to one whose quorum it completes. Where one vote
//! alone completes no quorum, two would have to be given up at once. So a candidate *gives way* that hears a
//! quorum and for [`PERSISTENCE`] has not had its votes, while nobody told of a better one: it stands back
//! for as long as the others need to do the same one after the other, from the best to the worst.
//!
//! That rule must not make two members change places: each gives in to the other, each sees itself elected,
//! both wait in vain and meet again in the same step. So what counts is for how long nothing has *moved*: our
//! own vote, and all the votes that would make the other's quorum. Who has the better vote gives in after
//! [`STALEMATE`], who has the worse one (it may have been given up before) after [`FORGIVENESS`]. Both count
//! from the same moment, the last change of either vote, so the one whose turn is later has heard of the
//! other long before: as long as news takes less than the difference of the two.
//!
//! A member may count a quorum for a candidate that lacks this very vote, and wait for its leadership in
//! vain, again in every round, while others wait for the member itself. The sign is that the candidate *looks
//! on* in the round in which it was elected. It is passed over from then on, until it leads, until an epoch
//! is established with another, until another fails (because the one that is passed over is ahead of it,
//! say), or until [`FORGIVENESS`] is over and there is nobody else.
//!
//! An observer has no vote. It asks like one that started late, is answered by voters who do not count it,
//! and joins the leader whom a quorum follows.
//!
//! # Ensembles that change
//!
//! Where the ensemble may change ([`crate::ensemble`]), a vote carries the membership that rules, as its
//! sender knows it, and the membership that the log of its candidate *proposes*, if there is one whose fate
//! is open. A candidate needs a quorum of the first and of the second, because that is what it will need to
//! begin its epoch: so votes for it are counted, by itself and by everybody else. (Apache ZooKeeper counts by
//! what the voter has logged, and drops votes of and for whom it does not know. So a voter that did not log a
//! change waits for a candidate that waits for another, for ever, if its vote is needed.) This is who does
//! what:
//!
//! - *Who logged a proposed membership* needs quorums of both for itself, and of another what that one's
//!   votes say.
//! - *Who did not* hears of it by the first vote of a voter that it knows for a candidate whose log has it.
//!   From then on it speaks with the voters of both, and votes for a stranger as for anybody; the driver
//!   learns where that one is. It logged nothing: for itself it needs what it needed before. Where no voter
//!   that it knows has the change, those who do are needed by nobody that it knows.
//! - *Who is in one of the two only* votes like anybody else, and its vote counts where it is in. Whether it
//!   has a vote it need not know: one that nobody counts does no harm.
//! - *A candidate for whom there is no quorum of both* hears none, and stands back like any other that hears
//!   none. A vote for one who is in no membership that is known, neither ruling nor told, is not counted: it
//!   would never be led. Whoever settled answers it: its sender may know an older membership only.
//! - *Who is asked by an observer* and looks answers it once per vote, and else no sooner than votes are
//!   repeated: the observer's log may propose to give it a vote, and then it answers in turn.
//! - *A member of Apache ZooKeeper* does not tell what its log proposes; it is taken to have what ours has.
//!
//! To join a leader that stands, a quorum of either membership is enough: the leader has seen to the other.
//!
//! # Why it ends
//!
//! Let some members run, none of them fail, all of them hear each other within [`SETTLE`] and say so, and let
//! them be a quorum of the membership that rules and of each that one of them has logged and whose fate is
//! open. Then one of them will lead:
//!
//! 1. *They come to know the same.* Votes are repeated, so the latest ruling membership reaches all; whoever
//!    learns of a later one begins anew, and there are only so many. A candidate's votes go to all whom it
//!    needs, with its proposal; so whoever is needed by a candidate hears it, knows what it needs, and is
//!    heard by it.
//! 2. *They come to one round.* The latest is joined. A member begins another when it learns of a later
//!    membership, when it is not in touch with its choice, or with a quorum, or when it waited for a leader
//!    in vain. The first two end with 1, for the third see 5.
//! 3. *They come to one vote.* In a round a member's vote only becomes better, and there are as many votes as
//!    candidates. All hear the best candidate and know that it has a vote somewhere, so all vote for it.
//! 4. *It can lead.* They are a quorum of all that it needs. Discovery would turn it down for a voter of its
//!    own that is ahead of it; that one would have been the better candidate.
//! 5. *They go to it together.* All count the same votes by the same needs. Who decided for another, because
//!    the best vote came late, finds it looking on and comes back in the next round; the one that is needed
//!    waits for it as long, and each failed attempt doubles that time, up to initLimit, while delays do not
//!    grow.
//! 6. *It ends there.* The epoch makes what it proposed the membership that rules, and all else that was
//!    proposed is cut off with the logs that lost. If the new leader is not in that membership it gives up;
//!    now all have the same log with nothing open in it, it is no candidate any more, and 1 to 5 give one
//!    that stays.
//!
//! Where nobody's vote moves and there is no quorum, somebody is passed over. Then the rule about votes that
//! stand ends that: of two sides that lack each other's vote, one has the worse vote and moves first, and the
//! other then has its quorum. Nobody gives way here: 3 and 4 are done long before [`PERSISTENCE`] is over.
//!
//! Where members hear only some of the others this is no proof; there the rules about standing back, and
//! about candidates that were waited for in vain, have the simulator's sieges for evidence.
//!
//! An election is a matter of liveness only. Two members may both think they won; discovery lets at most one
//! of them establish an epoch, by the memberships in its own log, whatever votes told.

mod deadlock;
mod electorate;
mod lookup;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use node_wire::election::{Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, Zxid};
use node_wire::quorum::Dialect;

use crate::config::Config;
use crate::ensemble::Ensemble;
use crate::fingerprint::until;
use crate::quorum::Quorum;
use crate::zab::Protocol;
use deadlock::{FORGIVENESS, PATIENCE, PERSISTENCE, STALEMATE};
use electorate::Electorate;
use lookup::{DEAF, Hearing, Lookup, Peer, RESEND_MIN, Settled, Standing, Vote};

/// How long a decided quorum waits for voters that are connected and have not voted the same.
const SETTLE: Duration = Duration::from_millis(40);

/// The longest pause before a vote is told again.
const RESEND_MAX: Duration = Duration::from_secs(1);

/// How long after a member decided its candidate may have sent what shows it looking.
const NEWS: Duration = Duration::from_millis(100);

/// Votes to send, in order.
pub(crate) type Outbox = Vec<(ServerId, Notification)>;

/// One member's part in elections.
#[derive(Clone, Debug)]
pub(crate) struct Election<P: Protocol> {
    zab: P,
    me: ServerId,
    observes: bool,
    observers: BTreeSet<ServerId>,
    electorate: Electorate,
    round: Round,
    peers: BTreeMap<ServerId, Peer>,
    /// Those that are connected and no peers: they may turn out to have a vote.
    strangers: BTreeSet<ServerId>,
    lookup: Option<Lookup>,
    /// The decided vote and our state, told to whoever looks.
    decided: Option<Vote>,
    /// From when on whom we decided for should know that it is elected.
    informed_at: Duration,
    /// It looks on in that round all the same, as if it had not heard us.
    looks_on: bool,
    /// Whom we decided for in vain.
    in_vain: BTreeSet<ServerId>,
    /// That was no election: a reconfiguration named the leader.
    designated: bool,
    /// The epoch of whom we decided for stands.
    established: bool,
}

impl<P: Protocol> Election<P> {
    pub(crate) fn new(config: &Config, quorum: Quorum, zab: P) -> Self {
        let me = config.id;
        let electorate = Electorate::fixed(me, quorum);
        let peers = electorate.peers().map(|voter| (voter, Peer::default())).collect();
        Self {
            zab,
            me,
            observes: config.observes(),
            observers: config.observers.clone(),
            electorate,
            round: Round(0),
            peers,
            strangers: BTreeSet::new(),
            lookup: None,
            decided: None,
            informed_at: Duration::ZERO,
            looks_on: false,
            in_vain: BTreeSet::new(),
            designated: false,
            established: false,
        }
    }

    /// The ensemble changes, or may change from here on, or a vote told of a membership that is proposed.
    /// What is known of those that stay is kept.
    ///
    /// Who has no vote in any membership that it knows votes like anybody else: there may be one, which it
    /// does not know, by which its vote is needed, and elsewhere nobody counts it. So does an observer: what
    /// would give it a vote is proposed to voters alone.
    pub(crate) fn reconfigure(&mut self, ensemble: &Ensemble, quorum: Quorum) {
        self.observes = false;
        let knew = self.electorate.membership().is_some();
        let electorate = Electorate::of(self.me, ensemble, quorum, self.zab);
        let observers = ensemble.active().observers().into_iter();
        self.observers = observers.filter(|observer| !electorate.contains(*observer)).collect();
        if knew && !self.zab.electorate_changes() {
            return;
        }
        let known = std::mem::take(&mut self.peers);
        let connected = known.iter().filter(|(_, peer)| peer.connected).map(|(id, _)| *id);
        self.strangers.extend(connected);
        for voter in electorate.peers() {
            let connected = self.strangers.remove(&voter);
            let peer = known.get(&voter).copied().unwrap_or(Peer { connected, ..Peer::default() });
            self.peers.insert(voter, peer);
        }
        self.electorate = electorate;
    }

    /// Who leads next is settled. Returns it, as if it had been elected.
    pub(crate) fn designate(&mut self, leader: ServerId, peer_epoch: Epoch, zxid: Zxid) -> ServerId {
        self.round = Round(self.round.0 + 1);
        self.lookup = None;
        self.designated = true;
        self.established = false;
        self.decided = Some(Vote { leader, zxid, peer_epoch, round: self.round });
        leader
    }

    pub(crate) fn round(&self) -> Round {
        self.round
    }

    /// Mixes in what it holds, times as seen from `at`.
    pub(crate) fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self {
            zab: _,
            me,
            // These follow from the ensemble, which is mixed in elsewhere.
            observes: _,
            observers: _,
            electorate: _,
            round,
            peers,
            strangers,
            lookup,
            decided,
            informed_at,
            looks_on,
            in_vain,
            designated,
            established,
        } = self;
        decided.map(|_| until(*informed_at, at)).hash(state);
        (round, decided, looks_on, in_vain, designated, established, strangers).hash(state);
        for (id, peer) in peers {
            let Peer { connected, suspect, heard_at: _, hearing, apache } = peer;
            (id, connected, suspect, apache).hash(state);
            match hearing {
                Hearing::Yes => 0_u8.hash(state),
                Hearing::No { told_at } => {
                    (1_u8, told_at.map(|told_at| until(told_at + DEAF, at))).hash(state)
                }
                Hearing::Deaf => 2_u8.hash(state),
            }
            peer.audible_until().map(|audible_until| until(audible_until, at)).hash(state);
        }
        if let Some(lookup) = lookup {
            let Lookup {
                candidacy,
                own,
                proposal,
                avoided,
                gives_way_until,
                contested_at: _,
                began,
                ballots,
                stands,
                settled,
                settle_at,
                resend_at,
                resend_after,
                observers_told,
            } = lookup;
            (candidacy, own, proposal, avoided, ballots, settled).hash(state);
            for (voter, Standing { vote, since }) in stands {
                (voter, vote, until(*since + FORGIVENESS, at), until(*since + STALEMATE, at)).hash(state);
            }
            let stood = lookup.uncontested_since(*me).map(|since| until(since + PERSISTENCE, at));
            (stood, gives_way_until.map(|back| until(back, at))).hash(state);
            until(*began + PATIENCE, at).hash(state);
            (!in_vain.is_empty()).then(|| until(*began + FORGIVENESS, at)).hash(state);
            settle_at.map(|settle_at| until(settle_at, at)).hash(state);
            (until(*resend_at, at), resend_after).hash(state);
            for (observer, next_at) in observers_told.iter().filter(|(_, next_at)| **next_at > at) {
                (observer, until(*next_at, at)).hash(state);
            }
        }
    }

    /// Begins a new round, with or without a leader that was left, who may have never answered. Returns the
    /// leader if the member alone is a quorum.
    pub(crate) fn start(
        &mut self,
        peer_epoch: Epoch,
        zxid: Zxid,
        left: Option<ServerId>,
        unanswered: bool,
        at: Duration,
        out: &mut Outbox,
    ) -> Option<ServerId> {
        self.round = Round(self.round.0 + 1);
        if let Some(peer) = left.and_then(|left| self.peers.get_mut(&left)) {
            peer.suspect = true;
        }
        for peer in self.peers.values_mut() {
            peer.heard_at = None;
            peer.ask_anew();
        }
        let own = Vote { leader: self.me, zxid, peer_epoch, round: self.round };
        let decided = self.decided.take();
        if std::mem::take(&mut self.looks_on) && unanswered {
            self.in_vain.extend(decided.map(|vote| vote.leader));
        } else if decided.is_some() {
            // It failed for another reason, perhaps because one that is passed over is ahead of it.
            self.in_vain.clear();
        }
        self.established = false;
        self.designated = false;
        let mut lookup = Lookup {
            candidacy: own,
            own,
            proposal: own,
            ballots: BTreeMap::new(),
            stands: BTreeMap::new(),
            settled: BTreeMap::new(),
            avoided: None,
            gives_way_until: None,
            contested_at: at,
            began: at,
            settle_at: None,
            resend_at: at + RESEND_MIN,
            resend_after: RESEND_MIN,
            observers_told: BTreeMap::new(),
        };
        lookup.cast(self.me, own, at);
        self.lookup = Some(lookup);
        self.tell_all(at, out);
        self.tally(at, out)
    }

    /// The epoch of the decided vote is known now: late starters compare it among the members. The leader
    /// tells everybody, because one may have elected itself in the same round and wait for followers that
    /// never come.
    pub(crate) fn epoch_established(&mut self, epoch: Epoch, at: Duration, out: &mut Outbox) {
        let Some(vote) = &mut self.decided else { return };
        vote.peer_epoch = epoch;
        self.looks_on = false;
        self.in_vain.clear();
        self.established = true;
        for peer in self.peers.values_mut() {
            peer.ask_anew();
        }
        if self.decided.is_some_and(|vote| vote.leader == self.me) {
            self.tell_all(at, out);
            for observer in self.observers.clone() {
                self.tell(observer, at, out);
            }
        }
    }

    /// True when the connection to a peer is known to be gone. That says nothing of one that a
    /// reconfiguration made the leader: a member of Apache ZooKeeper begins its elections anew then.
    pub(crate) fn is_gone(&self, peer: ServerId) -> bool {
        !self.designated && self.peers.get(&peer).is_some_and(|peer| !peer.connected)
    }

    /// How a voter speaks, by its votes.
    pub(crate) fn dialect(&self, peer: ServerId) -> Dialect {
        match self.peers.get(&peer) {
            Some(Peer { apache: true, .. }) => Dialect::Apache,
            Some(Peer { apache: false, .. }) | None => Dialect::Own,
        }
    }

    /// How the slowest of the voters speaks.
    pub(crate) fn slowest_voter(&self) -> Dialect {
        if self.peers.values().any(|peer| peer.apache) { Dialect::Apache } else { Dialect::Own }
    }

    /// True when a member leads a newer epoch than the one we voted with.
    pub(crate) fn is_newer_leader(&self, from: ServerId, notification: &Notification) -> bool {
        notification.state == PeerState::Leading
            && notification.leader == from
            && self.electorate.contains(from)
            && self.decided.is_some_and(|vote| notification.peer_epoch > vote.peer_epoch)
    }

    /// True for whoever has a vote in a membership that is known.
    pub(crate) fn knows(&self, server: ServerId) -> bool {
        self.electorate.contains(server)
    }

    pub(crate) fn connected(&mut self, peer: ServerId) {
        match self.peers.get_mut(&peer) {
            Some(peer) => peer.connected = true,
            None => {
                self.strangers.insert(peer);
            }
        }
    }

    pub(crate) fn lost(&mut self, peer: ServerId, at: Duration, out: &mut Outbox) -> Option<ServerId> {
        self.strangers.remove(&peer);
        let lost = self.peers.get_mut(&peer)?;
        lost.connected = false;
        lost.heard_at = None;
        lost.ask_anew();
        // It may be dead, and a dead leader's word must not make anybody join it. If it lives it is asked
        // again.
        if let Some(lookup) = &mut self.lookup {
            lookup.settled.remove(&peer);
        }
        // One voter less to wait for.
        self.tally(at, out)
    }

    pub(crate) fn tick(&mut self, at: Duration, out: &mut Outbox) -> Option<ServerId> {
        self.stand_back_or_forth(at, out);
        self.end_stalemate(at, out);
        let lookup = self.lookup.as_mut()?;
        if at >= lookup.resend_at {
            lookup.resend_after = (lookup.resend_after * 2).min(RESEND_MAX);
            lookup.resend_at = at + lookup.resend_after;
            self.tell_all(at, out);
        }
        self.tally(at, out)
    }

    /// True for ourselves, and for a peer that was heard lately.
    fn hears(&self, voter: ServerId, at: Duration) -> bool {
        let lately = |peer: &Peer| peer.audible_until().is_some_and(|until| at <= until);
        voter == self.me || self.peers.get(&voter).is_some_and(lately)
    }

    /// Hears it, and is heard by it as far as is known.
    fn in_touch(&self, voter: ServerId, at: Duration) -> bool {
        self.hears(voter, at)
            && !self.peers.get(&voter).is_some_and(|peer| matches!(peer.hearing, Hearing::Deaf))
    }

    /// Which voters it hears, for one of them. A member of Apache ZooKeeper would not understand, and who has
    /// no vote is not listened to.
    fn heard_voters(&self, to: ServerId, at: Duration) -> Option<Vec<ServerId>> {
        let understands = self.peers.get(&to).is_some_and(|peer| !peer.apache);
        understands.then(|| self.peers.keys().copied().filter(|voter| self.hears(*voter, at)).collect())
    }

    /// Whether votes for a candidate tell what its log proposes. Those of members of Apache ZooKeeper do not.
    fn tells(&self, candidate: ServerId) -> bool {
        self.dialect(candidate) == Dialect::Own
    }

    /// What a candidate needs.
    fn needs(&self, candidate: ServerId) -> &Quorum {
        self.electorate.needs(candidate, self.tells(candidate))
    }

    /// A quorum of those whom its candidate needs votes so.
    fn is_agreed(&self, lookup: &Lookup, vote: &Vote) -> bool {
        let needs = self.needs(vote.leader);
        needs.reached(needs.voters().filter(|voter| lookup.ballots.get(voter) == Some(vote)))
    }

    /// True for who has a vote by what it knows itself.
    fn votes(&self) -> bool {
        self.electorate.own().contains(self.me)
    }

    /// An observer, or where the ensemble may change anybody else who is no voter.
    fn has_no_vote(&self, server: ServerId) -> bool {
        self.observers.contains(&server) || {
            self.electorate.membership().is_some() && !self.peers.contains_key(&server)
        }
    }

    /// A vote arrived. Returns the leader when it decides the election.
    pub(crate) fn heard(
        &mut self,
        from: ServerId,
        notification: &Notification,
        at: Duration,
        out: &mut Outbox,
    ) -> Option<ServerId> {
        if self.has_no_vote(from) {
            // It wants to know whom to follow, and has no vote. One that follows asks nothing. Who is none of
            // us may think that it votes, and answer: so it is told once we have a leader. And of two without
            // a vote neither has anything to tell before.
            let observer = self.observers.contains(&from) && self.votes();
            if notification.state == PeerState::Looking
                && self.lookup.as_mut().is_none_or(|lookup| observer && lookup.tells_observer(from, at))
            {
                self.tell(from, at, out);
            }
            return None;
        }
        let peer = self.peers.get_mut(&from)?;
        peer.suspect = false;
        peer.connected = true;
        peer.heard_at = Some(at);
        peer.apache = notification.dialect == Dialect::Apache;
        let hears_us = notification.hears.as_ref().is_none_or(|hears| hears.contains(&self.me));
        // Whose leader stands speaks with others now and then only, and what they say then was said before
        // they heard it.
        if (hears_us || !self.established)
            && peer.says(hears_us, at)
            && let Some(lookup) = &mut self.lookup
        {
            lookup.resend_at = lookup.resend_at.min(at + RESEND_MIN);
        }
        // A vote for a stranger would never be led, and is not counted. Who settled tells its sender whom to
        // follow all the same: a member that knows an older membership may stand back behind one that was
        // removed since.
        if !self.electorate.contains(notification.leader) {
            if self.lookup.is_none() && notification.state == PeerState::Looking {
                self.tell(from, at, out);
            }
            return None;
        }
        self.stand_back_or_forth(at, out);
        if notification.state == PeerState::Leading && notification.leader == from {
            self.in_vain.remove(&from);
        }
        if self.lookup.is_none() {
            let elected = |vote: Vote| vote.leader == from && vote.round == notification.round;
            if self.decided.is_some_and(elected) && at >= self.informed_at {
                self.looks_on = notification.state == PeerState::Looking;
            }
            // One that thinks it leads an older epoch is told too: nobody follows it, and it would wait in
            // vain.
            let strays = notification.state == PeerState::Leading
                && self
                    .decided
                    .is_some_and(|vote| vote.leader != from && vote.peer_epoch > notification.peer_epoch);
            if notification.state == PeerState::Looking || strays {
                self.tell(from, at, out);
            }
            return None;
        }
        let vote = Vote::of(notification);
        match notification.state {
            PeerState::Looking => self.heard_looking(from, vote, at, out),
            PeerState::Following => self.heard_settled(from, vote, false, at, out),
            PeerState::Leading => self.heard_settled(from, vote, true, at, out),
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
        let reaches_candidate = self.in_touch(vote.leader, at);
        // A voter answers whoever has no vote: if that one answered in turn, both would do nothing else.
        let votes = self.votes();
        let lookup = self.lookup.as_mut()?;
        // Who looks neither leads nor follows, whatever its round: one that was restarted begins with the
        // first.
        lookup.settled.remove(&from);
        if self.observes {
            return None;
        }
        if vote.round < self.round {
            if votes {
                self.tell(from, at, out);
            }
            return None;
        }
        let mut changed = false;
        if vote.round > self.round {
            self.round = vote.round;
            lookup.own.round = vote.round;
            lookup.candidacy.round = vote.round;
            lookup.proposal = lookup.own;
            lookup.ballots.clear();
            lookup.avoided = None;
            changed = true;
        }
        // One that we are not in touch with we could not follow, whoever speaks for it.
        if vote.rank(self.zab) > lookup.proposal.rank(self.zab)
            && reaches_candidate
            && lookup.avoided != Some(vote.leader)
            && !self.in_vain.contains(&vote.leader)
        {
            lookup.proposal = vote;
            changed = true;
        }
        let worse = vote.rank(self.zab) < lookup.proposal.rank(self.zab);
        if vote.rank(self.zab) > lookup.candidacy.rank(self.zab) {
            lookup.contested_at = at;
        }
        lookup.cast(from, vote, at);
        lookup.cast(self.me, lookup.proposal, at);
        if changed {
            lookup.changed(at);
            self.tell_all(at, out);
        } else if worse && votes {
            // It may have missed our vote: connections come and go.
            self.tell(from, at, out);
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
        let votes = self.votes();
        let lookup = self.lookup.as_mut()?;
        lookup.settled.insert(from, Settled { vote, leading: leading && vote.leader == from });
        let leader = vote.leader;
        if vote.round == self.round {
            lookup.cast(from, vote, at);
        }
        if leader != self.me && lookup.settled.get(&leader).is_some_and(|claim| claim.leading) {
            let claim = lookup.settled[&leader].vote;
            let same_round = claim.round == self.round;
            // Who stands back names somebody as well; that is no vote.
            let voted = Vote { peer_epoch: claim.peer_epoch, ..lookup.proposal };
            let counted_us = votes && voted == claim && lookup.proposal != lookup.own;
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
            if counted_us || self.electorate.own().reached_by_either(supporters.iter().copied()) {
                return Some(self.decide(claim, at, out));
            }
        }
        self.tally(at, out)
    }

    /// Decides if a quorum agrees with our proposal and nobody is left to wait for.
    fn tally(&mut self, at: Duration, out: &mut Outbox) -> Option<ServerId> {
        let lookup = self.lookup.as_ref().filter(|_| !self.observes)?;
        let proposal = lookup.proposal;
        // Standing back is no vote that could be won.
        if proposal == lookup.own && lookup.own != lookup.candidacy {
            return None;
        }
        let agrees = |voter: &ServerId| lookup.ballots.get(voter) == Some(&proposal);
        let reached = self.is_agreed(lookup, &proposal);
        let complete =
            self.peers.iter().all(|(voter, peer)| agrees(voter) || !peer.connected || peer.suspect);
        let lookup = self.lookup.as_mut()?;
        if !reached {
            lookup.settle_at = None;
            return None;
        }
        let settle_at = *lookup.settle_at.get_or_insert(at + SETTLE);
        if complete || at >= settle_at {
            return Some(self.decide(proposal, at, out));
        }
        None
    }

    fn decide(&mut self, vote: Vote, at: Duration, out: &mut Outbox) -> ServerId {
        let lookup = self.lookup.take();
        self.round = vote.round;
        self.decided = Some(vote);
        self.informed_at = at + NEWS;
        if self.observes {
            return vote.leader;
        }
        // Whoever has not voted the same learns at once where the ensemble went.
        let astray: Vec<ServerId> = self
            .peers
            .keys()
            .copied()
            .filter(|peer| lookup.as_ref().and_then(|lookup| lookup.ballots.get(peer)) != Some(&vote))
            .collect();
        for peer in astray {
            self.tell(peer, at, out);
        }
        vote.leader
    }

    fn tell_all(&mut self, at: Duration, out: &mut Outbox) {
        if let Some(lookup) = &mut self.lookup {
            lookup.observers_told.clear();
        }
        let peers: Vec<ServerId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.tell(peer, at, out);
        }
    }

    fn tell(&mut self, to: ServerId, at: Duration, out: &mut Outbox) {
        let (vote, state) = match (&self.lookup, self.decided) {
            (Some(lookup), _) => (lookup.proposal, PeerState::Looking),
            (None, Some(vote)) if vote.leader == self.me => (vote, PeerState::Leading),
            (None, Some(vote)) if self.observes => (vote, PeerState::Observing),
            (None, Some(vote)) => (vote, PeerState::Following),
            (None, None) => return,
        };
        let notification = Notification {
            state,
            leader: vote.leader,
            zxid: vote.zxid,
            round: if state == PeerState::Looking { self.round } else { vote.round },
            peer_epoch: vote.peer_epoch,
            config: self.electorate.membership().cloned(),
            proposed: self.electorate.proposed_by(vote.leader, self.tells(vote.leader)),
            hears: self.heard_voters(to, at),
            dialect: Dialect::Own,
        };
        out.push((to, notification));
        if let Some(peer) = self.peers.get_mut(&to) {
            peer.told(at);
        }
    }
}
