//! The workload `barrier`: applications that enter a round of a barrier together, and leave it together.
//!
//! A round is entered by three at least, and each round is another place. Whoever has entered leaves;
//! whoever did not come in tries another round, and leaves its place to another process, as one that is lost
//! does. What must be true, for each round (ZooKeeper's recipe of double barriers):
//!
//! - Nobody is in before three have tried to enter.
//! - Nobody has left while somebody is in who has not begun to leave. Whoever lost its session is out.
//!
//! That a round opens or ends at all is nobody's promise: one of three may be stopped.

use std::collections::{BTreeMap, BTreeSet};

use checker::figures::count;
use checker::history::{EventKind, Function, Op as Recorded, OpKind, Outcome as End, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::case::Case;
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::workload::{Applications, Definition, Generator, as_agreed, of_operations};

/// How many must have come before anybody is in.
pub const PARTIES: usize = 3;

pub(crate) const WORKLOAD: Definition = Definition {
    name: "barrier",
    summary: "applications enter barriers together and leave together: nobody goes on alone",
    object: Object::BARRIER,
    functions: &[Function::ENTER, Function::LEAVE],
    dispensable: &[],
    marks: &[Function::ENTER],
    words: &[],
    generator: |params, rng| Box::new(Barriers::new(params.keys, rng)),
    records_sessions: false,
    sessions_expire: true,
    goes_along: false,
    applications: Some(Applications::Barrier),
    is_settled: as_agreed,
    judged_by: of_operations,
    promises: &[together],
    durability: None,
};

/// A round that is not over: whose places are taken.
#[derive(Clone, Debug)]
struct Round {
    number: i64,
    taken: usize,
}

/// Where a process is.
#[derive(Clone, Copy, Debug)]
struct Visit {
    key: u64,
    round: i64,
    is_in: bool,
}

/// The generator.
#[derive(Clone, Debug)]
struct Barriers {
    rng: ChaCha8Rng,
    keys: u64,
    /// The round of each barrier that has places.
    open: BTreeMap<u64, Round>,
    visits: BTreeMap<u64, Visit>,
}

impl Barriers {
    fn new(keys: u64, rng: ChaCha8Rng) -> Self {
        Self { rng, keys, open: BTreeMap::new(), visits: BTreeMap::new() }
    }

    /// A place in a round: rounds that some wait in come first.
    fn take(&mut self) -> Visit {
        let waited = |(_, round): &(&u64, &Round)| (1..PARTIES).contains(&round.taken);
        let key = match self.open.iter().find(waited) {
            Some((key, _)) => *key,
            None => self.rng.random_range(0..self.keys),
        };
        let round = self.open.entry(key).or_insert(Round { number: 0, taken: 0 });
        if round.taken == PARTIES {
            *round = Round { number: round.number + 1, taken: 0 };
        }
        round.taken += 1;
        Visit { key, round: round.number, is_in: false }
    }

    /// A process is lost before it came in: its place is another one's.
    fn vacate(&mut self, visit: Visit) {
        if let Some(round) = self.open.get_mut(&visit.key).filter(|round| round.number == visit.round) {
            round.taken = round.taken.saturating_sub(1);
        }
    }
}

impl Generator for Barriers {
    fn setup(&mut self) -> Vec<Op> {
        (0..self.keys).map(|key| barrier(key, Body::MakePlace)).collect()
    }

    fn next_op(&mut self, process: u64) -> Op {
        let visit = match self.visits.get(&process) {
            Some(visit) => *visit,
            None => self.take(),
        };
        self.visits.insert(process, visit);
        let Visit { key, round, is_in } = visit;
        barrier(key, if is_in { Body::Leave { round } } else { Body::Enter { round } })
    }

    fn next_read(&mut self) -> Op {
        let key = self.rng.random_range(0..self.keys);
        barrier(key, Body::Read)
    }

    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match (&op.body, outcome.kind) {
            (Body::Enter { .. }, EventKind::Ok) => {
                if let Some(visit) = self.visits.get_mut(&process) {
                    visit.is_in = true;
                }
            }
            // It was never asked, and tries again.
            (Body::Enter { .. }, EventKind::Fail) if outcome.refusal.is_none() => {}
            (Body::Enter { .. }, _) => {
                if let Some(visit) = self.visits.remove(&process) {
                    self.vacate(visit);
                }
            }
            (Body::Leave { .. }, EventKind::Fail) if outcome.refusal.is_none() => {}
            (Body::Leave { .. }, _) => {
                self.visits.remove(&process);
            }
            _ => {}
        }
    }

    /// The rounds that there were.
    fn final_reads(&self) -> Vec<Op> {
        (0..self.keys).map(|key| barrier(key, Body::Read)).collect()
    }
}

