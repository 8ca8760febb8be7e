//! Which probes and controls of which round arrived. Pure.
//!
//! Agents learn of a round one after the other, so a round begins with whatever comes first, a datagram or
//! the question for it. Only the newest rounds are kept: what is older than all of them is stale.

use std::collections::BTreeMap;

use super::datagram::Kind;
use crate::protocol::{Arrival, Peer};
use crate::time::MS;

/// Rounds that are remembered.
const MAX_ROUNDS: usize = 64;
/// Longest wait for controls.
const MAX_WAIT_NS: u64 = 1_000 * MS;
/// Longest wait for probes, once all controls are there: beyond what all faults of a run together make them
/// slower.
const MAX_PATIENCE_MS: u64 = 60_000;

/// The answer to a question for a round, or when to ask again at the latest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This is it.
    Now(Vec<Arrival>),
    /// Not before something arrives, or this moment of the monotonic clock.
    Until(u64),
}

/// A question for a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) round: u64,
    pub(crate) asked_ns: u64,
    pub(crate) patience_ms: u64,
}

#[derive(Debug)]
struct Round {
    /// In the order of the peers: how long each took.
    arrivals: Vec<Arrival>,
    last_control_ns: u64,
}

/// The newest rounds.
#[derive(Debug)]
pub(super) struct Rounds {
    peers: Vec<Peer>,
    rounds: BTreeMap<u64, Round>,
}

impl Rounds {
    pub(super) fn new(peers: Vec<Peer>) -> Self {
        Self { peers, rounds: BTreeMap::new() }
    }

    /// A datagram arrived. The second of a kind is not looked at, nor one of a stale round.
    pub(super) fn note(&mut self, round: u64, from: Peer, kind: Kind, sent_ns: u64, received_ns: u64) {
        let Some(took_ns) = received_ns.checked_sub(sent_ns) else { return };
        let took_us = took_ns / 1_000;
        let oldest = self.rounds.first_key_value().map(|(oldest, _)| *oldest);
        if !self.rounds.contains_key(&round) && self.rounds.len() >= MAX_ROUNDS {
            if oldest.is_some_and(|oldest| round < oldest) {
                return;
            }
            self.rounds.pop_first();
        }
        let peers = &self.peers;
        let round = self.rounds.entry(round).or_insert_with(|| Round::new(peers));
        let Some(arrival) = round.arrivals.iter_mut().find(|arrival| arrival.from == from) else { return };
        let place = match kind {
            Kind::Probe => &mut arrival.probe_us,
            Kind::Control => &mut arrival.control_us,
        };
        if place.is_none() {
            *place = Some(took_us);
            if kind == Kind::Control {
                round.last_control_ns = round.last_control_ns.max(received_ns);
            }
        }
    }

    /// What to say to a question at this moment.
    pub(super) fn answer(&self, question: Question, now_ns: u64) -> Answer {
        let none = Round::new(&self.peers);
        let round = self.rounds.get(&question.round).unwrap_or(&none);
        let all = |kind: fn(&Arrival) -> bool| round.arrivals.iter().all(kind);
        let controls = all(|arrival| arrival.control_us.is_some());
        let probes = all(|arrival| arrival.probe_us.is_some());
        let mut until_ns = question.asked_ns.saturating_add(MAX_WAIT_NS);
        if controls {
            let patience_ns = question.patience_ms.min(MAX_PATIENCE_MS) * MS;
            until_ns = round.last_control_ns.saturating_add(patience_ns);
        }
        if (controls && probes) || now_ns >= until_ns {
            Answer::Now(round.arrivals.clone())
        } else {
            Answer::Until(until_ns)
        }
    }
}

