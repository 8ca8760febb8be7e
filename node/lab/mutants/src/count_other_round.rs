//! A vote of another round is counted as if it were of this one: the ballot box is not emptied between
//! rounds. Safety does not suffer, discovery sees to that. But a leader that died has the votes of the round
//! in which it won, and wins the next ones too.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use node_core::io::{Effect, Event, Input, Now};
use node_core::{MemberView, Role};
use node_wire::election::{Notification, PeerState};
use node_wire::ids::{Round, ServerId};

use crate::wrapper::{Inner, Wrapper};
use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "count-other-round",
    origin: "fast leader election, logical clock",
    summary: "votes of another round are counted in this one",
    wrapper: |_| Some(Box::new(Ballots::default())),
    recipe: Err("needs votes that are late by a chosen time"),
    ..USUAL
};

/// The ballot box, which nobody empties.
#[derive(Clone, Debug, Default)]
struct Ballots {
    round: Round,
    /// The latest vote of each that looked.
    votes: BTreeMap<ServerId, Notification>,
}

impl Hash for Ballots {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { round, votes } = self;
        round.hash(state);
        for (voter, vote) in votes {
            (voter, vote.leader, vote.zxid, vote.peer_epoch).hash(state);
        }
    }
}

impl Ballots {
    fn note_round(&mut self, effects: &[Effect]) -> bool {
        let rounds = effects.iter().filter_map(|effect| match effect {
            Effect::Event(Event::Looking { round, .. }) => Some(*round),
            _ => None,
        });
        let round = rounds.last();
        self.round = round.unwrap_or(self.round);
        round.is_some()
    }
}

impl Wrapper for Ballots {
    fn step(&mut self, inner: &mut Inner, now: Now, mut input: Input, out: &mut Vec<Effect>) {
        if let Input::Notification { from, notification } = &mut input {
            // Another round counts as this one.
            if inner.member.status().role == Role::Looking {
                notification.round = self.round;
            }
            if notification.state == PeerState::Looking {
                self.votes.insert(*from, notification.clone());
            }
        }
        let before = out.len();
        inner.step(now, input, out);
        if self.note_round(&out[before..]) {
            // What lies in the box counts in the new round, the vote of a leader that is gone as well.
            for (from, vote) in self.votes.clone() {
                if inner.member.status().role == Role::Looking {
                    let notification = Notification { round: self.round, ..vote };
                    inner.step(now, Input::Notification { from, notification }, out);
                }
            }
        }
    }
}