fn barrier(key: u64, body: Body) -> Op {
    Op::new(Object::BARRIER, key, body)
}

/// One round, as its history tells of it.
#[derive(Default)]
struct Told<'a> {
    enters: Vec<&'a Recorded>,
    leaves: Vec<&'a Recorded>,
}

/// What was found, in a sentence, with the operations that show it.
type Finding<'a> = (String, Vec<&'a Recorded>);

impl<'a> Told<'a> {
    /// Somebody who was in before so many had come.
    fn alone(&self) -> Option<Finding<'a>> {
        let ended = |op: &&&Recorded| op.outcome == End::Ok;
        let first = self.enters.iter().filter(ended).min_by_key(|op| op.ret)?;
        let came = self.enters.iter().filter(|op| op.call < first.ret && op.was_sent());
        let came: BTreeSet<u64> = came.map(|op| op.process).collect();
        if came.len() >= PARTIES {
            return None;
        }
        let sentence = format!("{}, when {} of {PARTIES} had come", describe(first), came.len());
        Some((sentence, vec![first]))
    }

    /// Somebody who had left while another one was in, and had not begun to leave. That one's own leave tells
    /// that its session lived.
    fn ahead(&self) -> Option<Finding<'a>> {
        let ok = |op: &&&Recorded| op.outcome == End::Ok;
        let first = self.leaves.iter().filter(ok).min_by_key(|op| op.ret)?;
        // Who came in after the others had gone was in a round that had ended.
        let were_in = self.enters.iter().filter(ok).filter(|enter| enter.ret < first.call);
        let pairs = were_in.filter_map(|enter| {
            let leave = self.leaves.iter().filter(ok).find(|leave| leave.process == enter.process)?;
            (leave.call > first.ret).then_some((enter, leave))
        });
        let (entered, last) = pairs.max_by_key(|(_, leave)| leave.call)?;
        let sentence =
            format!("{}, though {} and only later {}", describe(first), describe(entered), describe(last));
        Some((sentence, vec![*entered, *first, *last]))
    }
}

/// The check `barrier`: nobody is in before all have come, and nobody out before all are ready to go.
fn together(case: &Case<'_>) -> CheckResult {
    const NAME: &str = "barrier";
    let mut rounds: BTreeMap<(u64, i64), Told<'_>> = BTreeMap::new();
    for op in case.history.ops() {
        match op.kind() {
            OpKind::Enter { round } => rounds.entry((op.key, round)).or_default().enters.push(op),
            OpKind::Leave { round } => rounds.entry((op.key, round)).or_default().leaves.push(op),
            _ => {}
        }
    }
    for ((key, round), told) in &rounds {
        if let Some((sentence, ops)) = told.alone().or_else(|| told.ahead()) {
            let of = told.enters.len() + told.leaves.len();
            return CheckResult::new(NAME, Verdict::Invalid, format!("barrier {key}: {sentence}"))
                .with_evidence(json!({"key": key, "round": round}))
                .with_counterexample(counterexample(sentence.clone(), &ops, of));
        }
    }
    let all_left =
        |told: &&Told<'_>| told.leaves.iter().filter(|op| op.outcome == End::Ok).count() >= PARTIES;
    let whole = rounds.values().filter(all_left).count();
    let evidence = json!({"rounds": rounds.len(), "whole": whole});
    if whole == 0 {
        let words = "no round was entered and left, so nothing was tested";
        return CheckResult::new(NAME, Verdict::Unknown, words).with_evidence(evidence);
    }
    let words = format!(
        "in each of {} rounds nobody was in before {PARTIES} had come, and nobody out before all were ready; \
         {} were entered and left",
        count(rounds.len()),
        count(whole)
    );
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence)
}

#[cfg(test)]
mod tests {
    use checker::Budget;
    use checker::history::{Event, History};
    use rand::SeedableRng;

    use super::*;
    use crate::judge::{Beside, judge};
    use crate::workload::Kind;

    const S: u64 = 1_000_000_000;

