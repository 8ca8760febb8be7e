//! Votes that answer each other for ever.
//!
//! A vote may be answered, and that answer too, as long as somebody learns something by it. Where a member
//! hears what it heard before and says again what it said before, and its peer does likewise, both do nothing
//! else until one of them finds a leader: as fast as the link carries votes. Votes are said again by the
//! clock as well, but seldom.

use std::collections::BTreeMap;

use node_core::io::Input;
use node_wire::election::Notification;

use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::world::{Clockwork, Ensemble, Oracle};
use harness_world::time::Time;

/// Votes are said again by the clock at longer intervals.
const FAST_US: u64 = 100_000;

/// Repeats in a row that are too many: when a link passes again, what was held back on it comes at once, each
/// answered, and what answers that may be held back too.
const MOST: u32 = 1_000;

/// What passed between two members, as one of them sees it.
#[derive(Clone, Debug, Default)]
struct Talk {
    heard: Option<Notification>,
    told: Option<Notification>,
    /// What came last was no news.
    again: bool,
    repeated_at: Time,
    repeats: u32,
}

/// Who says what again to whom.
#[derive(Clone, Debug, Default)]
pub(in crate::world) struct VoteStorms {
    talks: BTreeMap<(HostIndex, HostIndex), Talk>,
    /// Whose vote the present step is about.
    hears: Option<HostIndex>,
}

impl VoteStorms {
    /// A member tells a peer its vote. True when that was one repetition too many.
    pub(in crate::world) fn tells(
        &mut self,
        host: HostIndex,
        peer: HostIndex,
        vote: &Notification,
        at: Time,
    ) -> bool {
        let talk = self.talks.entry((host, peer)).or_default();
        let vote = without_hearing(vote);
        let same = talk.told.as_ref() == Some(&vote);
        if !same {
            talk.told = Some(vote);
        }
        let repeats = same && talk.again && self.hears == Some(peer);
        let goes_on = talk.repeats > 0 && at.since(talk.repeated_at) <= FAST_US;
        talk.repeats = match (repeats, goes_on) {
            (true, true) => talk.repeats + 1,
            (true, false) => 1,
            (false, true) => talk.repeats,
            (false, false) => 0,
        };
        if repeats {
            talk.repeated_at = at;
        }
        talk.repeats > MOST
    }

    pub(super) fn takes_in(&mut self, host: HostIndex, heard: Option<(HostIndex, &Notification)>) {
        self.hears = heard.map(|(peer, _)| peer);
        let Some((peer, vote)) = heard else { return };
        let talk = self.talks.entry((host, peer)).or_default();
        let vote = without_hearing(vote);
        talk.again = talk.heard.as_ref() == Some(&vote);
        if !talk.again {
            talk.heard = Some(vote);
            talk.repeats = 0;
        }
    }
}

/// Whom its sender hears may change from one to the next, and is no news of the vote.
fn without_hearing(vote: &Notification) -> Notification {
    Notification { hears: None, ..vote.clone() }
}

impl Oracle {
    /// A member takes something in, perhaps a vote.
    pub(in crate::world) fn hear_vote(&mut self, ensemble: &Ensemble, host: HostIndex, input: &Input) {
        let vote = match input {
            Input::Notification { from, notification } => {
                ensemble.index_of(*from).map(|peer| (peer, notification))
            }
            _ => None,
        };
        self.vote_storms.takes_in(host, vote);
    }

    /// A member tells a peer its vote.
    pub(in crate::world) fn check_vote_storm(
        &mut self,
        clock: &mut Clockwork,
        host: HostIndex,
        peer: HostIndex,
        vote: &Notification,
    ) {
        if self.vote_storms.tells(host, peer, vote, clock.now) {
            let sentence =
                format!("servers {} and {} answer each other's votes again and again", host + 1, peer + 1);
            self.report(clock, Rule::Liveness, sentence);
        }
    }
}

#[cfg(test)]
mod tests {
    use node_wire::election::PeerState;
    use node_wire::ids::{Epoch, Round, ServerId, Zxid};
    use node_wire::quorum::Dialect;

    use super::*;

    fn vote(leader: u64) -> Notification {
        Notification {
            state: PeerState::Looking,
            leader: ServerId(leader),
            zxid: Zxid::ZERO,
            round: Round(1),
            peer_epoch: Epoch::ZERO,
            config: None,
            proposed: None,
            hears: None,
            dialect: Dialect::Own,
        }
    }

    /// Hears what member 2 says so often, at such intervals, and answers each time. True when that is too
    /// often.
    fn answers(times: u32, interval_us: u64, heard: impl Fn(u32) -> Notification) -> bool {
        let mut repeats = VoteStorms::default();
        (0..times).any(|time| {
            repeats.takes_in(0, Some((1, &heard(time))));
            repeats.tells(0, 1, &vote(1), Time(u64::from(time) * interval_us))
        })
    }

    #[test]
    fn the_same_again_and_again_is_too_much() {
        assert!(answers(MOST + 2, 200, |_| vote(2)));
        assert!(!answers(MOST, 200, |_| vote(2)), "what was held back comes at once");
    }

    #[test]
    fn by_the_clock_or_with_news_is_not() {
        assert!(!answers(3 * MOST, FAST_US + 1, |_| vote(2)), "by the clock");
        assert!(!answers(3 * MOST, 200, |time| vote(u64::from(time % 2))), "news each time");
    }

    #[test]
    fn what_nobody_asked_for_is_no_echo() {
        let mut repeats = VoteStorms::default();
        repeats.takes_in(0, Some((1, &vote(2))));
        repeats.takes_in(0, None);
        assert!((0..3 * MOST).all(|time| !repeats.tells(0, 1, &vote(1), Time(u64::from(time)))));
    }
}
