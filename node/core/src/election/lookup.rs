//! What a member that looks for a leader remembers: votes, peers, and the ballot box of one lookup.

use std::collections::BTreeMap;
use std::time::Duration;

use node_wire::election::Notification;
use node_wire::ids::{Epoch, Round, ServerId, Zxid};

use crate::zab::Protocol;

/// The first pause before a vote is told again to those that did not answer; it doubles up to `RESEND_MAX`.
pub(super) const RESEND_MIN: Duration = Duration::from_millis(60);

/// A peer that looks is heard at least this often, and one that does not answers as often: see `RESEND_MAX`.
const AUDIBLE: Duration = Duration::from_millis(2500);

/// A Java member repeats its vote ever more rarely, down to once a minute. While its connection stands it is
/// taken to be there for this long.
const APACHE_AUDIBLE: Duration = Duration::from_secs(65);

/// For how long a peer must have been told our vote when it says that it does not hear us, for that to count:
/// longer than news and the answer take.
pub(super) const DEAF: Duration = Duration::from_millis(500);

/// A vote: for whom, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Vote {
    pub(crate) leader: ServerId,
    pub(crate) zxid: Zxid,
    pub(crate) peer_epoch: Epoch,
    pub(crate) round: Round,
}

impl Vote {
    pub(super) fn of(notification: &Notification) -> Self {
        Self {
            leader: notification.leader,
            zxid: notification.zxid,
            peer_epoch: notification.peer_epoch,
            round: notification.round,
        }
    }

    /// The order of votes within a round.
    pub(super) fn rank<P: Protocol>(&self, zab: P) -> (Epoch, Zxid, ServerId) {
        let (epoch, zxid) = zab.newness(self.peer_epoch, self.zxid);
        (epoch, zxid, self.leader)
    }
}

/// Whether a peer hears us, as its votes say.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) enum Hearing {
    /// It does, or it did not say.
    #[default]
    Yes,
    /// It did not when it said so. Since then it was told our vote, first at this time, or not yet.
    No {
        /// When that was.
        told_at: Option<Duration>,
    },
    /// It still said so when it had been told for [`DEAF`].
    Deaf,
}

/// What is known of a peer's connection.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Peer {
    pub(super) connected: bool,
    /// It was our leader and fell silent: its open socket proves nothing until it speaks again.
    pub(super) suspect: bool,
    /// When it was heard last, in the present lookup.
    pub(super) heard_at: Option<Duration>,
    /// What it says of whether it hears us.
    pub(super) hearing: Hearing,
    /// It is a member of Apache ZooKeeper, as its votes show.
    pub(super) apache: bool,
}

impl Peer {
    /// It says whether it hears us, or that it can't say, which is taken for yes. True if it should be told
    /// our vote soon: what it says of us is as old as the news on their way to it.
    pub(super) fn says(&mut self, hears_us: bool, at: Duration) -> bool {
        self.hearing = match self.hearing {
            _ if hears_us => Hearing::Yes,
            Hearing::Yes => Hearing::No { told_at: None },
            Hearing::No { told_at: Some(told_at) } if at >= told_at + DEAF => Hearing::Deaf,
            known => known,
        };
        matches!(self.hearing, Hearing::No { .. })
    }

    /// It is told our vote.
    pub(super) fn told(&mut self, at: Duration) {
        if let Hearing::No { told_at } = &mut self.hearing {
            told_at.get_or_insert(at);
        }
    }

    /// That it does not hear us was not said for long enough, and is asked anew.
    pub(super) fn ask_anew(&mut self) {
        if matches!(self.hearing, Hearing::No { .. }) {
            self.hearing = Hearing::Yes;
        }
    }

    /// Until when it counts as heard.
    pub(super) fn audible_until(&self) -> Option<Duration> {
        let audible = if self.apache && self.connected { APACHE_AUDIBLE } else { AUDIBLE };
        self.heard_at.map(|heard_at| heard_at + audible)
    }
}

/// The vote of a member that is not looking, and whether it claims to lead.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Settled {
    pub(super) vote: Vote,
    pub(super) leading: bool,
}

/// A vote without its round, and since when its voter is known to have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) vote: Vote,
    pub(super) since: Duration,
}

/// One search for a leader.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    /// For ourselves, with all we have.
    pub(super) candidacy: Vote,
    /// What we vote for when nobody is better: ourselves, or nobody while we stand back.
    pub(super) own: Vote,
    pub(super) proposal: Vote,
    /// Whom we voted for in vain.
    pub(super) avoided: Option<ServerId>,
    /// Until when we stand back although we hear a quorum, because it did not vote for us.
    pub(super) gives_way_until: Option<Duration>,
    /// When somebody told last of a better vote than our candidacy, or else when we began to look.
    pub(super) contested_at: Duration,
    pub(super) began: Duration,
    /// The latest vote of each voter, ourselves included, in this round.
    pub(super) ballots: BTreeMap<ServerId, Vote>,
    /// Since when each voter is known to vote as it does, from round to round.
    pub(super) stands: BTreeMap<ServerId, Standing>,
    pub(super) settled: BTreeMap<ServerId, Settled>,
    /// When the wait for better votes ends; runs while a quorum agrees.
    pub(super) settle_at: Option<Duration>,
    pub(super) resend_at: Duration,
    pub(super) resend_after: Duration,
    /// Observers that asked and were told our vote: until when each is not told it again.
    pub(super) observers_told: BTreeMap<ServerId, Duration>,
}

impl Lookup {
    /// An observer asks. True where it is to be told our vote, and then it is taken to have been.
    pub(super) fn tells_observer(&mut self, observer: ServerId, at: Duration) -> bool {
        let told_until = self.observers_told.get(&observer);
        let tells = told_until.is_none_or(|told_until| *told_until <= at);
        if tells {
            self.observers_told.insert(observer, at + RESEND_MIN);
        }
        tells
    }

    /// A voter votes. A vote that is the same but for its round stands since it came first.
    pub(super) fn cast(&mut self, voter: ServerId, vote: Vote, at: Duration) {
        self.ballots.insert(voter, vote);
        let vote = Vote { round: Round(0), ..vote };
        let standing = self.stands.entry(voter).or_insert(Standing { vote, since: at });
        if standing.vote != vote {
            *standing = Standing { vote, since: at };
        }
    }

    /// Since when all of these voters vote as they do. None if one of them has no vote.
    pub(super) fn stand_since(&self, voters: impl IntoIterator<Item = ServerId>) -> Option<Duration> {
        let since = |voter| self.stands.get(&voter).map(|standing| standing.since);
        voters.into_iter().map(since).try_fold(Duration::ZERO, |latest, since| Some(latest.max(since?)))
    }

    /// Since when our own vote stands and nobody told of a better one.
    pub(super) fn uncontested_since(&self, me: ServerId) -> Option<Duration> {
        self.stand_since([me]).map(|since| since.max(self.contested_at))
    }

    /// Our vote is another now: it is told at once, and again soon.
    pub(super) fn changed(&mut self, at: Duration) {
        self.settle_at = None;
        self.resend_after = RESEND_MIN;
        self.resend_at = at + RESEND_MIN;
    }
}