    /// A history of one round in the making. Moments are in seconds.
    #[derive(Default)]
    struct Made(Vec<Event>);

    impl Made {
        fn op(mut self, process: u64, body: Body, (from, to): (u64, u64), kind: EventKind) -> Self {
            let op = barrier(0, body);
            let outcome = match kind {
                EventKind::Ok => Outcome::told(op.value(), None),
                kind => Outcome::without_result(kind, &op, "not-in-time".to_owned()),
            };
            self.0.extend([op.event(process, from * S), outcome.event(&op, process, to * S)]);
            self
        }

        fn enters(self, process: u64, moments: (u64, u64)) -> Self {
            self.op(process, Body::Enter { round: 0 }, moments, EventKind::Ok)
        }

        fn leaves(self, process: u64, moments: (u64, u64)) -> Self {
            self.op(process, Body::Leave { round: 0 }, moments, EventKind::Ok)
        }

        fn verdict(mut self) -> Verdict {
            self.0.sort_by_key(|event| event.time);
            let history = History::from_events(self.0).expect("a history");
            judge(Kind::BARRIER, &history, &Beside::default(), &Budget::default())
                .into_iter()
                .find(|result| result.name == "barrier")
                .expect("its own check")
                .verdict
        }
    }

    fn three_in() -> Made {
        Made::default().enters(1, (0, 5)).enters(2, (1, 5)).enters(3, (4, 5))
    }

    #[test]
    fn three_that_enter_and_leave_together_accuse_nobody() {
        assert_eq!(
            three_in().leaves(1, (6, 9)).leaves(2, (7, 9)).leaves(3, (8, 9)).verdict(),
            Verdict::Valid
        );
        assert_eq!(three_in().verdict(), Verdict::Unknown, "nobody has left");
    }

    #[test]
    fn who_is_in_before_all_have_come_is_found() {
        let early = Made::default().enters(1, (0, 3)).enters(2, (1, 5)).enters(3, (4, 5));
        assert_eq!(early.verdict(), Verdict::Invalid);
        let again = Made::default()
            .op(1, Body::Enter { round: 0 }, (0, 1), EventKind::Fail)
            .enters(1, (2, 5))
            .enters(2, (1, 5));
        assert_eq!(again.verdict(), Verdict::Invalid, "one that tries twice is one");
        let lost = Made::default().op(9, Body::Enter { round: 0 }, (0, 1), EventKind::Info);
        assert_ne!(lost.enters(1, (2, 5)).enters(2, (1, 5)).verdict(), Verdict::Invalid, "it may have come");
        let mut unsent = Made::default().enters(1, (2, 5)).enters(2, (1, 5));
        let op = barrier(0, Body::Enter { round: 0 });
        let outcome = Outcome::not_sent(&op, "no client was free in time");
        unsent.0.extend([op.event(9, 0), outcome.event(&op, 9, S)]);
        assert_eq!(unsent.verdict(), Verdict::Invalid, "what was never sent brought nobody");
    }

    #[test]
    fn who_is_out_before_all_are_ready_is_found() {
        let early = three_in().leaves(1, (6, 7)).leaves(2, (6, 7)).leaves(3, (8, 9));
        assert_eq!(early.verdict(), Verdict::Invalid);
        let lost = three_in().leaves(1, (6, 7)).leaves(2, (6, 7));
        let later = lost.op(3, Body::Leave { round: 0 }, (8, 9), EventKind::Fail);
        assert_ne!(later.verdict(), Verdict::Invalid, "its session may have ended");
    }

    #[test]
    fn a_round_has_so_many_places_and_a_lost_process_leaves_its_own() {
        let mut barriers = Barriers::new(1, ChaCha8Rng::seed_from_u64(1));
        let ops: Vec<Op> = (0..4).map(|process| barriers.next_op(process)).collect();
        let enter = |round| barrier(0, Body::Enter { round });
        assert_eq!(ops, [enter(0), enter(0), enter(0), enter(1)]);
        barriers.complete(0, &ops[0], &Outcome::told(ops[0].value(), None));
        assert_eq!(barriers.next_op(0), barrier(0, Body::Leave { round: 0 }));
        barriers.complete(3, &ops[3], &Outcome::lost(&ops[3], "it was killed"));
        assert_eq!(barriers.next_op(9), enter(1));
        assert_eq!([10, 11, 12].map(|process| barriers.next_op(process)), [enter(1), enter(1), enter(2)]);
    }
}