impl Round {
    fn new(peers: &[Peer]) -> Self {
        let nothing = |from: &Peer| Arrival { from: *from, probe_us: None, control_us: None };
        Self { arrivals: peers.iter().map(nothing).collect(), last_control_ns: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: Question = Question { round: 7, asked_ns: 100 * MS, patience_ms: 20 };

    fn arrived(answer: Answer) -> Vec<(Option<u64>, Option<u64>)> {
        match answer {
            Answer::Now(arrivals) => arrivals.iter().map(|one| (one.probe_us, one.control_us)).collect(),
            Answer::Until(until) => panic!("no answer until {until}"),
        }
    }

    fn rounds(seen: &[(Peer, Kind, u64)]) -> Rounds {
        let mut rounds = Rounds::new(vec![1, 2]);
        for (from, kind, at_ms) in seen {
            rounds.note(7, *from, *kind, at_ms * MS - 5_000, at_ms * MS);
        }
        rounds
    }

    #[test]
    fn all_there_is_an_answer_at_once() {
        let rounds = rounds(&[
            (1, Kind::Probe, 101),
            (2, Kind::Control, 102),
            (1, Kind::Control, 103),
            (2, Kind::Probe, 104),
        ]);
        assert_eq!(arrived(rounds.answer(QUESTION, 104 * MS)), [(Some(5), Some(5)); 2]);
    }

    #[test]
    fn a_missing_probe_is_waited_for_from_the_last_control_on() {
        let rounds = rounds(&[(1, Kind::Control, 102), (2, Kind::Control, 110), (2, Kind::Probe, 110)]);
        assert_eq!(rounds.answer(QUESTION, 110 * MS), Answer::Until(130 * MS));
        assert_eq!(arrived(rounds.answer(QUESTION, 130 * MS)), [(None, Some(5)), (Some(5), Some(5))]);
    }

    #[test]
    fn a_probe_that_many_faults_hold_back_is_waited_for_as_long_as_is_said() {
        let rounds = rounds(&[(1, Kind::Control, 110), (2, Kind::Control, 110), (2, Kind::Probe, 110)]);
        let slow = Question { patience_ms: 16_000, ..QUESTION };
        assert_eq!(rounds.answer(slow, 110 * MS), Answer::Until(16_110 * MS));
        let endless = Question { patience_ms: u64::MAX, ..QUESTION };
        assert_eq!(rounds.answer(endless, 110 * MS), Answer::Until((110 + MAX_PATIENCE_MS) * MS));
    }

    #[test]
    fn who_asks_late_does_not_wait() {
        let rounds = rounds(&[(1, Kind::Control, 10), (2, Kind::Control, 10)]);
        assert_eq!(arrived(rounds.answer(QUESTION, QUESTION.asked_ns)), [(None, Some(5)); 2]);
    }

    #[test]
    fn a_missing_control_is_waited_for_a_second() {
        let rounds = rounds(&[(1, Kind::Control, 102), (1, Kind::Probe, 102), (2, Kind::Probe, 102)]);
        assert_eq!(rounds.answer(QUESTION, 500 * MS), Answer::Until(1_100 * MS));
        assert_eq!(arrived(rounds.answer(QUESTION, 1_100 * MS)), [(Some(5), Some(5)), (Some(5), None)]);
        let patient = Question { patience_ms: u64::MAX, ..QUESTION };
        assert_eq!(rounds.answer(patient, 500 * MS), Answer::Until(1_100 * MS));
    }

    #[test]
    fn nobody_to_hear_from_is_heard_at_once() {
        assert_eq!(arrived(Rounds::new(Vec::new()).answer(QUESTION, 0)), []);
    }

    #[test]
    fn doubles_strangers_and_stamps_from_the_future_are_not_looked_at() {
        let mut rounds = rounds(&[(1, Kind::Probe, 101)]);
        rounds.note(7, 1, Kind::Probe, 0, 900 * MS);
        rounds.note(7, 3, Kind::Probe, 0, 1);
        rounds.note(7, 2, Kind::Probe, 2, 1);
        let answer = rounds.answer(QUESTION, 2_000 * MS);
        assert_eq!(arrived(answer), [(Some(5), None), (None, None)]);
    }

    #[test]
    fn only_the_newest_rounds_are_kept() {
        let mut rounds = Rounds::new(vec![1]);
        for round in 0..10_000 {
            rounds.note(round, 1, Kind::Probe, 0, 1);
        }
        rounds.note(3, 1, Kind::Probe, 0, 1);
        assert_eq!(rounds.rounds.len(), MAX_ROUNDS);
        assert!(!rounds.rounds.contains_key(&3));
        assert!(rounds.rounds.contains_key(&9_999));
    }
}
